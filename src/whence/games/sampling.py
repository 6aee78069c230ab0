"""Which masks to ask for: complement pairs, their sizes spread evenly over a law, no pair twice; the first n are the same for any n."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.games.functionals import Functional

GOLDEN = (
    5**0.5 - 1
) / 2  # multiples of it, modulo 1, fill the unit interval evenly, however many are taken
LISTED = 5000  # subsets of a size that are listed and shuffled; of more, random ones are drawn until they differ
DRAWN = 64  # at a time, always, so that a longer draw begins with the shorter
MANY = 2**40
DEAREST = 1.35  # above it the even law has too few pairs where the weight is, and the 95 % interval was seen to cover 86 to 92 %


def all_masks(units: int) -> Bool[np.ndarray, "mask unit"]:
    """Every mask, by the number that its bits spell.

    >>> all_masks(2).astype(int).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    return (np.arange(2**units)[:, None] >> np.arange(units)[::-1] & 1).astype(bool)


def pairs_of_size(units: int, size: int) -> int:
    """How many pairs of complements have a smaller half of that size."""
    return comb(units, size) // (2 if 2 * size == units else 1)


def even_law(units: int) -> Float[np.ndarray, " half"]:
    """All sizes equally often: the shares of pairs whose smaller half keeps 1, 2, … ⌊d/2⌋ units.

    >>> even_law(5), even_law(4)
    (array([0.5, 0.5]), array([0.66666667, 0.33333333]))
    """
    law = np.where(2 * np.arange(1, units // 2 + 1) == units, 1.0, 2.0)
    return law / law.sum()


def law_for(functional: Functional) -> Float[np.ndarray, " half"]:
    """The even law, which all methods share so that one pays for all; a functional's own best law where the even one would cost
    more than ``DEAREST`` times its samples (Banzhaf's, LIME's of a small bandwidth).

    The best law is Neyman's, in proportion to the root mean square weight of a size.
    """
    units = functional.units
    even, size = even_law(units), np.arange(units + 1)
    square = (
        size / units * (functional.base + functional.slope) ** 2
        + (1 - size / units) * functional.base**2
    )
    half = size[1 : units // 2 + 1]
    need = np.sqrt(
        np.where(2 * half == units, square[half] / 2, square[half] + square[units - half])
    )
    if (need**2 / even).sum() <= DEAREST * need.sum() ** 2:
        return even
    return 0.75 * need / need.sum() + 0.25 * even


def draw_pairs(
    units: int, law: Float[np.ndarray, " half"], count: int, seed: int
) -> Bool[np.ndarray, "pair unit"]:
    """The smaller halves of ``count`` pairs (or of all there are): size by size from ``law``, within a size at random without replacement.

    >>> draw_pairs(6, even_law(6), 4, seed=0).sum(1)
    array([2, 1, 2, 1])
    """
    sizes = _sizes(units, law, count, seed)
    masks = np.zeros((len(sizes), units), dtype=bool)
    for size in np.unique(sizes).tolist():
        masks[sizes == size] = _subsets(
            units, size, int((sizes == size).sum()), np.random.default_rng([seed, units, size])
        )
    return masks


def _sizes(
    units: int, law: Float[np.ndarray, " half"], count: int, seed: int
) -> Int[np.ndarray, " pair"]:
    """The sizes in the order of drawing. A size whose pairs are used up is passed over."""
    law = law / law.sum()
    left = np.array(
        [min(pairs_of_size(units, size), MANY) for size in range(1, units // 2 + 1)]
    ) * (law > 0)
    count = min(count, int(left.sum()))
    start = np.random.default_rng([seed, units]).random()
    found: list[int] = []
    for first in range(0, MANY, DRAWN):
        if len(found) == count:
            break
        still = np.cumsum(law * (left > 0))
        place = (start + GOLDEN * np.arange(first, first + DRAWN)) % 1.0
        for half in np.searchsorted(still / still[-1], place, side="right").tolist():
            if left[half] and len(found) < count:
                left[half] -= 1
                found.append(half + 1)
    return np.array(found, dtype=np.int64)


def _subsets(
    units: int, size: int, count: int, rng: np.random.Generator
) -> Bool[np.ndarray, "subset unit"]:
    """Different subsets of one size, in random order; of half the units, those with the first unit, which stand for their complements."""
    halves = 2 * size == units
    if comb(units, size) <= LISTED:
        listed = np.zeros((comb(units, size), units), dtype=bool)
        np.put_along_axis(
            listed, np.array(list(combinations(range(units), size))), values=True, axis=1
        )
        return rng.permutation(listed[listed[:, 0]] if halves else listed)[:count]
    found: dict[bytes, Bool[np.ndarray, " unit"]] = {}
    while len(found) < count:
        rank = np.argsort(np.argsort(rng.random((DRAWN, units)), axis=1), axis=1)
        for mask in rank < size:
            one = ~mask if halves and not mask[0] else mask
            found.setdefault(one.tobytes(), one)
    return np.array(list(found.values())[:count])
