"""Estimates of a functional from sampled masks, with standard errors: β(h) of a stand-in h, plus the estimate of β on what h leaves over.

    β̂ = β(h) + Σ_k [estimated] base_k E_k[v − h] + slope_k E_k[z_j (v − h)]

h is known everywhere, so β(h) is exact; the second part is a survey estimate from complement pairs, stratified by size. With h the
weighted linear fit to the same pairs this *is* LIME's least squares (and, for Shapley, kernel regression): its normal equations make the
second part vanish. With h a ratio-of-sums surrogate fitted to *other* pairs (cross-fitting) it stays unbiased however poor h is, and its
variance is that of what h leaves over.
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
from whence.games.sampling import pairs_of_size
from whence.games.surrogate import Surrogate, fit
from whence.games.threads import one_thread

FOLDS = 5
FIT_BY_CHANCE = 4  # masks for each coefficient, below which the standard error of a regression is not to be trusted
IN_CELL = (
    4  # pairs, below which neighbouring sizes share a stratum: of fewer the spread is hardly known
)
Stand = Literal["auto", "plain", "surrogate"]


@dataclass(frozen=True, eq=False)
class Sample:
    """Values at complement pairs, drawn by size from ``law`` (of the smaller halves), and at the two ends, all removed and all kept."""

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
    def masks(self) -> Bool[np.ndarray, "mask unit"]:
        """The ends, the smaller halves, then their complements."""
        return np.concatenate([ends_of(self.halves.shape[1]), self.halves, ~self.halves])

    @property
    def all_values(self) -> Float[np.ndarray, " mask"]:
        """The values at ``masks``."""
        return np.concatenate([self.ends, self.values.ravel()])


@dataclass(frozen=True, eq=False)
class Estimate:
    """β̂, its standard error, and the share of the game's variance that the stand-in explained where it was not fitted."""

    units: Float[np.ndarray, " unit"]
    standard_error: Float[np.ndarray, " unit"]
    estimator: str
    r2: float | None


def ends_of(units: int) -> Bool[np.ndarray, "2 unit"]:
    """All removed, all kept."""
    return np.stack([np.zeros(units, dtype=bool), np.ones(units, dtype=bool)])


@one_thread()
def estimate(
    functional: Functional, sample: Sample, estimator: Stand = "auto", seed: int = 0
) -> Estimate:
    """β̂ from a sample; ``auto`` takes the surrogate where its error out of fold is the smaller.

    With hardly more masks than coefficients a regression fits by chance, and its own error says too little: there, too, the surrogate.
    """
    strata = stratify(sample)
    if estimator == "plain":
        return plain(functional, sample, strata)
    ours = with_surrogate(functional, sample, strata, seed)
    if estimator == "surrogate" or may_fit_by_chance(sample):
        return ours
    theirs = plain(functional, sample, strata)
    return ours if (ours.standard_error**2).sum() < (theirs.standard_error**2).sum() else theirs


def may_fit_by_chance(sample: Sample) -> bool:
    """Whether there are too few masks for the standard error of a regression to be trusted."""
    return len(sample.masks) < FIT_BY_CHANCE * (sample.halves.shape[1] + 1)


@dataclass(frozen=True, eq=False)
class Strata:
    """The stratum of each pair, the weight with which the pair stands for its size, and the share of each stratum that was drawn."""

    cell: Int[np.ndarray, " pair"]
    weight: Float[np.ndarray, " pair"]
    drawn: Float[np.ndarray, " cell"]


