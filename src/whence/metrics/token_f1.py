"""Token F1: the units named first, beside the gold units, one by one."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.core.registry import Better, Needs, metric
from whence.metrics.gold import MISLEADS, first_of


@metric("token-f1", version=1, cites="deyoung2020eraser", aliases=("rationale-f1",))
@dataclass(frozen=True, slots=True)
class TokenF1:
    """The share of gold units among the first of the ranking, as many as there are gold ones.

    With as many named as there are gold units, precision, recall and their harmonic mean F1 are
    the same number.
    """

    needs: ClassVar[Needs] = Needs.GOLD | Needs.RANKINGS
    better: ClassVar[Better] = "higher"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    chance: ClassVar[float] = 0.5  # the share of gold units
    misleads: ClassVar[str] = (
        f"{MISLEADS} It is told how many units to name, which a reader of the scores is not."
    )

    def __call__(
        self, gold: Bool[np.ndarray, " unit"], rankings: Int[np.ndarray, "ranking unit"]
    ) -> Float[np.ndarray, " ranking"]:
        count = int(gold.sum())
        if not count:
            return np.zeros(len(rankings))
        named = first_of(rankings, count)
        return (named & gold).sum(1) / count
