"""A small stand-in for a game: a linear part, and ratios of sums, which is how attention itself depends on the units that are kept.

h(z) = constant + linear·z + Σ_t N_t(z) / D_t(z), and of each ratio the average over all masks of one size is known exactly (core/ratio.py).
The numerators enter linearly, the denominators do not. So the denominators are found in two rounds, and the rest follows in closed form:

1. everything together, by Adam on the squared error, all folds in one product of matrices: cheap and rough;
2. the denominators, with the scale of each unit's part and the noise, by the gradient of the marginal likelihood under a Gaussian prior
   on the numerators and the linear part, which are thereby integrated out (MacKay 1992; Rasmussen & Williams 2006, eq. 5.9). This is
   what makes a fit with more parameters than values a good one;
3. numerators and linear part, by the ridge regression that this prior amounts to.

Both rounds take a fixed number of steps, so the cost is known beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.linalg import get_lapack_funcs

from whence.core.errors import InputError
from whence.games.ratio import RatioOfSums
from whence.games.threads import one_thread

ROUGH_RATE, ROUGH_DECAY = 0.03, 0.03
FINE_RATE = 0.1
ROUGH_STEPS, FINE_STEPS = (
    150,
    30,
)  # twice as many lower the error at a thousand masks by a tenth, for the price of 200 passes
FINE_ROWS = 240  # of one step of the second round, whose cost grows with their cube; the steps take turns through all rows
MOST_FEATURES = 1000  # columns of the last regression: a text of more than 120 units gets fewer than eight terms
APART = 0.5  # spread of the first log weights: terms that start alike stay alike
STEEPEST = 5.0  # log weight in a denominator after the first round
SCALES = {
    "numerator": 0.4,
    "linear": 0.5,
    "constant": 0.3,
    "noise": 0.02,
}  # variances at the start, the first two over all units
HYPER = 0.05  # precision of the prior on the logarithms of the scales, around that start
JITTER = 1e-4  # of the mean variance: what Cholesky's factor needs in single precision
NOISES = np.logspace(
    -8, 0, 9
)  # shares of the variance, of which the last regression takes the likeliest
ROUNDING = 1e-12  # a spread of the values, beside their size, that means nothing
EXACT = 1e-10  # share of the variance that a line may leave over and still be all there is


@dataclass(frozen=True, eq=False)
class Surrogate:
    """h(z) = constant + linear·z + Σ_t N_t(z) / D_t(z), with N_t = n0_t + z·n_t + (1−z)·nh_t and D_t = d0_t + z·g_t + (1−z)·gh_t.

    A mask z is 1 where a unit is kept. All of ``d0``, ``g``, ``gh`` are positive.

    >>> one = np.ones((1, 2))
    >>> h = Surrogate(0.5, np.array([1.0, 0.0]), n=2 * one, nh=0 * one, g=3 * one, gh=one, n0=np.zeros(1), d0=np.ones(1))
    >>> h(np.array([[True, True], [False, True], [False, False]])).round(2).tolist()  # 1.5 + 4/7, 0.5 + 2/5, 0.5 + 0/3
    [2.07, 0.9, 0.5]
    """

    constant: float
    linear: Float[np.ndarray, " unit"]
    n: Float[np.ndarray, "term unit"]
    nh: Float[np.ndarray, "term unit"]
    g: Float[np.ndarray, "term unit"]
    gh: Float[np.ndarray, "term unit"]
    n0: Float[np.ndarray, " term"]
    d0: Float[np.ndarray, " term"]

    def __call__(self, masks: Bool[np.ndarray, "mask unit"]) -> Float[np.ndarray, " mask"]:
        """The value of each mask."""
        ratios = RatioOfSums(self.n, self.nh, self.g, self.gh, self.n0, self.d0)
        return self.constant + masks @ self.linear + ratios(masks).sum(1)


@one_thread()
def fit(
    masks: Bool[np.ndarray, "mask unit"],
    values: Float[np.ndarray, " mask"],
    folds: Int[np.ndarray, " mask"],
    terms: int = 8,
) -> list[Surrogate]:
    """For each fold 0, 1, … a surrogate fitted to the rows of all *other* folds; the same input gives the same surrogates.

    Not a bit of a surrogate depends on the values of its own fold, so the residuals there are honest. Values that do not vary, or a fold
    without other rows, give their mean (0 of none).

    >>> masks = np.random.default_rng(0).random((60, 3)) < 0.5
    >>> values = masks @ np.array([1.0, 2.0, 0.0]) / (1 + masks.sum(1))
    >>> folds = np.arange(60) % 2
    >>> first, second = fit(masks, values, folds, terms=2)
    >>> bool(np.abs(first(masks) - values)[folds == 0].max() < 0.01)
    True
    """
    _check(masks, values, folds, terms)
    terms = min(terms, max(1, MOST_FEATURES // (masks.shape[1] + 1)))
    others = folds[None] != np.arange(folds.max() + 1)[:, None]
    means, spreads, targets = _standardised(values, others)
    signs = np.where(masks, 1.0, -1.0)
    rough = _rough(signs, targets, others, terms)
    fitted = []
    for a, rows, target, mean, spread in zip(rough, others, targets, means, spreads, strict=True):
        z, y = signs[rows], target[rows]
        h = _solved(_fine(a, z, y) if spread > 0 else _start(a), terms, z, y)
        scaled = {name: spread * getattr(h, name) for name in ("linear", "n", "nh", "n0")}
        fitted.append(replace(h, constant=float(mean + spread * h.constant), **scaled))
    return fitted


def _check(masks: np.ndarray, values: np.ndarray, folds: np.ndarray, terms: int) -> None:
    if not len(masks) == len(values) == len(folds) > 0:
        raise InputError(
            f"a surrogate needs a value and a fold for each mask; got {len(masks)} masks, {len(values)}, {len(folds)}."
        )
    if not np.isfinite(values).all():
        raise InputError(
            f"{int((~np.isfinite(values)).sum())} of {len(values)} values are not finite: no surrogate can be fitted to them."
        )
    if folds.min() < 0 or terms < 0:
        raise InputError(
            f"folds count from 0 and there are 0 or more terms, not a fold {folds.min()} and {terms} terms."
        )


def _standardised(
    values: Float[np.ndarray, " mask"], others: Bool[np.ndarray, "fold mask"]
) -> tuple[Float[np.ndarray, " fold"], Float[np.ndarray, " fold"], Float[np.ndarray, "fold mask"]]:
    """Mean and spread of the rows that each fold may see, and the values measured by them; 0 in the rows that it may not."""
    seen = np.where(others, values, 0.0)
    size = np.abs(seen).max(
        1, keepdims=True
    )  # first by their size: the square of a value may be too large or too small for a number
    size[size == 0] = 1.0
    share = others / np.maximum(others.sum(1, keepdims=True), 1)
    mean = (share * (seen / size)).sum(1, keepdims=True)
    away = np.where(others, seen / size - mean, 0.0)
    spread = np.sqrt((share * away**2).sum(1, keepdims=True))
    spread[spread <= ROUNDING] = 0.0
    return (mean * size)[:, 0], (spread * size)[:, 0], away / np.where(spread > 0, spread, np.inf)


def _adam(
    theta: Float[np.ndarray, "*fold parameter"],
    gradient: Callable[[np.ndarray, int], np.ndarray],
    steps: int,
    rate: float,
    decay: float = 0.0,
) -> Float[np.ndarray, "*fold parameter"]:
    """Adam (Kingma & Ba 2015), decay decoupled (Loshchilov & Hutter 2019), for some steps; stops where the gradient is no number."""
    first, second = np.zeros_like(theta), np.zeros_like(theta)
    for step in range(1, steps + 1):
        slope = gradient(theta, step)
        if not np.isfinite(slope).all():
            break
        first += 0.1 * (slope - first)
        second += 0.01 * (slope**2 - second)
        move = first / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
        theta = theta * (1 - rate * decay) - rate / (1 - 0.9**step) * move
    return theta


# ---------------------------------------------------------------------- round 1: everything at once, roughly


def _rough(
    signs: Float[np.ndarray, "mask unit"],
    targets: Float[np.ndarray, "fold mask"],
    others: Bool[np.ndarray, "fold mask"],
    terms: int,
) -> Float[np.ndarray, "fold term unit"]:
    """Log weights a of the denominators: a kept unit weighs e^a there, a removed one e^−a."""
    units, folds = signs.shape[1], len(others)
    start = APART * np.random.default_rng(0).standard_normal(2 * terms * units)
    theta = np.tile(
        np.concatenate([start, np.zeros(terms + units + 1)]).astype(np.float32), (folds, 1)
    )
    share = (others / np.maximum(others.sum(1, keepdims=True), 1)).astype(np.float32)
    z, y = signs.astype(np.float32), targets.astype(np.float32)
    theta = _adam(
        theta,
        lambda x, _: error_gradient(x, terms, z, y, share)[1],
        ROUGH_STEPS,
        ROUGH_RATE,
        ROUGH_DECAY,
    )
    return np.clip(
        theta[:, : terms * units].reshape(folds, terms, units).astype(np.float64),
        -STEEPEST,
        STEEPEST,
    )


def error_gradient(
    theta: Float[np.ndarray, "fold parameter"],
    terms: int,
    z: Float[np.ndarray, "mask unit"],
    y: Float[np.ndarray, "fold mask"],
    share: Float[np.ndarray, "fold mask"],
) -> tuple[Float[np.ndarray, " fold"], Float[np.ndarray, "fold parameter"]]:
    """Half the mean squared error of each fold, and its gradient by log weights, numerators, their constants, linear part, constant.

    ``z`` is 1 and −1, so that a denominator is 1 + Σ_i (cosh a_i + z_i sinh a_i), here over 1 + the number of units.
    """
    (folds, _), (masks, units) = theta.shape, z.shape
    a, n, n0, linear, constant = np.split(
        theta, np.cumsum([terms * units, terms * units, terms, units]), axis=1
    )
    a, n = a.reshape(-1, units), n.reshape(-1, units)
    sinh, cosh = np.sinh(a) / (units + 1), np.cosh(a) / (units + 1)
    denominator, numerator, line = np.split(
        np.concatenate([sinh, n, linear]) @ z.T, [len(a), 2 * len(a)]
    )
    inverse = 1 / (denominator + cosh.sum(1, keepdims=True) + 1 / (units + 1))
    ratio = (numerator + n0.reshape(-1, 1)) * inverse
    residual = line + constant + ratio.reshape(folds, terms, masks).sum(1) - y
    weighted = residual * share
    to_numerator = (inverse.reshape(folds, terms, masks) * weighted[:, None]).reshape(-1, masks)
    to_denominator = -to_numerator * ratio
    to_sinh, to_n, to_linear = np.split(
        np.concatenate([to_denominator, to_numerator, weighted]) @ z, [len(a), 2 * len(a)]
    )
    to_a = to_sinh * cosh + to_denominator.sum(1, keepdims=True) * sinh
    slopes = (to_a, to_n, to_numerator.sum(1), to_linear, weighted.sum(1))
    return (residual * weighted).sum(1) / 2, np.concatenate(
        [slope.reshape(folds, -1) for slope in slopes], axis=1
    )


# ---------------------------------------------------------------------- round 2: denominators and scales, the numerators integrated out


class Scales(NamedTuple):
    """What the marginal likelihood depends on: the log weights, and the logarithms of variances. These are of each unit's part in all
    numerators, of its linear part, of each whole term, of the numerators' constants, and of the noise."""

    a: Float[np.ndarray, "term unit"]
    numerator: Float[np.ndarray, " unit"]
    linear: Float[np.ndarray, " unit"]
    term: Float[np.ndarray, " term"]
    constant: Float[np.ndarray, " 1"]
    noise: Float[np.ndarray, " 1"]


