"""LIME, Shapley, Banzhaf and Beta Shapley values as what they have in common.

They are linear functionals of the game that treat all units alike. Such a functional only needs,
for each number k of kept units, the average of the game and its average where unit j is kept:

    β_j(v) = Σ_k base_k · E[v(z) | |z| = k] + slope_k · E[z_j v(z) | |z| = k]
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, lgamma, log

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.core.errors import SettingsError
from whence.games.ratio import RatioOfSums, kept_averages, mean_by_size

# Masks that are weighted at a time.
CHUNK = 2**15

# A bandwidth so small that it is the limit, to all digits, for any text.
NARROWEST = 1e-6

# The least weight of a size in the regression, beside the heaviest.
LEAST_WEIGHT = 1e-6

# The largest gap between the logarithms of the largest two weights.
LARGEST_GAP = 200.0


@dataclass(frozen=True, eq=False)
class Functional:
    """β_j = Σ_k base_k E[v | k kept] + slope_k E[z_j v | k kept].

    ``law`` holds the sizes' weights in the regression that it solves.
    """

    name: str
    base: Float[np.ndarray, " size"]
    slope: Float[np.ndarray, " size"]
    law: Float[np.ndarray, " size"]

    @property
    def units(self) -> int:
        """The number d of units of the games that it takes; sizes go from 0 to d."""
        return len(self.base) - 1

    def weights(self, masks: Bool[np.ndarray, "mask unit"]) -> Float[np.ndarray, "mask unit"]:
        """base_k + slope_k z_j: a mask's weight in β_j if it stood for all masks of its size."""
        size = masks.sum(1)
        return self.base[size][:, None] + self.slope[size][:, None] * masks

    def of_values(
        self,
        masks: Bool[np.ndarray, "mask unit"],
        values: Float[np.ndarray, " mask"],
        probabilities: Float[np.ndarray, " mask"] | None = None,
    ) -> Float[np.ndarray, " unit"]:
        """β from values at masks that stand for their sizes with ``probabilities``.

        Without these, masks of one size share it evenly: exact for all 2^d masks, each once.

        >>> masks = np.array([[False, False], [True, False], [False, True], [True, True]])
        >>> shapley(2).of_values(masks, np.array([0.0, 1.0, 2.0, 5.0]))
        array([2., 3.])
        """
        if probabilities is None:
            size = masks.sum(1)
            count = np.bincount(size, minlength=self.units + 1).clip(1)
            probabilities = (1 / count)[size]
        weighted = values * probabilities

        parts = []
        for first in range(0, len(masks), CHUNK):
            chunk = slice(first, first + CHUNK)
            parts.append(weighted[chunk] @ self.weights(masks[chunk]))
        return np.sum(parts, axis=0)

    def of_sizes(
        self, average: Float[np.ndarray, " size"], kept: Float[np.ndarray, "size unit"]
    ) -> Float[np.ndarray, " unit"]:
        """β from the table of averages, E[v | k kept] and E[z_j v | k kept]."""
        return self.base @ average + self.slope @ kept

    def of_linear(
        self, linear: Float[np.ndarray, " unit"], constant: float = 0.0
    ) -> Float[np.ndarray, " unit"]:
        """β of the additive game constant + Σ_j linear_j z_j.

        These are its coefficients, but for rounding and for a ridge.

        >>> lime(3, bandwidth=0.25).of_linear(np.array([1.0, -2.0, 0.5]), 7.0).round(9)
        array([ 1. , -2. ,  0.5])
        """
        size = np.arange(self.units + 1)
        # The probability that one given unit is kept, and that two are.
        share = size / self.units
        both = share * (size - 1) / max(self.units - 1, 1)

        own = self.base @ share + self.slope @ share
        other = self.base @ share + self.slope @ both
        of_constant = self.base.sum() + self.slope @ share
        return (own - other) * linear + other * linear.sum() + constant * of_constant

    def of_ratios(self, ratio: RatioOfSums) -> Float[np.ndarray, " unit"]:
        """β of a sum of ratios of sums, exactly, without enumeration."""
        from_base = (mean_by_size(ratio) @ self.base).sum()
        from_slope = kept_averages(ratio, self.slope[None])[:, 0].sum(0)
        return from_base + from_slope


