"""Estimates of a functional from sampled masks, with standard errors.

An estimate is β(h) of a stand-in h for the game, plus the estimate of β on what h leaves over:

    β̂ = β(h) + Σ_k [estimated] base_k E_k[v − h] + slope_k E_k[z_j (v − h)]

h is known everywhere, so β(h) is exact. The second part is a survey estimate from complement
pairs, stratified by size.

With h the weighted linear fit to the same pairs this *is* LIME's least squares (and, for Shapley,
kernel regression): its normal equations make the second part vanish. With h a ratio-of-sums
surrogate that was fitted to *other* pairs (cross-fitting) the estimate is unbiased however poor h
is, and its variance is that of what h leaves over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import ndtri, stdtrit

from whence.games.functionals import Functional
from whence.games.ratio import RatioOfSums
from whence.games.sampling import MANY, pairs_of_size
from whence.games.surrogate import Surrogate, fit
from whence.games.threads import on_one_thread

FOLDS = 5

# Masks for each coefficient, below which the standard error of a regression is not to be trusted.
FIT_BY_CHANCE = 4

# Pairs of a size, below which neighbouring sizes share a stratum: of fewer the spread is hardly
# known.
IN_CELL = 4

# The regression's variance beside the surrogate's, below which ``auto`` takes it. To take the
# smaller of two that are about equal is to take the one whose error is too small by chance: without
# this margin the intervals of ``auto`` held one in a hundred less than those of either.
CLEARLY = 0.8

Stand = Literal["auto", "plain", "surrogate"]


@dataclass(frozen=True, eq=False)
class Sample:
    """Values at complement pairs, and at the two ends: all removed, all kept.

    The pairs were drawn by size; ``law`` is the share of each size of the smaller halves.
    """

    halves: Bool[np.ndarray, "pair unit"]
    law: Float[np.ndarray, " half"]
    values: Float[np.ndarray, "2 pair"]
    ends: Float[np.ndarray, " 2"]

    @classmethod
    def of(
        cls,
        game: Callable[[Any], Any],
        halves: Bool[np.ndarray, "pair unit"],
        law: Float[np.ndarray, " half"],
    ) -> Sample:
        """Ask the game for the values at pairs and ends, all at once."""
        asked = cls(halves, law, np.zeros((2, len(halves))), np.zeros(2))
        values = np.asarray(game(asked.masks), dtype=np.float64)
        return cls(halves, law, values[2:].reshape(2, -1), values[:2])

    @property
    def units(self) -> int:
        """The number of units."""
        return self.halves.shape[1]

    @property
    def masks(self) -> Bool[np.ndarray, "mask unit"]:
        """The ends, the smaller halves, then their complements."""
        return np.concatenate([ends_of(self.units), self.halves, ~self.halves])

    @property
    def all_values(self) -> Float[np.ndarray, " mask"]:
        """The values at ``masks``."""
        return np.concatenate([self.ends, self.values.ravel()])


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimate of β and its standard error.

    ``r2`` is the share of the game's variance that the stand-in explained where it was not fitted.
    ``unknown`` says why the standard error cannot be told, where it cannot; it is infinite then.
    """

    units: Float[np.ndarray, " unit"]
    standard_error: Float[np.ndarray, " unit"]
    estimator: str
    r2: float | None
    unknown: str = ""


def ends_of(units: int) -> Bool[np.ndarray, "2 unit"]:
    """All removed, all kept."""
    return np.stack([np.zeros(units, dtype=bool), np.ones(units, dtype=bool)])


@on_one_thread
def estimate(
    functional: Functional, sample: Sample, estimator: Stand = "auto", seed: int = 0
) -> Estimate:
    """An estimate of β from a sample; ``auto`` takes the stand-in with the smaller standard error.

    Where both are about as good it is the surrogate, whichever looks better by chance. With hardly
    more masks than coefficients a regression fits by chance, and its own error says too little;
    there ``auto`` takes the surrogate, too.
    """
    strata = stratify(sample)
    if estimator == "plain":
        return plain(functional, sample, strata)

    by_surrogate = with_surrogate(functional, sample, strata, seed)
    if estimator == "surrogate" or may_fit_by_chance(sample):
        return by_surrogate

    by_line = plain(functional, sample, strata)
    of_line = (by_line.standard_error**2).sum()
    of_surrogate = (by_surrogate.standard_error**2).sum()
    if of_line <= CLEARLY * of_surrogate:
        return by_line
    return by_surrogate


