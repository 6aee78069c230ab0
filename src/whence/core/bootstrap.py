"""Means over texts with bootstrap intervals, and which of several methods can be told apart.

Texts are drawn again with replacement, for all methods at once, so that methods are compared text
by text. Intervals are studentised (Efron & Tibshirani 1993, chapter 12): a mean of skewed values
keeps its 95 %. Several comparisons are judged together by the largest statistic of all of them
(Westfall & Young 1993), which keeps the chance of even one false claim at 5 %. Pairs of methods are
judged step by step (Romano & Wolf 2005), and one whose statistic has a far wider law than the
others by its own law.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

LEVEL = 0.05
DRAWS = 2000
FEWEST_TEXTS = 5  # below this, a bootstrap has too few different samples to say anything
ROUNDING = 1e-12  # of the largest value: a spread smaller than that is none
NO_SPREAD = 0.01  # of the error of the mean: a draw with a smaller one missed all that differs
SMALLEST = 1e-300
WIDE = 3.0  # times the usual reach of a statistic: it tells nothing about the others
FAR = 0.99  # of its draws lie within the reach of a statistic
NORMAL = 1.959964  # standard deviations that hold 95 %
BOOTSTRAP_STREAM = 11  # of random numbers


@dataclass(frozen=True)
class Mean:
    """A mean over texts with its 95 % interval, which is None where there are too few texts."""

    mean: float
    interval: tuple[float, float] | None
    texts: int


def within(
    interval: tuple[float, float] | None, possible: tuple[float, float]
) -> tuple[float, float] | None:
    """The part of an interval that a mean can be in: a studentised one does not know its bounds.

    >>> within((-0.1, 0.4), (0.0, 1.0)), within((1.1, 1.2), (0.0, 1.0))
    ((0.0, 0.4), (1.0, 1.0))
    """
    if interval is None:
        return None
    least, most = possible
    low, high = (min(max(end, least), most) for end in interval)
    return low, high


def wilson(share: float, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share.

    >>> [round(x, 3) for x in wilson(0.5, 100)]
    [0.404, 0.596]
    """
    middle = (share + NORMAL**2 / (2 * count)) / (1 + NORMAL**2 / count)
    spread = sqrt(share * (1 - share) / count + NORMAL**2 / (4 * count**2))
    half = NORMAL / (1 + NORMAL**2 / count) * spread
    return (max(0.0, middle - half), min(1.0, middle + half))


@dataclass(frozen=True, eq=False)
class _Draws:
    """The same columns in many samples of the texts."""

    mean: Float[np.ndarray, " column"]
    error: Float[np.ndarray, " column"]
    deviations: Float[np.ndarray, "draw column"]  # (mean of the draw - mean) / its error
    texts: Int[np.ndarray, " column"]


def means(
    values: Float[np.ndarray, "text column"], seed: int = 0, draws: int = DRAWS
) -> list[Mean]:
    """The mean of each column with its interval. NaN is a text that was not measured.

    Of skewed values on 5 to 10 texts it holds the truth in about 90 of 100 cases, not in 95
    (docs/evaluate.md).

    >>> one = means(np.array([[1.0], [2.0], [3.0], [2.0], [2.0], [1.5]]))[0]
    >>> one.mean, [round(x, 2) for x in one.interval]
    (1.9166666666666667, [1.38, 2.59])
    """
    drawn = _drawn(values, seed, draws)
    every = []
    for column, (mean, error) in enumerate(zip(drawn.mean, drawn.error, strict=True)):
        texts = int(drawn.texts[column])
        interval = None
        if texts >= FEWEST_TEXTS:
            low, high = np.quantile(drawn.deviations[:, column], [LEVEL / 2, 1 - LEVEL / 2])
            # the quantiles change sides: where draws lie above the mean, the truth may lie below
            interval = (float(mean - high * error), float(mean - low * error))
        every.append(Mean(float(mean), interval, texts))
    return every


