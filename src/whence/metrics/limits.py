"""Limits: the best and the worst that any ranking of a text can reach.

A metric here is the mean fall over the first sets of a ranking, of a few sizes. These sets are
nested: each holds the one before. So the limits are those over *chains* of nested sets, and each
limit is the value of a ranking. (The best set of each size by itself may be no chain, and then no
ranking reaches it.)

For short texts every chain is tried. For long ones a beam search keeps a few sets of each size;
what it returns is the value of a ranking, too, but perhaps not the best (Edin et al. 2025).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.metrics.standing import ROUNDING

EXACT = 2000
EXACTLY = "Up to how many masks every ranking is tried; beyond, the search is by beams."
WIDTH = 2
IN_WIDTH = "How many sets of each size the beam search keeps."
ENDS = 8  # in how many ways each of them grows; many ends of few sets find more than the reverse
UNDECIDED = 0.5  # where the best ranking is as good as the worst

# the fall that belongs to each row of "set unit"
Falls = Callable[[Bool[np.ndarray, "set unit"]], Float[np.ndarray, " set"]]


@dataclass(frozen=True)
class Search:
    """How the limits are looked for."""

    exact: int = EXACT
    width: int = WIDTH

    def __post_init__(self) -> None:
        if self.exact < 0:
            raise ValueError(f"exact is at least 0, not {self.exact}")
        if self.width < 1:
            raise ValueError(f"width is at least 1, not {self.width}")

    def is_exact(self, units: int, counts: Int[np.ndarray, " count"]) -> bool:
        """Whether every ranking of so many units is tried."""
        return _number_of_sets(units, counts) <= self.exact

    def passes(self, units: int, counts: Int[np.ndarray, " count"]) -> int:
        """The most sets that the search asks for."""
        if self.is_exact(units, counts):
            return _number_of_sets(units, counts)
        asked, size, kept = 0, 0, 1
        for level in np.unique(counts).tolist():
            asked += units - size  # the best set tries each of the others
            growing = kept - 1 if level == size + 1 else kept  # what is one larger was tried
            asked += growing * min(ENDS, units - level + 1)
            size, kept = level, self.width
        return 2 * asked  # the best and the worst


def limits(
    falls: Falls, units: int, counts: Int[np.ndarray, " count"], search: Search
) -> tuple[float, float]:
    """The lowest and the highest mean fall of any ranking, over its first ``counts`` units.

    >>> weights = np.array([3.0, 1.0, 0.0])
    >>> limits(lambda sets: sets @ weights, 3, np.array([1, 2]), Search())
    (0.5, 3.5)
    """
    if search.is_exact(units, counts):
        return _over_all(falls, units, counts)
    lowest = -_by_beam(lambda sets: -falls(sets), units, counts, search.width)
    return lowest, _by_beam(falls, units, counts, search.width)


def between(
    values: Float[np.ndarray, " ranking"], worst: float, best: float, scale: float
) -> Float[np.ndarray, " ranking"]:
    """Where values lie between the worst (0) and the best (1).

    A half where both are the same, but for rounding errors, which are in proportion to ``scale``.
    A ranking that outdoes what a beam search found is at its end.

    >>> between(np.array([2.0, 1.0]), worst=3.0, best=1.0, scale=1.0).tolist()
    [0.5, 1.0]
    """
    if abs(best - worst) <= ROUNDING * max(abs(best), abs(worst), abs(scale)):
        return np.full(len(values), UNDECIDED)
    return np.clip((values - worst) / (best - worst), 0.0, 1.0)


def _number_of_sets(units: int, counts: Int[np.ndarray, " count"]) -> int:
    return sum(comb(units, size) for size in np.unique(counts).tolist())


def _over_all(falls: Falls, units: int, counts: Int[np.ndarray, " count"]) -> tuple[float, float]:
    """Over every chain: the best chain that ends in a set goes through a set with one unit less."""
    numbers = np.arange(2**units)
    bits = 1 << np.arange(units)
    members = (numbers[:, None] & bits) > 0
    sizes = members.sum(1)

    weights = np.bincount(counts, minlength=units + 1)
    is_asked = weights[sizes] > 0
    gains = np.zeros(len(numbers))
    gains[is_asked] = falls(members[is_asked]) * weights[sizes[is_asked]]

    lowest, highest = np.zeros((2, len(numbers)))
    for size in range(1, counts.max() + 1):
        sets = numbers[sizes == size]
        before = sets[:, None] ^ bits  # without each of its units
        is_member = members[sets]
        lowest[sets] = np.where(is_member, lowest[before], np.inf).min(1) + gains[sets]
        highest[sets] = np.where(is_member, highest[before], -np.inf).max(1) + gains[sets]

    last = sizes == counts.max()
    return float(lowest[last].min() / len(counts)), float(highest[last].max() / len(counts))


def _by_beam(falls: Falls, units: int, counts: Int[np.ndarray, " count"], width: int) -> float:
    """The highest mean fall that a beam search finds."""
    sets, totals = np.zeros((1, units), dtype=bool), np.zeros(1)
    sizes, weights = np.unique(counts, return_counts=True)
    for size, weight in zip(sizes.tolist(), weights.tolist(), strict=True):
        grown, parents = _grown(falls, sets, size)
        totals = totals[parents] + weight * falls(grown)
        best_first = np.argsort(-totals, kind="stable")
        # of equal sets, which came by different ways, the first is the best
        _, firsts = np.unique(grown[best_first], axis=0, return_index=True)
        kept = best_first[np.sort(firsts)[:width]]
        sets, totals = grown[kept], totals[kept]
    return float(totals.max() / len(counts))


def _grown(
    falls: Falls, sets: Bool[np.ndarray, "set unit"], size: int
) -> tuple[Bool[np.ndarray, "grown unit"], Int[np.ndarray, " grown"]]:
    """Each set, grown to ``size`` in a few ways, and the number of the set that it grew from.

    The units with the highest falls come in; or all of these but the last, and one of those that
    follow.
    """
    missing = size - int(sets[0].sum())
    fall_of_each = _fall_of_each(falls, sets)

    grown, grown_from = [], []
    for number, row in enumerate(sets):
        outside = np.argsort(-fall_of_each[number], kind="stable")[: int((~row).sum())]
        for last in outside[missing - 1 : missing - 1 + ENDS]:
            larger = row.copy()
            larger[outside[: missing - 1]] = True
            larger[last] = True
            grown.append(larger)
            grown_from.append(number)
    return np.array(grown), np.array(grown_from)


def _fall_of_each(
    falls: Falls, sets: Bool[np.ndarray, "set unit"]
) -> Float[np.ndarray, "set unit"]:
    """How far the target falls, about, when each unit by itself joins each set; best set first.

    Only the best set tries, and the others take over what it saw. A unit that the best set has and
    they have not comes before all others.
    """
    best = sets[0]
    newcomers = np.flatnonzero(~best)
    tried = np.tile(best, (len(newcomers), 1))
    tried[np.arange(len(newcomers)), newcomers] = True
    seen = np.full(len(best), np.inf)
    seen[newcomers] = falls(tried)
    return np.where(sets, -np.inf, seen)
