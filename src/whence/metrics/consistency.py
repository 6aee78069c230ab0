"""Consistency: does an explanation that draws at random say the same again?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Literal

import numpy as np

from whence.core.agreement import top_overlap
from whence.core.registry import Better, Needs, metric, setting
from whence.metrics.again import (
    Again,
    Explanation,
    NotMeasured,
    Other,
    check_units,
    present,
    similarities,
)

SIGMAS = 1.96  # of a standard error, to each side: an interval of 95 %
HUNDRED = 100  # units of the text that ``chance`` is declared for


@metric("consistency", version=1, cites="visani2022statistical", aliases=("stability",))
@dataclass(frozen=True, slots=True)
class Consistency:
    """How alike explanations of one text are that differ in their seed alone.

    A method that draws nothing gets the perfect value, however wrong it is.
    """

    by: Literal["spearman", "variance", "csi", "vsi"] = setting(
        "spearman",
        "What is compared: ranks, the variance of the scores, intervals (CSI) or top units (VSI).",
    )
    seeds: int = setting(4, "How often the explanation is made again.")
    top: int = setting(5, "How many units VSI compares.")

    needs: ClassVar[Needs] = Needs.AGAIN
    misleads: ClassVar[str] = (
        "It says nothing of truth: a method that always gives the same wrong scores is perfectly "
        "consistent. CSI is high where standard errors are large: honest noise gets 0.99."
    )

    def __post_init__(self) -> None:
        if self.seeds < 1 or self.top < 1:
            raise ValueError(f"seeds and top are 1 or more, not {self.seeds} and {self.top}")

    @property
    def better(self) -> Better:
        """Little variance is good; else high values are."""
        return "lower" if self.by == "variance" else "higher"

    @property
    def range(self) -> tuple[float, float]:
        """Correlations begin at -1; the variance of two opposite scores is twice their square."""
        ranges = {"spearman": (-1.0, 1.0), "variance": (0.0, 2.0)}
        return ranges.get(self.by, (0.0, 1.0))

    @property
    def chance(self) -> float:
        """Of draws from the normal distribution, whose standard error is told as it is."""
        # two draws differ by sqrt(2) standard errors; intervals overlap up to 2 * 1.96 of them
        by_chance = {"spearman": 0.0, "variance": 1.0, "csi": 0.9944}
        return by_chance.get(self.by, min(1.0, self.top / HUNDRED))

    def again(self) -> tuple[Again, ...]:
        """Once for each seed."""
        return tuple(Again(seed=step) for step in range(1, self.seeds + 1))

    def __call__(self, first: Explanation, others: Sequence[Other]) -> float:
        check_units(first)
        runs = [first, *present(others)]
        if self.by == "variance":
            return relative_variance(runs)
        if self.by == "csi":
            return csi(runs)
        if self.by == "vsi":
            return vsi(runs, self.top)
        alike = similarities(np.stack([one.scores for one in runs]))
        return float(alike[np.triu_indices(len(runs), 1)].mean())


def relative_variance(runs: Sequence[Explanation]) -> float:
    """The variance of a score over runs as a share of its mean square, over all units.

    0 where all runs say the same; about 1 where nothing is left but noise.
    """
    scores = np.stack([one.scores for one in runs])
    square = float((scores**2).mean())
    if square == 0:
        return 0.0
    return float(scores.var(0, ddof=1).mean()) / square


def csi(runs: Sequence[Explanation]) -> float:
    """The coefficients stability index of Visani et al., from 0 to 1.

    For each unit, the share of pairs of runs whose 95 % intervals overlap; the mean over units.
    """
    scores = np.stack([one.scores for one in runs])
    if all(one.standard_error is None for one in runs) and not np.ptp(scores, axis=0).any():
        return 1.0  # a method that draws nothing: intervals without a width, all in one place
    if any(one.standard_error is None for one in runs):
        raise NotMeasured("the method gives no standard errors, so there are no intervals.")

    def overlapping(one: Explanation, other: Explanation) -> float:
        assert one.standard_error is not None
        assert other.standard_error is not None
        reach = SIGMAS * (one.standard_error + other.standard_error)
        return float((np.abs(one.scores - other.scores) <= reach).mean())

    return _mean_of_pairs(runs, overlapping)


def vsi(runs: Sequence[Explanation], top: int) -> float:
    """The variables stability index of Visani et al., from 0 to 1.

    The share of the ``top`` units that two runs have in common; the mean over pairs of runs.
    """
    units = len(runs[0].scores)
    if units <= top:
        raise NotMeasured(f"the text has {units} units, and all of them are among the top {top}.")

    def shared(one: Explanation, other: Explanation) -> float:
        if np.array_equal(one.sizes, other.sizes):
            return 1.0
        overlap = float(top_overlap(np.stack([one.sizes, other.sizes]), top)[0, 1])
        return overlap if np.isfinite(overlap) else top / units  # one of them ranks nothing

    return _mean_of_pairs(runs, shared)


def _mean_of_pairs(
    runs: Sequence[Explanation], compare: Callable[[Explanation, Explanation], float]
) -> float:
    return float(np.mean([compare(one, other) for one, other in combinations(runs, 2)]))