def ratio_of_sums(
    above: Float[np.ndarray, " text"], below: Float[np.ndarray, " text"], seed: int = 0
) -> Mean:
    """One sum over texts divided by another, with its interval.

    Each text counts as it is long, where ``below`` is its length. The interval is that of a mean,
    of what each text adds to the ratio (its linearisation): R + (a − R b) / mean(b).

    >>> one = ratio_of_sums(np.array([1.0, 2.0, 3.0, 4.0, 3.0]), np.full(5, 2.0))
    >>> one.mean, [round(x, 1) for x in one.interval]
    (1.3, [0.5, 1.8])
    """
    total = float(below.sum())
    if total == 0:
        return Mean(float("nan"), None, len(below))
    ratio = float(above.sum()) / total
    added = ratio + (above - ratio * below) / (total / len(below))
    (one,) = means(added[:, None], seed)
    return Mean(ratio, one.interval, one.texts)


def means_together(
    values: Float[np.ndarray, "text column"], seed: int = 0, draws: int = DRAWS
) -> list[Mean]:
    """The same, with wider intervals that are to hold together in 95 of 100 cases.

    How many columns there are does not matter, where their values are near to normal. Columns of
    mostly small values with a rare large one hold less often, the fewer texts there are.

    They are balanced (Beran 1988): each column leaves its own in as many cases as any other. One
    width for all, as the largest deviation asks for, would be that of the most skewed column.

    >>> rng = np.random.default_rng(0)
    >>> values = rng.normal(size=(50, 20))
    >>> alone, together = means(values)[0], means_together(values)[0]
    >>> together.interval[1] - together.interval[0] > alone.interval[1] - alone.interval[0]
    True
    """
    drawn = _drawn(values, seed, draws)
    enough = drawn.texts >= FEWEST_TEXTS
    sizes = np.abs(drawn.deviations)
    ranks = sizes.argsort(0, kind="stable").argsort(0) / (draws - 1)
    level = 1 - LEVEL
    if enough.any():
        level = float(np.quantile(ranks[:, enough].max(1), 1 - LEVEL))
    reaches = np.quantile(sizes, level, axis=0) * drawn.error
    every = []
    for column, (mean, reach) in enumerate(zip(drawn.mean, reaches, strict=True)):
        interval = (float(mean - reach), float(mean + reach)) if enough[column] else None
        every.append(Mean(float(mean), interval, int(drawn.texts[column])))
    return every


def _drawn(values: Float[np.ndarray, "text column"], seed: int, draws: int) -> _Draws:
    """Samples of the texts, the same for every column; each column skips what was not measured."""
    measured = np.isfinite(values)
    texts = measured.sum(0)
    known = np.where(measured, values, 0.0)
    mean = np.divide(known.sum(0), texts, out=np.full(texts.shape, np.nan), where=texts > 0)
    centred = np.where(measured, values - mean, 0.0)
    error = _error(centred.sum(0), (centred**2).sum(0), texts)

    counts = _counts(len(values), seed, draws).astype(np.float64)
    drawn_texts = counts @ measured
    sums = counts @ centred
    errors = _error(sums, counts @ centred**2, drawn_texts)
    moved = np.divide(sums, drawn_texts, out=np.zeros_like(sums), where=drawn_texts > 0)
    # a draw of texts that are nearly equal has no spread: it does not say how far means move
    rounding = ROUNDING * np.maximum(np.abs(known).max(0, initial=0.0), SMALLEST)
    has_spread = errors > np.maximum(rounding, NO_SPREAD * error)
    deviations = np.divide(moved, errors, out=np.zeros_like(moved), where=has_spread)
    return _Draws(mean, error, deviations, texts)


@lru_cache(maxsize=2)
def _counts(texts: int, seed: int, draws: int) -> Int[np.ndarray, "draw text"]:
    """How often each text is in each draw; the same for all columns of a table."""
    if not texts:
        return np.zeros((draws, 0), dtype=np.int32)
    rng = np.random.default_rng([seed, BOOTSTRAP_STREAM, texts])
    even = np.full(texts, 1 / texts)
    return rng.multinomial(texts, even, size=draws).astype(np.int32)


def _error(sums: Any, squares: Any, texts: Any) -> Any:
    """The standard error of a mean, from sums of values that were centred before."""
    counted = np.maximum(texts, 2)
    spread = squares / counted - (sums / counted) ** 2
    # equal values leave the last digits of the two squares, and the root makes them large
    has_spread = spread > ROUNDING * squares / counted
    return np.sqrt(np.where(has_spread, spread, 0.0) / (counted - 1))


