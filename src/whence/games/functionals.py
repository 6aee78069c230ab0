"""LIME, Shapley, Banzhaf and Beta Shapley as what they have in common: linear functionals of the game that treat all units alike.

Such a functional only needs, for each number k of kept units, the average of the game and its average where unit j is kept:

    β_j(v) = Σ_k base_k · E[v(z) | |z| = k] + slope_k · E[z_j v(z) | |z| = k]
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, lgamma, log

import numpy as np
from jaxtyping import Bool, Float

from whence.core.errors import SettingsError
from whence.games.ratio import RatioOfSums, kept_averages, mean_by_size

CHUNK = 2**15  # masks weighted at a time
NARROWEST = 1e-6  # bandwidth: the limit, to all digits, for any text
LEAST_WEIGHT = 1e-6  # of a size beside the heaviest, in the regression
LARGEST_GAP = 200.0  # of the logarithms of the largest two weights


@dataclass(frozen=True, eq=False)
class Functional:
    """β_j = Σ_k base_k E[v | k kept] + slope_k E[z_j v | k kept], and ``law``: the sizes' weights in the regression that it solves."""

    name: str
    base: Float[np.ndarray, " size"]
    slope: Float[np.ndarray, " size"]
    law: Float[np.ndarray, " size"]

    @property
    def units(self) -> int:
        """The number d of units of the games that it takes; sizes go from 0 to d."""
        return len(self.base) - 1

    def weights(self, masks: Bool[np.ndarray, "mask unit"]) -> Float[np.ndarray, "mask unit"]:
        """base_k + slope_k z_j for each mask: its weight in β_j if it stood for all masks of its size."""
        size = masks.sum(1)
        return self.base[size][:, None] + self.slope[size][:, None] * masks

    def of_values(
        self,
        masks: Bool[np.ndarray, "mask unit"],
        values: Float[np.ndarray, " mask"],
        probabilities: Float[np.ndarray, " mask"] | None = None,
    ) -> Float[np.ndarray, " unit"]:
        """β from values at masks that stand for their sizes with ``probabilities``; exact for all 2^d masks, each once.

        >>> masks = np.array([[False, False], [True, False], [False, True], [True, True]])
        >>> shapley(2).of_values(masks, np.array([0.0, 1.0, 2.0, 5.0]))
        array([2., 3.])
        """
        if probabilities is None:
            probabilities = (1 / np.bincount(masks.sum(1), minlength=self.units + 1).clip(1))[
                masks.sum(1)
            ]
        weighted = values * probabilities
        parts = (
            weighted[i : i + CHUNK] @ self.weights(masks[i : i + CHUNK])
            for i in range(0, len(masks), CHUNK)
        )
        return np.sum(list(parts), axis=0)

    def of_sizes(
        self, average: Float[np.ndarray, " size"], kept: Float[np.ndarray, "size unit"]
    ) -> Float[np.ndarray, " unit"]:
        """β from the table of averages, E[v | k kept] and E[z_j v | k kept]."""
        return self.base @ average + self.slope @ kept

    def of_linear(
        self, linear: Float[np.ndarray, " unit"], constant: float = 0.0
    ) -> Float[np.ndarray, " unit"]:
        """β of the additive game constant + Σ_j linear_j z_j: its coefficients, but for rounding and for a ridge.

        >>> lime(3, bandwidth=0.25).of_linear(np.array([1.0, -2.0, 0.5]), 7.0).round(9)
        array([ 1. , -2. ,  0.5])
        """
        share = np.arange(self.units + 1) / self.units
        both = (
            share * (np.arange(self.units + 1) - 1) / max(self.units - 1, 1)
        )  # P(two given units are kept)
        own, other = self.base @ share + self.slope @ share, self.base @ share + self.slope @ both
        return (
            (own - other) * linear
            + other * linear.sum()
            + constant * (self.base.sum() + self.slope @ share)
        )

    def of_ratios(self, ratio: RatioOfSums) -> Float[np.ndarray, " unit"]:
        """β of a sum of ratios of sums, exactly, without enumeration."""
        return (mean_by_size(ratio) @ self.base).sum() + kept_averages(ratio, self.slope[None])[
            :, 0
        ].sum(0)