def _scales(theta: Float[np.ndarray, " parameter"], terms: int, units: int) -> Scales:
    a, *logs = np.split(theta, np.cumsum([terms * units, units, units, terms, 1]))
    return Scales(a.reshape(terms, units), *logs)


def _start(a: Float[np.ndarray, "term unit"]) -> Float[np.ndarray, " parameter"]:
    terms, units = a.shape
    variances = (
        np.full(units, SCALES["numerator"] / max(units, 1)),
        np.full(units, SCALES["linear"] / max(units, 1)),
        np.full(terms, 1 / max(terms, 1)),
        [SCALES["constant"], SCALES["noise"]],
    )
    return np.concatenate([a.ravel(), np.log(np.concatenate(variances))])


def _fine(
    a: Float[np.ndarray, "term unit"],
    z: Float[np.ndarray, "mask unit"],
    y: Float[np.ndarray, " mask"],
) -> np.ndarray:
    order = np.random.default_rng(0).permutation(
        len(y)
    )  # masks may come sorted by size, and a step must see all sizes
    z, y, start = (
        z[order].astype(np.float32),
        y[order].astype(np.float32),
        _start(a).astype(np.float32),
    )
    size = min(FINE_ROWS, len(y))

    def gradient(theta: np.ndarray, step: int) -> np.ndarray:
        rows = np.arange((step - 1) * size, step * size) % len(y)
        return evidence_gradient(theta, start, len(a), z[rows], y[rows])[1]

    return _adam(start, gradient, FINE_STEPS, FINE_RATE).astype(np.float64)