def told_apart(
    differences: Float[np.ndarray, "text comparison"],
    seed: int = 0,
    draws: int = DRAWS,
    scale: float = 0.0,
    least_error: Float[np.ndarray, " comparison"] | None = None,
) -> Bool[np.ndarray, " comparison"]:
    """Which differences are not zero, where all of them are judged together.

    Each is taken over the texts on which it was measured (not NaN). ``scale`` is the size of the
    numbers that were subtracted, which rounding errors are in proportion to.

    ``least_error`` is what the standard error of a mean is at least, as far as that is known from
    elsewhere; 0 where it is not. Ten values of 0 hardly vary, and still say little of a value that
    is 1 on one text in ten. Such a comparison must also be told apart as a normal value would be.

    >>> rng = np.random.default_rng(0)
    >>> told_apart(np.stack([rng.normal(size=50), rng.normal(1, 1, size=50)], axis=1)).tolist()
    [False, True]
    """
    drawn = _drawn(differences, seed, draws)
    enough = drawn.texts >= FEWEST_TEXTS
    if not enough.any():
        return enough
    largest = np.abs(drawn.deviations[:, enough]).max(1)
    critical = float(np.quantile(largest, 1 - LEVEL))
    nearest = critical * drawn.error
    if least_error is not None:
        bound = np.where(least_error > 0, max(critical, _normal(int(enough.sum()))), critical)
        nearest = bound * np.maximum(drawn.error, least_error)
    far = np.abs(np.nan_to_num(drawn.mean)) > np.maximum(nearest, _last_digits(differences, scale))
    return enough & far


def _last_digits(
    differences: Float[np.ndarray, "text comparison"], scale: float
) -> Float[np.ndarray, " comparison"]:
    """What two equal means may differ by: the last digits of what was summed."""
    known = np.where(np.isfinite(differences), np.abs(differences), 0.0)
    return ROUNDING * np.maximum(known.max(0, initial=scale), SMALLEST)


def pairs_apart(
    differences: Float[np.ndarray, "text pair"],
    seed: int = 0,
    draws: int = DRAWS,
    scale: float = 0.0,
) -> Bool[np.ndarray, " pair"]:
    """The same of pairs of methods, where one pair may be nearly equal on all texts but one.

    Such a pair has draws without that text, in which it lies many errors from its mean, and beside
    the largest statistic of all no other pair could be told apart. It does not speak for the others
    here (``_critical``). What was told apart is left out, and the others are judged again.

    >>> rng = np.random.default_rng(0)
    >>> clear, twins = rng.normal(1, 1, size=50), 0.01 * rng.normal(size=50)
    >>> twins[0] = 1
    >>> together = np.stack([clear, twins], axis=1)
    >>> told_apart(together).tolist(), pairs_apart(together).tolist()
    ([False, False], [True, False])
    """
    drawn = _drawn(differences, seed, draws)
    moved = np.abs(np.nan_to_num(drawn.mean))
    sizes = np.abs(drawn.deviations)
    ranks = _ranks(sizes)
    last_digits = _last_digits(differences, scale)

    apart = np.zeros(len(moved), dtype=bool)
    judged = drawn.texts >= FEWEST_TEXTS
    while judged.any():
        critical = np.zeros(len(moved))
        critical[judged] = _critical(sizes[:, judged], ranks[:, judged])
        found = judged & (moved > np.maximum(critical * drawn.error, last_digits))
        if not found.any():
            break
        apart |= found
        judged &= ~found
    return apart