def lime(
    units: int, bandwidth: int | float | None = 0.25, ridge: int | float = 0.0, whole: bool = False
) -> Functional:
    """The limit of LIME for many samples: weighted least squares with intercept, s ~ U{1 … d} units removed.

    The weight is exp(−δ²/2ν²) with δ = 1 − sqrt(k/d), the cosine distance (Mardaoui & Garreau 2021); ``bandwidth`` None is infinite.
    ``ridge`` is the penalty for each draw, so lime's own 1.0 at 5000 draws is 0.0002. ``whole`` draws s ~ U{0 … d} instead.

    >>> lime(3, None).base.round(9), lime(3, None).slope.round(9)
    (array([-0.5, -0.5, -0.5,  0. ]), array([1.5, 1.5, 1.5, 0. ]))
    """
    if (
        units == 1
    ):  # only the empty text would be drawn, from which no slope follows: the only contrast there is
        return semivalue("lime", np.ones(1))
    size = np.arange(units + 1 if whole else units)
    if bandwidth is not None and not bandwidth > 0:
        raise SettingsError(f"bandwidth must be positive, or None for infinite, not {bandwidth}.")
    delta = 1 - np.sqrt(size / units)
    logs = (
        np.zeros(len(size))
        if bandwidth in (None, inf)
        else -((delta / max(bandwidth, NARROWEST)) ** 2) / 2
    )
    scale = float(np.exp(logs[-1]))
    # As the bandwidth falls to 0 all weight goes to the largest size, and β to a limit that no longer depends on how little is left
    # for the next size: that little is kept above the underflow.
    gaps = np.diff(logs)
    gaps[-1] = min(gaps[-1], LARGEST_GAP)
    logs = np.concatenate([-np.cumsum(gaps[::-1])[::-1], [0.0]])
    scale, p = scale * float(np.exp(logs).mean()), np.exp(logs) / np.exp(logs).sum()
    if ridge and scale < 1e-200:
        raise SettingsError(
            f"with a bandwidth as small as {bandwidth} every weight vanishes beside a ridge of {ridge}; set ridge to 0."
        )
    # Counted from the largest size down, so that distances to the mean size keep their digits when that size has nearly all the weight.
    down = size[-1] - size
    away = p @ down - down  # |z| − E|z|
    variance = p @ away**2
    within = (
        p @ (size * (units - size)) / (units * (units - 1))
    )  # E[z_1 (1 − z_2)], the variance of z_j around its size's mean
    penalty = ridge / scale if ridge else 0.0
    # The normal equations split into a contrast among masks of one size and a slope along sizes:
    # β_j = Σ_k p_k E_k[(z_j − k/d) v] / within + p_k (k − E k) E_k[v] / variance.
    slope, base, law = np.zeros((3, units + 1))
    slope[: len(size)] = p / (within + penalty)
    base[: len(size)] = -slope[: len(size)] * size / units + p * away / (variance + units * penalty)
    if whole:  # of the whole text every z_j is 1: nothing is contrasted, and what should cancel would not, under a narrow bandwidth
        slope[units], base[units] = 0.0, p[-1] * away[-1] / (variance + units * penalty)
    # Any weights will do for the stand-in, whose residuals are estimated with the true ones; but where all but one size weigh nothing,
    # the regression loses its slope along sizes to rounding, and would not know. The default bandwidth is far from this floor.
    law[: len(size)] = p.clip(LEAST_WEIGHT * p.max())
    return Functional("lime", base, slope, law)


def shapley(units: int) -> Functional:
    """Shapley (1953): the marginal contribution of a unit, averaged over all orders of adding units.

    >>> shapley(2).slope
    array([0.5, 2. , 0.5])
    """
    return semivalue("shapley", np.full(units, 1 / units))


def banzhaf(units: int) -> Functional:
    """Banzhaf (1965): the marginal contribution of a unit, averaged over all subsets of the others."""
    return semivalue(
        "banzhaf", np.exp([_log_choose(units - 1, k) - (units - 1) * log(2) for k in range(units)])
    )


def beta_shapley(units: int, alpha: int | float = 2, beta: int | float = 2) -> Functional:
    """Beta(α, β) Shapley (Kwon & Zou 2022): each other unit is present with probability p, p ~ Beta(β, α); (1, 1) is Shapley.

    >>> beta_shapley(4, 1, 1).slope.round(9) == shapley(4).slope.round(9)
    array([ True,  True,  True,  True,  True])
    """
    d = units
    logs = [
        _log_choose(d - 1, k) + _log_beta(k + beta, d - 1 - k + alpha) - _log_beta(beta, alpha)
        for k in range(d)
    ]
    return semivalue("beta-shapley", np.exp(logs))


def semivalue(name: str, others: Float[np.ndarray, " others"]) -> Functional:
    """Σ_k others_k · E[v(z with j) − v(z without j) | k others present] as a functional."""
    d = len(others)
    size = np.arange(d + 1)
    with_unit = np.concatenate([[0.0], others])  # by |z| = k: the others are k − 1
    without = np.concatenate([others, [0.0]])
    base = -without * d / (d - size).clip(1)
    slope = with_unit * d / size.clip(1) - base
    law = slope.copy()
    if (
        d > 1
    ):  # where nothing or everything is kept no unit is told from another: as its neighbour, or, if it alone carries the sum, firmly
        law[0], law[-1] = law[1], law[-2]
    return Functional(name, base, slope, law / law.sum())


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _log_beta(a: int | float, b: int | float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)
