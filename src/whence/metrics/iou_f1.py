"""IoU F1: the passages that are named, beside the gold passages, where they overlap by half."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.core.registry import Better, Needs, metric
from whence.metrics.gold import MISLEADS, first_of

THRESHOLD = 0.5  # from which share of their union on two spans count as the same
Span = tuple[int, int]  # first unit, and the one after the last


@metric("iou-f1", version=1, cites="deyoung2020eraser")
@dataclass(frozen=True, slots=True)
class IouF1:
    """F1 of spans: a named span counts if it overlaps a gold one by half of their union.

    Named are the first units of the ranking, as many as there are gold ones; units side by side
    are one span.
    """

    needs: ClassVar[Needs] = Needs.GOLD | Needs.RANKINGS
    better: ClassVar[Better] = "higher"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    # simulated, where half of a hundred units are gold, scattered by lot
    chance: ClassVar[float] = 0.31
    misleads: ClassVar[str] = (
        f"{MISLEADS} One word missing in the middle makes two spans of one, and may lose both."
    )

    def __call__(
        self, gold: Bool[np.ndarray, " unit"], rankings: Int[np.ndarray, "ranking unit"]
    ) -> Float[np.ndarray, " ranking"]:
        golden = spans_of(gold)
        named = first_of(rankings, int(gold.sum()))
        return np.array([_f1(spans_of(row), golden) for row in named], dtype=np.float64)


def spans_of(marked: Bool[np.ndarray, " unit"]) -> list[Span]:
    """The runs of marked units.

    >>> spans_of(np.array([True, True, False, True]))
    [(0, 2), (3, 4)]
    """
    edges = np.diff(np.concatenate([[0], marked.astype(np.int64), [0]]))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def iou(one: Span, other: Span) -> float:
    """What two spans share, as a share of what they cover.

    >>> iou((0, 4), (2, 5))
    0.4
    """
    shared = max(0, min(one[1], other[1]) - max(one[0], other[0]))
    return shared / (one[1] - one[0] + other[1] - other[0] - shared)


def _f1(named: list[Span], golden: list[Span]) -> float:
    """As in the authors' code: hits are counted among the named spans, for both shares."""
    if not named or not golden:
        return 0.0
    hits = sum(max(iou(one, other) for other in golden) >= THRESHOLD for one in named)
    return 2 * hits / (len(named) + len(golden))