def lime(
    units: int, bandwidth: int | float | None = 0.25, ridge: int | float = 0.0, whole: bool = False
) -> Functional:
    """The limit of LIME for many samples: weighted least squares with an intercept.

    A text has s ~ U{1 … d} units removed; with ``whole``, s ~ U{0 … d}. Its weight is
    exp(−δ²/2ν²) with δ = 1 − sqrt(k/d), the cosine distance (Mardaoui & Garreau 2021); a
    ``bandwidth`` ν of None is infinite. ``ridge`` is the penalty for each draw, so lime's own 1.0
    at 5000 draws is 0.0002.

    >>> lime(3, None).base.round(9), lime(3, None).slope.round(9)
    (array([-0.5, -0.5, -0.5,  0. ]), array([1.5, 1.5, 1.5, 0. ]))
    """
    if units == 1:
        # Only the empty text would be drawn, from which no slope follows: the only contrast
        # there is.
        return semivalue("lime", np.ones(1))
    if bandwidth is not None and not bandwidth > 0:
        raise SettingsError(f"bandwidth must be positive, or None for infinite, not {bandwidth}.")

    size = np.arange(units + 1 if whole else units)
    p, scale = _size_weights(size, units, bandwidth)
    if ridge and scale < 1e-200:
        raise SettingsError(
            f"with a bandwidth as small as {bandwidth} every weight vanishes beside a ridge of "
            f"{ridge}; set ridge to 0."
        )
    penalty = ridge / scale if ridge else 0.0

    # |z| − E|z| and its variance. Sizes are counted from the largest down, so that distances to
    # the mean size keep their digits when that size has nearly all the weight.
    down = size[-1] - size
    away = p @ down - down
    variance = p @ away**2
    # E[z_1 (1 − z_2)], the variance of z_j around its size's mean.
    within = p @ (size * (units - size)) / (units * (units - 1))

    # The normal equations split into a contrast among masks of one size and a slope along sizes:
    # β_j = Σ_k p_k E_k[(z_j − k/d) v] / within + p_k (k − E k) E_k[v] / variance.
    slope, base, law = np.zeros((3, units + 1))
    along_sizes = p * away / (variance + units * penalty)
    slope[: len(size)] = p / (within + penalty)
    base[: len(size)] = -slope[: len(size)] * size / units + along_sizes
    if whole:
        # Of the whole text every z_j is 1: nothing is contrasted, and what should cancel would
        # not, under a narrow bandwidth.
        slope[units] = 0.0
        base[units] = along_sizes[-1]

    # Any weights will do for the stand-in, whose residuals are estimated with the true ones. But
    # where all but one size weigh nothing, the regression loses its slope along sizes to
    # rounding, and would not know. The default bandwidth is far from this floor.
    law[: len(size)] = p.clip(LEAST_WEIGHT * p.max())
    return Functional("lime", base, slope, law)


def _size_weights(
    size: Int[np.ndarray, " size"], units: int, bandwidth: int | float | None
) -> tuple[Float[np.ndarray, " size"], float]:
    """The share of each size in LIME's weights, and the mean of the weights themselves."""
    logs = np.zeros(len(size))
    if bandwidth is not None and bandwidth != inf:
        delta = 1 - np.sqrt(size / units)
        logs = -((delta / max(bandwidth, NARROWEST)) ** 2) / 2
    largest = float(np.exp(logs[-1]))

    # As the bandwidth falls to 0 all weight goes to the largest size, and β to a limit that no
    # longer depends on how little is left for the next size: that little is kept above the
    # underflow.
    gaps = np.diff(logs)
    gaps[-1] = min(gaps[-1], LARGEST_GAP)
    below_largest = -np.cumsum(gaps[::-1])[::-1]
    weights = np.exp(np.concatenate([below_largest, [0.0]]))
    return weights / weights.sum(), largest * float(weights.mean())


def shapley(units: int) -> Functional:
    """Shapley (1953): a unit's marginal contribution, averaged over all orders of adding units.

    >>> shapley(2).slope
    array([0.5, 2. , 0.5])
    """
    return semivalue("shapley", np.full(units, 1 / units))


def banzhaf(units: int) -> Functional:
    """Banzhaf (1965): a unit's marginal contribution, averaged over all subsets of the others."""
    others = units - 1
    logs = [_log_choose(others, k) - others * log(2) for k in range(units)]
    return semivalue("banzhaf", np.exp(logs))


def beta_shapley(units: int, alpha: int | float = 2, beta: int | float = 2) -> Functional:
    """Beta(α, β) Shapley (Kwon & Zou 2022); (1, 1) is Shapley.

    Each other unit is present with probability p, and p ~ Beta(β, α).

    >>> beta_shapley(4, 1, 1).slope.round(9) == shapley(4).slope.round(9)
    array([ True,  True,  True,  True,  True])
    """
    others = units - 1
    logs = []
    for k in range(units):
        chance = _log_beta(k + beta, others - k + alpha) - _log_beta(beta, alpha)
        logs.append(_log_choose(others, k) + chance)
    return semivalue("beta-shapley", np.exp(logs))


def semivalue(name: str, others: Float[np.ndarray, " others"]) -> Functional:
    """Σ_k others_k · E[v(z with j) − v(z without j) | k others present] as a functional."""
    units = len(others)
    size = np.arange(units + 1)
    # Where j is one of the k that are kept, the others are k − 1.
    with_unit = np.concatenate([[0.0], others])
    without = np.concatenate([others, [0.0]])
    base = -without * units / (units - size).clip(1)
    slope = with_unit * units / size.clip(1) - base

    # Where nothing or everything is kept, no unit is told from another. These two sizes weigh as
    # their neighbours do; or, if one of them alone carries the sum, firmly.
    law = slope.copy()
    if units > 1:
        law[0], law[-1] = law[1], law[-2]
    return Functional(name, base, slope, law / law.sum())


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _log_beta(a: int | float, b: int | float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)
