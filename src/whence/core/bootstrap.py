"""Means over texts with bootstrap intervals, and which of several methods can be told apart.

Texts are drawn again with replacement, for all methods at once, so that methods are compared text
by text. Intervals are studentised (Efron & Tibshirani 1993, chapter 12): a mean of skewed values
keeps its 95 %. Several comparisons are judged together by the largest statistic of all of them
(Westfall & Young 1993), which keeps the chance of even one false claim at 5 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float

LEVEL = 0.05
DRAWS = 2000
FEWEST_TEXTS = 5  # below this, a bootstrap has too few different samples to say anything
ROUNDING = 1e-12  # of the largest value: a spread smaller than that is none
BOOTSTRAP_STREAM = 11  # of random numbers


@dataclass(frozen=True)
class Mean:
    """A mean over texts with its 95 % interval, which is None where there are too few texts."""

    mean: float
    interval: tuple[float, float] | None
    texts: int


@dataclass(frozen=True, eq=False)
class _Draws:
    """The same columns in many samples of the texts."""

    mean: Float[np.ndarray, " column"]
    error: Float[np.ndarray, " column"]
    deviations: Float[np.ndarray, "draw column"]  # (mean of the draw - mean) / its error


def means(
    values: Float[np.ndarray, "text column"], seed: int = 0, draws: int = DRAWS
) -> list[Mean]:
    """The mean of each column with its interval. NaN is a text that was not measured.

    >>> one = means(np.array([[1.0], [2.0], [3.0], [2.0], [2.0], [1.5]]))[0]
    >>> one.mean, [round(x, 2) for x in one.interval]
    (1.9166666666666667, [1.39, 2.7])
    """
    found = []
    for column in values.T:
        measured = column[np.isfinite(column)]
        if not len(measured):
            found.append(Mean(float("nan"), None, 0))
        elif len(measured) < FEWEST_TEXTS:
            found.append(Mean(float(measured.mean()), None, len(measured)))
        else:
            found.append(_mean(measured, seed, draws))
    return found


def _mean(measured: Float[np.ndarray, " text"], seed: int, draws: int) -> Mean:
    drawn = _drawn(measured[:, None], seed, draws)
    mean, error = float(drawn.mean[0]), float(drawn.error[0])
    # the quantiles change sides: where draws lie above the mean, the truth may lie below it
    low, high = np.quantile(drawn.deviations[:, 0], [1 - LEVEL / 2, LEVEL / 2])
    return Mean(mean, (float(mean - low * error), float(mean - high * error)), len(measured))


def _drawn(values: Float[np.ndarray, "text column"], seed: int, draws: int) -> _Draws:
    texts = len(values)
    mean, error = _mean_and_error(values)
    rng = np.random.default_rng([seed, BOOTSTRAP_STREAM, texts])
    # a draw is how often each text is in it
    counts = rng.multinomial(texts, np.full(texts, 1 / texts), size=draws) / texts
    centred = values - mean
    moved = counts @ centred
    spread = np.sqrt(np.maximum(counts @ centred**2 - moved**2, 0) / (texts - 1))
    smallest = ROUNDING * np.maximum(np.abs(values).max(0, initial=0.0), 1e-300)
    # a draw of equal texts has no spread: it says nothing of how far means move
    has_spread = spread > smallest
    deviations = np.divide(moved, spread, out=np.zeros_like(moved), where=has_spread)
    return _Draws(mean, error, deviations)


def _mean_and_error(
    values: Float[np.ndarray, "text column"],
) -> tuple[Float[np.ndarray, " column"], Float[np.ndarray, " column"]]:
    mean = values.mean(0)
    return mean, values.std(0, ddof=1) / np.sqrt(len(values))


def told_apart(
    differences: Float[np.ndarray, "text comparison"], seed: int = 0, draws: int = DRAWS
) -> Bool[np.ndarray, " comparison"]:
    """Which differences are not zero, where all of them are judged together.

    A text on which a difference was not measured (NaN) is left out of all of them.

    >>> rng = np.random.default_rng(0)
    >>> told_apart(np.stack([rng.normal(size=50), rng.normal(1, 1, size=50)], axis=1)).tolist()
    [False, True]
    """
    if not differences.shape[1]:
        return np.zeros(0, dtype=bool)
    complete = differences[np.isfinite(differences).all(1)]
    if len(complete) < FEWEST_TEXTS:
        return np.zeros(differences.shape[1], dtype=bool)
    drawn = _drawn(complete, seed, draws)
    largest = np.abs(drawn.deviations).max(1)
    critical = float(np.quantile(largest, 1 - LEVEL))
    return np.abs(drawn.mean) > np.maximum(critical * drawn.error, _rounding(complete))


def _rounding(values: Float[np.ndarray, "text comparison"]) -> Float[np.ndarray, " comparison"]:
    """What two equal means may differ by: the last digits of what was summed."""
    return ROUNDING * np.maximum(np.abs(values).max(0), 1e-300)


def groups(
    values: Float[np.ndarray, "text method"],
    higher_is_better: bool,
    seed: int = 0,
    draws: int = DRAWS,
) -> list[str]:
    """Letters for methods: two that share one cannot be told apart; "a" is the best group.

    Every pair of methods is compared on the same texts, and all pairs are judged together. A method
    that was measured nowhere has no letter.

    >>> rng = np.random.default_rng(0)
    >>> level = rng.normal(size=(60, 1))
    >>> noise = rng.normal(scale=0.1, size=(60, 3))
    >>> groups(level + noise + np.array([0.0, 1.0, 1.0]), higher_is_better=True)
    ['b', 'a', 'a']
    """
    methods = [m for m in range(values.shape[1]) if np.isfinite(values[:, m]).any()]
    pairs = list(combinations(methods, 2))
    firsts, seconds = [i for i, _ in pairs], [j for _, j in pairs]
    apart = told_apart(values[:, firsts] - values[:, seconds], seed, draws)
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