def stratify(sample: Sample) -> Strata:
    """One stratum for each size of which enough pairs were drawn (or all there are); neighbouring sizes share one otherwise."""
    units = sample.halves.shape[1]
    size = sample.halves.sum(1)
    drawn = np.bincount(size, minlength=units // 2 + 1)[1:]
    there = np.array([min(pairs_of_size(units, k), 2**40) for k in range(1, units // 2 + 1)])
    cells: list[list[int]] = [[int(k)] for k in np.flatnonzero(drawn == there)]
    whole = len(cells)
    open_cell: list[int] = []
    for k in np.flatnonzero(drawn < there).tolist():
        open_cell.append(k)
        if drawn[open_cell].sum() >= IN_CELL:
            cells.append(open_cell)
            open_cell = []
    if open_cell:  # too few are left for a stratum of their own: they join the one before, or, if there is none, a complete one
        if len(cells) > whole or drawn[open_cell].sum() < 2:
            cells[-1] += open_cell
        else:
            cells.append(open_cell)
    cell_of = np.zeros(len(drawn), dtype=np.int64)
    for index, members in enumerate(cells):
        cell_of[members] = index
    law = np.bincount(cell_of, sample.law) / np.bincount(cell_of, drawn)
    share = np.array(
        [drawn[members[0]] / there[members[0]] if len(members) == 1 else 0.0 for members in cells]
    )
    weight = (
        law[cell_of] / sample.law * np.where(2 * np.arange(1, len(drawn) + 1) == units, 0.5, 1.0)
    )
    return Strata(cell_of[size - 1], weight[size - 1], share)


def contributions(
    functional: Functional, sample: Sample, strata: Strata, residuals: Float[np.ndarray, "2 pair"]
) -> Float[np.ndarray, "pair unit"]:
    """What each pair adds to the survey estimate of β on values at the pairs (without the ends)."""
    low, high = (
        functional.weights(masks) * r[:, None]
        for masks, r in zip((sample.halves, ~sample.halves), residuals, strict=True)
    )
    return (low + high) * strata.weight[:, None]


def standard_error(
    strata: Strata, parts: Float[np.ndarray, "pair unit"]
) -> Float[np.ndarray, " unit"]:
    """The standard error of the sum of ``parts`` from their spread within strata, each drawn without replacement.

    Of few pairs the spread itself is uncertain. So it is widened by Student's t, with the degrees of freedom of Satterthwaite (1946):
    ±1.96 of it is the interval of 95 %.
    """
    count = np.bincount(strata.cell).astype(np.float64)
    mean = np.stack([np.bincount(strata.cell, part) / count for part in parts.T], 1)
    squares = np.stack(
        [np.bincount(strata.cell, square) for square in ((parts - mean[strata.cell]) ** 2).T], 1
    )
    freedom = (count - 1).clip(1)[:, None]
    variances = squares * (count * (1 - strata.drawn))[:, None] / freedom
    total, spread = variances.sum(0), (variances**2 / freedom).sum(0)
    return widened(
        np.sqrt(total), np.where(spread > 0, total**2 / np.where(spread > 0, spread, 1.0), np.inf)
    )


def widened(
    error: Float[np.ndarray, " unit"], freedom: Float[np.ndarray, " unit"] | float
) -> Float[np.ndarray, " unit"]:
    """A standard error times the ratio of Student's 97.5 % quantile to the normal one.

    >>> widened(np.array([1.0, 1.0]), np.array([10.0, np.inf])).round(3)
    array([1.137, 1.   ])
    """
    many = np.minimum(np.asarray(freedom, dtype=np.float64), 1e9)
    return error * stdtrit(many, 0.975) / ndtri(0.975)


def plain(functional: Functional, sample: Sample, strata: Strata) -> Estimate:
    """The linear stand-in, fitted by weighted least squares to all pairs and the ends: LIME as it is, kernel regression for Shapley.

    The standard error takes each pair's residuals from the fit without that pair (the jackknife's, HC3).
    """
    masks, values = sample.masks, sample.all_values
    weight = functional.law[masks.sum(1)] * np.concatenate(
        [[1.0, 1.0], strata.weight, strata.weight]
    )
    root = np.sqrt(weight)[:, None]
    design = np.concatenate([np.ones((len(masks), 1)), masks], 1) * root
    left, singular, right = np.linalg.svd(design, full_matrices=False)
    keep = singular > 1e-10 * singular[0]
    left = left[:, keep]
    coefficients = right[keep].T @ (left.T @ (root[:, 0] * values) / singular[keep])
    residuals = values - coefficients[0] - masks @ coefficients[1:]
    ends, inside = residuals[:2], residuals[2:].reshape(2, -1)
    without = _left_out(left[2:].reshape(2, -1, left.shape[1]), root[2:, 0].reshape(2, -1), inside)
    correction = contributions(functional, sample, strata, inside).sum(0)
    error = standard_error(strata, contributions(functional, sample, strata, without))
    units = (
        functional.of_linear(coefficients[1:], float(coefficients[0]))
        + ends @ functional.weights(ends_of(masks.shape[1]))
        + correction
    )
    return Estimate(units, error, "plain", _r2(without, sample, weight[2:]))


def _left_out(
    left: Float[np.ndarray, "2 pair rank"],
    root: Float[np.ndarray, "2 pair"],
    residuals: Float[np.ndarray, "2 pair"],
) -> Float[np.ndarray, "2 pair"]:
    """Each pair's residuals of the fit without it, (I − H_pp)^{-1} r_p, H the hat matrix of the weighted rows."""
    hat = np.einsum("apr,bpr->pab", left, left)
    inverse = np.linalg.pinv(np.eye(2) - hat, rcond=1e-9, hermitian=True)
    weighted = np.einsum("pab,bp->ap", inverse, root * residuals)
    return np.where(root > 0, weighted / np.where(root > 0, root, 1.0), residuals)


def with_surrogate(
    functional: Functional, sample: Sample, strata: Strata, seed: int = 0
) -> Estimate:
    """The ratio-of-sums stand-in, fitted without the fold of the pairs that correct it."""
    folds = fold_pairs(sample, seed)
    stands = _stands(sample, folds)
    left = np.stack([sample.all_values - stand(sample.masks) for stand in stands])
    ends, inside = left[:, :2].mean(0), left[:, 2:].reshape(len(stands), 2, -1)
    unseen = np.stack([inside[folds, member, np.arange(len(folds))] for member in range(2)])
    # Drawn without replacement, a fold stands for all but the pairs that its surrogate has seen; those stand for themselves.
    seen = (inside.sum(0) - unseen) / len(stands)
    share = strata.drawn[strata.cell]
    parts = contributions(functional, sample, strata, unseen)
    correction = (
        contributions(functional, sample, strata, share * seen)
        + parts * (1 - share * (1 - 1 / len(stands)))[:, None]
    ).sum(0)
    units = (
        of_stands(functional, stands)
        + ends @ functional.weights(ends_of(sample.halves.shape[1]))
        + correction
    )
    weight = (
        functional.law[np.stack([sample.halves.sum(1), (~sample.halves).sum(1)])] * strata.weight
    ).ravel()
    return Estimate(units, standard_error(strata, parts), "surrogate", _r2(unseen, sample, weight))


def _stands(sample: Sample, folds: Int[np.ndarray, " pair"]) -> list[Surrogate]:
    """One surrogate for each fold, fitted to the others; pairs in the order of drawing, so that the first rows are like all rows."""
    order = np.concatenate([[0, 1], 2 + np.arange(2 * len(folds)).reshape(2, -1).T.ravel()])
    every = np.concatenate(
        [[0, 1], folds, folds]
    )  # the ends are known, not drawn: any fold will do
    return _fitted(
        *(
            np.ascontiguousarray(rows[order]).tobytes()
            for rows in (sample.masks, sample.all_values, every)
        )
    )


@lru_cache(maxsize=8)
def _fitted(masks: bytes, values: bytes, folds: bytes) -> list[Surrogate]:
    """The surrogates of a sample, remembered: LIME, Shapley and their siblings ask for the same ones in turn."""
    y = np.frombuffer(values)
    return fit(
        np.frombuffer(masks, dtype=bool).reshape(len(y), -1),
        y,
        np.frombuffer(folds, dtype=np.int64),
    )


def fold_pairs(sample: Sample, seed: int) -> Int[np.ndarray, " pair"]:
    """Folds as equal as can be within each size: dealt round by size, and within a size in the order of drawing, which is random."""
    order = np.argsort(sample.halves.sum(1), kind="stable")
    folds = np.empty(len(order), dtype=np.int64)
    dealt = np.random.default_rng([seed, 1]).permutation(FOLDS)
    folds[order] = dealt[np.arange(len(order)) % FOLDS]
    return folds


def of_stands(functional: Functional, stands: list[Surrogate]) -> Float[np.ndarray, " unit"]:
    """The mean of β over surrogates, exactly; all their ratios in one go."""
    share = 1 / len(stands)
    joined = (
        np.concatenate([getattr(stand, field) for stand in stands])
        for field in ("n", "nh", "g", "gh", "n0", "d0")
    )
    n, nh, g, gh, n0, d0 = joined
    linear = functional.of_linear(
        np.mean([stand.linear for stand in stands], axis=0),
        float(np.mean([stand.constant for stand in stands])),
    )
    return linear + functional.of_ratios(RatioOfSums(share * n, share * nh, g, gh, share * n0, d0))


def _r2(
    residuals: Float[np.ndarray, "2 pair"], sample: Sample, weight: Float[np.ndarray, " mask"]
) -> float:
    values = sample.values.ravel()
    total = weight @ (values - weight @ values / weight.sum()) ** 2
    return float(1 - weight @ residuals.ravel() ** 2 / total) if total > 0 else 1.0