def evidence_gradient(
    theta: Float[np.ndarray, " parameter"],
    start: Float[np.ndarray, " parameter"],
    terms: int,
    z: Float[np.ndarray, "mask unit"],
    y: Float[np.ndarray, " mask"],
) -> tuple[float, Float[np.ndarray, " parameter"]]:
    """Minus the log marginal likelihood up to a constant, with a prior on ``a`` around 0 and on the scales around their start.

    The covariance of the values is K = S∘(R Rᵀ) + z diag(linear) zᵀ + 1 + noise I, with S = constant + z diag(numerator) zᵀ and
    R_t = √term_t / D_t(z). The terms are never expanded, so their number costs next to nothing.
    """
    rows, units = z.shape
    a, *logs = _scales(theta, terms, units)
    numerator, linear, term, constant, noise = map(np.exp, logs)
    sinh, cosh = np.sinh(a) / (units + 1), np.cosh(a) / (units + 1)
    r = np.sqrt(term) / (z @ sinh.T + cosh.sum(1) + 1 / (units + 1))
    s, rr = (z * numerator) @ z.T + constant, r @ r.T
    k = (z * linear) @ z.T + 1
    k += s * rr
    k.flat[:: rows + 1] += (
        noise + JITTER * np.trace(k) / rows
    )  # whose own slope is left out: it is no part of the model
    potrf, potri = get_lapack_funcs(("potrf", "potri"), (k,))
    factor, failed = potrf(k.T, lower=1, overwrite_a=1, clean=1)
    if failed:
        return np.inf, np.full_like(theta, np.nan)
    half_log_determinant = np.log(np.diag(factor)).sum()
    q, _ = potri(factor, lower=1, overwrite_c=1)
    q = q + q.T
    q.flat[:: rows + 1] /= 2
    alpha = q @ y
    explained = y @ alpha
    q -= np.outer(alpha, alpha)  # twice the derivative by K
    s *= q
    rr *= q
    to_r = s @ r
    to_d = -to_r * r**2 / np.sqrt(term)
    slopes = (
        (to_d.T @ z) * cosh + to_d.sum(0)[:, None] * sinh + a,
        numerator * ((rr @ z) * z).sum(0) / 2,
        linear * ((q @ z) * z).sum(0) / 2,
        (to_r * r).sum(0) / 2,
        constant * rr.sum() / 2,
        noise * np.trace(q) / 2,
    )
    pull = HYPER * (theta - start)
    pull[: terms * units] = 0.0
    loss = explained / 2 + half_log_determinant + (a**2).sum() / 2 + pull @ (theta - start) / 2
    return float(loss), np.concatenate([slope.ravel() for slope in slopes]) + pull