def _critical(
    sizes: Float[np.ndarray, "draw comparison"], ranks: Float[np.ndarray, "draw comparison"]
) -> Float[np.ndarray, " comparison"]:
    """What each statistic must go beyond, so that in 5 of 100 draws one of them or more does.

    For most it is the largest of all. One that reaches much further than is usual is left out of
    these, and must go beyond its own law, at the level at which all of them together would err in
    5 of 100 draws (Beran 1988).

    >>> usual = np.abs(np.random.default_rng(0).normal(size=(2000, 3)))
    >>> wide = np.where(np.arange(2000) < 700, 12.0, 0.5)[:, None]
    >>> sizes = np.concatenate([usual, wide], axis=1)
    >>> _critical(sizes, _ranks(sizes)).round(1).tolist()
    [2.4, 2.4, 2.4, 12.0]
    """
    reach = np.quantile(sizes, FAR, axis=0)
    # the quarter of the shortest: of equal methods, most pairs may be near to constant
    moving = reach[reach > 0]
    shortest = float(np.quantile(moving, 0.25, method="lower")) if len(moving) else 0.0
    usual = reach <= WIDE * shortest
    largest = float(np.quantile(sizes[:, usual].max(1), 1 - LEVEL))
    level = float(np.quantile(ranks.max(1), 1 - LEVEL))
    return np.maximum(largest, np.quantile(sizes, level, axis=0))


def _ranks(sizes: Float[np.ndarray, "draw comparison"]) -> Float[np.ndarray, "draw comparison"]:
    """The share of all draws that are smaller, of each draw by its own comparison."""
    ranks = np.empty_like(sizes)
    for column, own in enumerate(sizes.T):
        ranks[:, column] = np.searchsorted(np.sort(own), own) / (len(own) - 1)
    return ranks


def _normal(comparisons: int) -> float:
    """What the largest of so many independent normal values stays below in 95 of 100 cases.

    >>> round(_normal(1), 2), round(_normal(10), 2)
    (1.96, 2.8)
    """
    each = 1 - (1 - LEVEL) ** (1 / comparisons)
    return NormalDist().inv_cdf(1 - each / 2)


def groups(
    values: Float[np.ndarray, "text method"],
    higher_is_better: bool,
    seed: int = 0,
    draws: int = DRAWS,
) -> list[str]:
    """Letters for methods: two that share one cannot be told apart; "a" is the best group.

    Every pair of methods is compared on the same texts, and all pairs are judged together
    (``pairs_apart``). A method that was measured on too few texts to be compared has no letter.

    >>> rng = np.random.default_rng(0)
    >>> level = rng.normal(size=(60, 1))
    >>> noise = rng.normal(scale=0.1, size=(60, 3))
    >>> groups(level + noise + np.array([0.0, 1.0, 1.0]), higher_is_better=True)
    ['b', 'a', 'a']
    """
    texts = np.isfinite(values).sum(0)
    methods = [m for m in range(values.shape[1]) if texts[m] >= FEWEST_TEXTS]
    pairs = list(combinations(methods, 2))
    firsts, seconds = [i for i, _ in pairs], [j for _, j in pairs]
    scale = float(np.abs(values[:, methods]).max(initial=0.0, where=~np.isnan(values[:, methods])))
    apart = pairs_apart(values[:, firsts] - values[:, seconds], seed, draws, scale)
    differ = {pair for pair, is_apart in zip(pairs, apart, strict=True) if is_apart}
    sign = -1 if higher_is_better else 1
    best_first = sorted(methods, key=lambda m: sign * float(np.nanmean(values[:, m])))
    return _letters(values.shape[1], best_first, differ)


def _letters(count: int, best_first: Sequence[int], differ: set[tuple[int, int]]) -> list[str]:
    """The compact letter display: one letter for each largest set without a difference in it."""
    sets: list[set[int]] = [set(best_first)] if best_first else []
    for i, j in sorted(differ):
        split: list[set[int]] = []
        for members in sets:
            if i in members and j in members:
                split += [members - {i}, members - {j}]
            else:
                split.append(members)
        sets = _largest(split)
    place = {method: at for at, method in enumerate(best_first)}
    sets.sort(key=lambda members: sorted(place[method] for method in members))
    letters = [""] * count
    for number, members in enumerate(sets):
        for method in members:
            letters[method] += _letter(number)
    return letters


def _largest(sets: list[set[int]]) -> list[set[int]]:
    """Those that lie in no other one."""
    kept: list[set[int]] = []
    for members in sorted(sets, key=len, reverse=True):
        if members and not any(members <= other for other in kept):
            kept.append(members)
    return kept


def _letter(number: int) -> str:
    """a to z, then aa would read as two groups: A to Z.

    >>> _letter(0), _letter(26)
    ('a', 'A')
    """
    alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return alphabet[min(number, len(alphabet) - 1)]