def may_fit_by_chance(sample: Sample) -> bool:
    """Whether there are too few masks for the standard error of a regression to be trusted."""
    return len(sample.masks) < FIT_BY_CHANCE * (sample.units + 1)


# ------------------------------------------------------------------ the survey: strata and errors


@dataclass(frozen=True, eq=False)
class Strata:
    """What each pair stands for.

    ``cell`` is the stratum of a pair, ``weight`` that with which the pair stands for its size,
    and ``drawn`` the share of each stratum that was drawn.
    """

    cell: Int[np.ndarray, " pair"]
    weight: Float[np.ndarray, " pair"]
    drawn: Float[np.ndarray, " cell"]


def stratify(sample: Sample) -> Strata:
    """One stratum for each size of which enough pairs were drawn, or all there are.

    Other sizes share a stratum with their neighbours.
    """
    units = sample.units
    size = sample.halves.sum(1)
    halves = np.arange(1, units // 2 + 1)
    drawn = np.bincount(size, minlength=units // 2 + 1)[1:]
    there = np.array([min(pairs_of_size(units, k), MANY) for k in halves.tolist()])

    cells = _cells(drawn, there)
    cell_of = np.zeros(len(drawn), dtype=np.int64)
    share = np.zeros(len(cells))
    for index, members in enumerate(cells):
        cell_of[members] = index
        if len(members) == 1:
            share[index] = drawn[members[0]] / there[members[0]]

    law = np.bincount(cell_of, sample.law) / np.bincount(cell_of, drawn)
    of_two_halves = np.where(2 * halves == units, 0.5, 1.0)
    weight = law[cell_of] / sample.law * of_two_halves
    return Strata(cell_of[size - 1], weight[size - 1], share)


def _cells(drawn: Int[np.ndarray, " half"], there: Int[np.ndarray, " half"]) -> list[list[int]]:
    """The sizes (counted from 0) of each stratum, from how many pairs were drawn and there are."""
    cells: list[list[int]] = [[int(k)] for k in np.flatnonzero(drawn == there)]
    complete = len(cells)

    open_cell: list[int] = []
    for k in np.flatnonzero(drawn < there).tolist():
        open_cell.append(k)
        if drawn[open_cell].sum() >= IN_CELL:
            cells.append(open_cell)
            open_cell = []
    if not open_cell:
        return cells

    # Too few are left for a stratum of their own. They join the one before, or, if there is none,
    # a complete one.
    if len(cells) > complete or drawn[open_cell].sum() < 2:
        cells[-1] += open_cell
    else:
        cells.append(open_cell)
    return cells


def contributions(
    functional: Functional, sample: Sample, strata: Strata, residuals: Float[np.ndarray, "2 pair"]
) -> Float[np.ndarray, "pair unit"]:
    """What each pair adds to the survey estimate of β on values at the pairs (without the ends)."""
    low = functional.weights(sample.halves) * residuals[0][:, None]
    high = functional.weights(~sample.halves) * residuals[1][:, None]
    return (low + high) * strata.weight[:, None]


def standard_error(
    strata: Strata, parts: Float[np.ndarray, "pair unit"]
) -> Float[np.ndarray, " unit"]:
    """The standard error of the sum of ``parts``, from their spread within strata.

    Each stratum was drawn without replacement. Of few pairs the spread itself is uncertain, so it
    is widened by Student's t, with the degrees of freedom of Satterthwaite (1946): ±1.96 of it is
    the interval of 95 %.
    """
    count = np.bincount(strata.cell).astype(np.float64)
    mean = _sums_by_cell(strata, parts) / count[:, None]
    squares = _sums_by_cell(strata, (parts - mean[strata.cell]) ** 2)

    freedom = (count - 1).clip(1)[:, None]
    not_drawn = 1 - strata.drawn
    variances = squares * (count * not_drawn)[:, None] / freedom

    total = variances.sum(0)
    spread = (variances**2 / freedom).sum(0)
    of_total = np.where(spread > 0, total**2 / np.where(spread > 0, spread, 1.0), np.inf)
    return widened(np.sqrt(total), of_total)


def _sums_by_cell(
    strata: Strata, parts: Float[np.ndarray, "pair unit"]
) -> Float[np.ndarray, "cell unit"]:
    """The sum of the parts of each stratum."""
    return np.stack([np.bincount(strata.cell, part) for part in parts.T], 1)


def widened(
    error: Float[np.ndarray, " unit"], freedom: Float[np.ndarray, " unit"] | float
) -> Float[np.ndarray, " unit"]:
    """A standard error times the ratio of Student's 97.5 % quantile to the normal one.

    >>> widened(np.array([1.0, 1.0]), np.array([10.0, np.inf])).round(3)
    array([1.137, 1.   ])
    """
    many = np.minimum(np.asarray(freedom, dtype=np.float64), 1e9)
    return error * stdtrit(many, 0.975) / ndtri(0.975)


# ------------------------------------------------------------------ the linear stand-in


def plain(functional: Functional, sample: Sample, strata: Strata) -> Estimate:
    """The linear stand-in: LIME as it is, and kernel regression for Shapley values.

    It is fitted by weighted least squares to all pairs and the ends. The standard error takes
    each pair's residuals from the fit without that pair (the jackknife's, HC3).
    """
    masks = sample.masks
    values = sample.all_values
    of_sampling = np.concatenate([[1.0, 1.0], strata.weight, strata.weight])
    weight = functional.law[masks.sum(1)] * of_sampling

    # Least squares by the singular values of the weighted design.
    root = np.sqrt(weight)
    design = np.concatenate([np.ones((len(masks), 1)), masks], 1) * root[:, None]
    left, singular, right = np.linalg.svd(design, full_matrices=False)
    keep = singular > 1e-10 * singular[0]
    left = left[:, keep]
    coefficients = right[keep].T @ (left.T @ (root * values) / singular[keep])
    constant, slopes = coefficients[0], coefficients[1:]

    # What it leaves over, at the ends and at the pairs.
    residuals = values - constant - masks @ slopes
    ends = residuals[:2]
    inside = residuals[2:].reshape(2, -1)
    left_of_pairs = left[2:].reshape(2, -1, left.shape[1])
    without = _left_out(left_of_pairs, root[2:].reshape(2, -1), inside)

    # β̂ = β(h) + the ends' part + the estimate from the pairs
    exact = functional.of_linear(slopes, float(constant))
    from_ends = ends @ functional.weights(ends_of(sample.units))
    correction = contributions(functional, sample, strata, inside).sum(0)
    error = standard_error(strata, contributions(functional, sample, strata, without))
    r2 = _r2(without, sample, weight[2:])
    return Estimate(exact + from_ends + correction, error, "plain", r2)


def _left_out(
    left: Float[np.ndarray, "2 pair rank"],
    root: Float[np.ndarray, "2 pair"],
    residuals: Float[np.ndarray, "2 pair"],
) -> Float[np.ndarray, "2 pair"]:
    """Each pair's residuals of the fit without it: (I − H_pp)⁻¹ r_p.

    H is the hat matrix of the weighted rows, H_pp its two rows and columns of pair p.
    """
    hat = np.einsum("apr,bpr->pab", left, left)
    inverse = np.linalg.pinv(np.eye(2) - hat, rcond=1e-9, hermitian=True)
    weighted = np.einsum("pab,bp->ap", inverse, root * residuals)
    return np.where(root > 0, weighted / np.where(root > 0, root, 1.0), residuals)


# ------------------------------------------------------------------ the surrogate as stand-in


def with_surrogate(
    functional: Functional, sample: Sample, strata: Strata, seed: int = 0
) -> Estimate:
    """The ratio-of-sums stand-in, fitted without the fold of the pairs that correct it."""
    folds = fold_pairs(sample, seed)
    stands = _stands(sample, folds)
    count = len(stands)

    # What each surrogate leaves over: at the ends, at the pairs, and at those it has not seen.
    left_over = np.stack([sample.all_values - stand(sample.masks) for stand in stands])
    ends = left_over[:, :2].mean(0)
    inside = left_over[:, 2:].reshape(count, 2, -1)
    pair = np.arange(len(folds))
    unseen = np.stack([inside[folds, member, pair] for member in range(2)])

    # Drawn without replacement, a fold stands for all but the pairs that its surrogate has seen;
    # those stand for themselves.
    seen = (inside.sum(0) - unseen) / count
    share = strata.drawn[strata.cell]
    parts = contributions(functional, sample, strata, unseen)
    of_seen = contributions(functional, sample, strata, share * seen)
    of_unseen = parts * (1 - share * (1 - 1 / count))[:, None]

    # β̂ = β(h) + the ends' part + the estimate from the pairs
    exact = of_stands(functional, stands)
    from_ends = ends @ functional.weights(ends_of(sample.units))
    correction = (of_seen + of_unseen).sum(0)
    error = standard_error(strata, parts)

    sizes = np.stack([sample.halves.sum(1), (~sample.halves).sum(1)])
    weight = (functional.law[sizes] * strata.weight).ravel()
    r2 = _r2(unseen, sample, weight)
    return Estimate(exact + from_ends + correction, error, "surrogate", r2)


def _stands(sample: Sample, folds: Int[np.ndarray, " pair"]) -> list[Surrogate]:
    """One surrogate for each fold, fitted to the others."""
    # Pairs in the order of drawing, so that the first rows are like all rows.
    pairs = 2 + np.arange(2 * len(folds)).reshape(2, -1)
    order = np.concatenate([[0, 1], pairs.T.ravel()])
    # The ends are known, not drawn: any fold will do.
    every = np.concatenate([[0, 1], folds, folds])
    return _fitted(
        sample.masks[order].tobytes(),
        sample.all_values[order].tobytes(),
        every[order].tobytes(),
    )


@lru_cache(maxsize=8)
def _fitted(masks: bytes, values: bytes, folds: bytes) -> list[Surrogate]:
    """The surrogates of a sample, remembered: LIME, Shapley and their siblings ask for the same."""
    y = np.frombuffer(values)
    z = np.frombuffer(masks, dtype=bool).reshape(len(y), -1)
    return fit(z, y, np.frombuffer(folds, dtype=np.int64))


def fold_pairs(sample: Sample, seed: int) -> Int[np.ndarray, " pair"]:
    """Folds as equal as can be within each size.

    They are dealt round by size, and within a size in the order of drawing, which is random.
    """
    order = np.argsort(sample.halves.sum(1), kind="stable")
    folds = np.empty(len(order), dtype=np.int64)
    dealt = np.random.default_rng([seed, 1]).permutation(FOLDS)
    folds[order] = dealt[np.arange(len(order)) % FOLDS]
    return folds


def of_stands(functional: Functional, stands: list[Surrogate]) -> Float[np.ndarray, " unit"]:
    """The mean of β over surrogates, exactly; all their ratios in one go."""
    share = 1 / len(stands)
    ratios = RatioOfSums(
        n=share * np.concatenate([stand.n for stand in stands]),
        nh=share * np.concatenate([stand.nh for stand in stands]),
        g=np.concatenate([stand.g for stand in stands]),
        gh=np.concatenate([stand.gh for stand in stands]),
        n0=share * np.concatenate([stand.n0 for stand in stands]),
        d0=np.concatenate([stand.d0 for stand in stands]),
    )
    linear = np.mean([stand.linear for stand in stands], axis=0)
    constant = float(np.mean([stand.constant for stand in stands]))
    return functional.of_linear(linear, constant) + functional.of_ratios(ratios)


def _r2(
    residuals: Float[np.ndarray, "2 pair"], sample: Sample, weight: Float[np.ndarray, " mask"]
) -> float:
    """The weighted share of the variance of the values that is not in the residuals."""
    values = sample.values.ravel()
    mean = weight @ values / weight.sum()
    total = weight @ (values - mean) ** 2
    if not total > 0:
        return 1.0
    return float(1 - weight @ residuals.ravel() ** 2 / total)