# ---------------------------------------------------------------------- round 3: numerators and linear part, in closed form


def _solved(
    theta: Float[np.ndarray, " parameter"],
    terms: int,
    z: Float[np.ndarray, "mask unit"],
    y: Float[np.ndarray, " mask"],
) -> Surrogate:
    """The surrogate of standardised values, for given denominators and scales."""
    rows, units = z.shape
    a, *logs = _scales(theta, terms, units)
    numerator, linear, term, constant, _ = (np.exp(log / 2) for log in logs)
    inverse = (units + 1) / (1 + np.cosh(a).sum(1) + z @ np.sinh(a).T)
    scales = np.concatenate([[1.0], linear, term * constant, (term[:, None] * numerator).ravel()])
    columns = (
        np.ones((rows, 1)),
        z,
        inverse,
        (inverse[:, :, None] * z[:, None, :]).reshape(rows, terms * units),
    )
    features = np.concatenate(columns, axis=1)
    weights, loss = _ridge(features * scales, y)
    weights *= scales
    alone = np.concatenate([[1.0], np.full(units, np.sqrt(SCALES["linear"] / max(units, 1)))])
    line, loss_of_line = _ridge(features[:, : units + 1] * alone, y)
    left = np.square(y - features[:, : units + 1] @ (alone * line)).sum()
    if loss_of_line < loss or left <= EXACT * (
        y @ y
    ):  # of an additive game, or of noise, the ratios have nothing to tell
        weights = np.concatenate([alone * line, np.zeros(len(weights) - len(line))])
    mean, slope, n0, n = np.split(weights, np.cumsum([1, units, terms]))
    n = (units + 1) * n.reshape(terms, units)
    return Surrogate(
        float(mean[0] - slope.sum()),
        2 * slope,
        n,
        -n,
        np.exp(a),
        np.exp(-a),
        (units + 1) * n0,
        np.ones(terms),
    )


def _ridge(
    features: Float[np.ndarray, "mask feature"], y: Float[np.ndarray, " mask"]
) -> tuple[Float[np.ndarray, " feature"], float]:
    """Weights under a prior of unit variance and the likeliest of NOISES, and minus the log evidence of that (up to a constant)."""
    rows, count = features.shape
    best, likeliest = np.zeros(count), np.inf
    if not y.any():
        return best, likeliest
    is_tall = count <= rows  # the smaller of the two Gram matrices will do
    gram = features.T @ features if is_tall else features @ features.T
    right = features.T @ y if is_tall else y
    potrf, potrs = get_lapack_funcs(("potrf", "potrs"), (gram,))
    for noise in NOISES:
        factor, failed = potrf(gram + noise * np.eye(len(gram)), lower=1)
        if failed:
            continue
        solved = potrs(factor, right, lower=1)[0]
        weights = solved if is_tall else features.T @ solved
        misfit = np.square(y - features @ weights).sum() / noise + weights @ weights
        loss = misfit / 2 + np.log(np.diag(factor)).sum() + (rows - len(gram)) * np.log(noise) / 2
        if loss < likeliest:
            best, likeliest = weights, float(loss)
    return best, likeliest
