"""Which masks to ask for: complement pairs, their sizes spread evenly over a law, no pair twice.

The first n pairs are the same for any n.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.games.functionals import Functional

# Multiples of it, modulo 1, fill the unit interval evenly, however many are taken.
GOLDEN = (5**0.5 - 1) / 2

# Up to so many subsets of a size are listed and shuffled; of more, random ones are drawn until
# they differ.
LISTED = 5000

# So many are drawn at a time, always, so that a longer draw begins with the shorter.
DRAWN = 64

# A number of pairs that no run will use up.
MANY = 2**40

# Above it the even law has too few pairs where the weight is, and the interval of 95 % was seen to
# cover 86 to 92 %.
DEAREST = 1.35


def all_masks(units: int) -> Bool[np.ndarray, "mask unit"]:
    """Every mask, by the number that its bits spell.

    >>> all_masks(2).astype(int).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    number = np.arange(2**units)[:, None]
    place = np.arange(units)[::-1]
    return (number >> place & 1).astype(bool)


def pairs_of_size(units: int, size: int) -> int:
    """How many pairs of complements have a smaller half of that size."""
    # Of half the units, both halves of a pair have the size, and the pair would count twice.
    return comb(units, size) // (2 if 2 * size == units else 1)


def even_law(units: int) -> Float[np.ndarray, " half"]:
    """All sizes equally often: the shares of pairs whose smaller half keeps 1, 2, … ⌊d/2⌋ units.

    >>> even_law(5), even_law(4)
    (array([0.5, 0.5]), array([0.66666667, 0.33333333]))
    """
    law = np.where(2 * np.arange(1, units // 2 + 1) == units, 1.0, 2.0)
    return law / law.sum()


def law_for(functional: Functional) -> Float[np.ndarray, " half"]:
    """The even law, or a functional's own best law where the even one would cost too much.

    All methods share the even law, so that one pays for all. Too much is more than ``DEAREST``
    times the samples (Banzhaf values; LIME with a small bandwidth). The best law is Neyman's, in
    proportion to the root mean square weight of a size.
    """
    units = functional.units
    even = even_law(units)
    size = np.arange(units + 1)
    share = size / units

    # The mean square weight of a mask of each size: unit j is kept in a share k/d of them.
    kept = (functional.base + functional.slope) ** 2
    removed = functional.base**2
    square = share * kept + (1 - share) * removed

    # The two halves of a pair together; of two equal halves one is counted.
    half = size[1 : units // 2 + 1]
    both = np.where(2 * half == units, square[half] / 2, square[half] + square[units - half])
    need = np.sqrt(both)

    if (need**2 / even).sum() <= DEAREST * need.sum() ** 2:
        return even
    return 0.75 * need / need.sum() + 0.25 * even


def draw_pairs(
    units: int, law: Float[np.ndarray, " half"], count: int, seed: int
) -> Bool[np.ndarray, "pair unit"]:
    """The smaller halves of ``count`` pairs, or of all there are.

    Sizes come from ``law``; within a size, subsets are drawn at random without replacement.

    >>> draw_pairs(6, even_law(6), 4, seed=0).sum(1)
    array([2, 1, 2, 1])
    """
    sizes = _sizes(units, law, count, seed)
    masks = np.zeros((len(sizes), units), dtype=bool)
    for size in np.unique(sizes).tolist():
        rng = np.random.default_rng([seed, units, size])
        of_this_size = sizes == size
        masks[of_this_size] = _subsets(units, size, int(of_this_size.sum()), rng)
    return masks


def nested_pairs(units: int, whole: int, count: int, seed: int) -> Bool[np.ndarray, "pair whole"]:
    """Pairs of a game whose players are the first ``units`` of a larger game's ``whole``.

    They are pairs of the larger game, so that all smaller games share them. On the first units they
    follow the even law, too: where all sizes are equally likely, a part of the units has all of its
    sizes equally often. Pairs that are equal there, or that keep all or none, are dropped. The rows
    are those of the larger game; on the first units they are the smaller halves.

    >>> nested_pairs(4, 6, 5, seed=0)[:, :4].sum(1)
    array([1, 2])
    """
    pairs = draw_pairs(whole, even_law(whole), count, seed)
    kept = pairs[:, :units].sum(1)
    is_larger_half = 2 * kept > units
    pairs = np.where(is_larger_half[:, None], ~pairs, pairs)
    # of two halves of one size, the one with the first unit stands for both
    is_even = 2 * kept == units
    pairs = np.where((is_even & ~pairs[:, 0])[:, None], ~pairs, pairs)
    pairs = pairs[(kept > 0) & (kept < units)]
    _, first = np.unique(pairs[:, :units], axis=0, return_index=True)
    return pairs[np.sort(first)]


def _sizes(
    units: int, law: Float[np.ndarray, " half"], count: int, seed: int
) -> Int[np.ndarray, " pair"]:
    """The sizes in the order of drawing. A size whose pairs are used up is passed over."""
    law = law / law.sum()
    pairs = [min(pairs_of_size(units, size), MANY) for size in range(1, units // 2 + 1)]
    left = np.array(pairs) * (law > 0)
    count = min(count, int(left.sum()))
    start = np.random.default_rng([seed, units]).random()

    sizes: list[int] = []
    for first in range(0, MANY, DRAWN):
        if len(sizes) == count:
            break
        still = np.cumsum(law * (left > 0))
        place = (start + GOLDEN * np.arange(first, first + DRAWN)) % 1.0
        halves = np.searchsorted(still / still[-1], place, side="right")
        for half in halves.tolist():
            if left[half] and len(sizes) < count:
                left[half] -= 1
                sizes.append(half + 1)
    return np.array(sizes, dtype=np.int64)


def _subsets(
    units: int, size: int, count: int, rng: np.random.Generator
) -> Bool[np.ndarray, "subset unit"]:
    """Different subsets of one size, in random order.

    Of subsets of half the units, those with the first unit stand for their complements.
    """
    is_half = 2 * size == units
    if comb(units, size) <= LISTED:
        listed = np.zeros((comb(units, size), units), dtype=bool)
        members = np.array(list(combinations(range(units), size)))
        np.put_along_axis(listed, members, values=True, axis=1)
        if is_half:
            listed = listed[listed[:, 0]]
        return rng.permutation(listed)[:count]

    subsets: dict[bytes, Bool[np.ndarray, " unit"]] = {}
    while len(subsets) < count:
        rank = np.argsort(np.argsort(rng.random((DRAWN, units)), axis=1), axis=1)
        for mask in rank < size:
            subset = ~mask if is_half and not mask[0] else mask
            subsets.setdefault(subset.tobytes(), subset)
    return np.array(list(subsets.values())[:count])
