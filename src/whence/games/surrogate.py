"""A small stand-in for a game: a linear part, and ratios of sums, the form that attention has.

    h(z) = constant + linear·z + Σ_t N_t(z) / D_t(z)

An attention head depends on the units that are kept as one such ratio does, and the average of
a ratio over all masks of one size is known exactly (games/ratio.py).

The numerators N_t enter linearly, the denominators D_t do not. So the fit has three rounds:

1. Everything together, by Adam on the squared error, all folds in one product of matrices. This
   is cheap and rough; only the denominators are kept.
2. The denominators again, with the scale of each unit's part and the noise, by the gradient of
   the marginal likelihood. Numerators and linear part have a Gaussian prior there and are
   integrated out (MacKay 1992; Rasmussen & Williams 2006, eq. 5.9). This is why a fit with more
   parameters than values is still a good one.
3. Numerators and linear part, by the ridge regression that this prior amounts to.

The first two rounds take a fixed number of steps, so the cost is known beforehand.
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
from whence.games.threads import on_one_thread

# The steps of the first two rounds. Twice as many lower the error at a thousand masks by a tenth,
# for the price of 200 passes.
ROUGH_STEPS = 150
FINE_STEPS = 30

ROUGH_RATE = 0.03
ROUGH_DECAY = 0.03
FINE_RATE = 0.1

# Rows of one step of the second round, whose cost grows with their cube. The steps take turns
# through all rows.
FINE_ROWS = 240

# Columns of the last regression. A text of more than 120 units gets fewer than eight terms.
MOST_FEATURES = 1000

# The spread of the first log weights: terms that start alike would stay alike.
APART = 0.5

# The largest log weight in a denominator after the first round.
STEEPEST = 5.0

# Variances at the start of the second round, those of numerators and line over all units.
NUMERATOR_VARIANCE = 0.4
LINEAR_VARIANCE = 0.5
CONSTANT_VARIANCE = 0.3
NOISE_VARIANCE = 0.02

# The precision of the prior on the logarithms of these variances, around that start.
HYPER = 0.05

# A share of the mean variance, which Cholesky's factor needs in single precision.
JITTER = 1e-4

# Triangles of at most so many rows are inverted by LAPACK, larger ones by halves.
SMALL_TRIANGLE = 64

# Shares of the variance, of which the last regression takes the likeliest.
NOISES = np.logspace(-8, 0, 9)

# A spread of the values, beside their size, that means nothing.
ROUNDING = 1e-12

# The share of the variance that a line may leave over and still be all there is.
EXACT = 1e-10


@dataclass(frozen=True, eq=False)
class Surrogate:
    """h(z) = constant + linear·z + Σ_t N_t(z) / D_t(z), where z is 1 for a unit that is kept.

        N_t(z) = n0_t + z·n_t + (1−z)·nh_t
        D_t(z) = d0_t + z·g_t + (1−z)·gh_t

    All of ``d0``, ``g`` and ``gh`` are positive.

    >>> one = np.ones((1, 2))
    >>> h = Surrogate(
    ...     constant=0.5,
    ...     linear=np.array([1.0, 0.0]),
    ...     n=2 * one,
    ...     nh=0 * one,
    ...     g=3 * one,
    ...     gh=one,
    ...     n0=np.zeros(1),
    ...     d0=np.ones(1),
    ... )

    Both kept: 1.5 + 4/7. Only the second: 0.5 + 2/5. None: 0.5 + 0/3.

    >>> h(np.array([[True, True], [False, True], [False, False]])).round(2).tolist()
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


@on_one_thread
def fit(
    masks: Bool[np.ndarray, "mask unit"],
    values: Float[np.ndarray, " mask"],
    folds: Int[np.ndarray, " mask"],
    terms: int = 8,
) -> list[Surrogate]:
    """For each fold 0, 1, … a surrogate that is fitted to the rows of all *other* folds.

    Not a bit of a surrogate depends on the values of its own fold, so its residuals there are
    honest. Values that do not vary, or a fold without other rows, give their mean (0 of none).
    The same input gives the same surrogates.

    >>> masks = np.random.default_rng(0).random((60, 3)) < 0.5
    >>> values = masks @ np.array([1.0, 2.0, 0.0]) / (1 + masks.sum(1))
    >>> folds = np.arange(60) % 2
    >>> first, second = fit(masks, values, folds, terms=2)
    >>> bool(np.abs(first(masks) - values)[folds == 0].max() < 0.01)
    True
    """
    _check(masks, values, folds, terms)
    units = masks.shape[1]
    terms = min(terms, max(1, MOST_FEATURES // (units + 1)))

    # Row f of ``others``: what the surrogate of fold f may see.
    others = folds[None] != np.arange(folds.max() + 1)[:, None]
    means, spreads, targets = _standardised(values, others)
    signs = np.where(masks, 1.0, -1.0)
    scratch = Scratch()
    rough = _rough(signs, targets, others, terms, scratch)

    surrogates = []
    for fold, rows in enumerate(others):
        z = signs[rows]
        y = targets[fold, rows]
        theta = _start(rough[fold])
        if spreads[fold] > 0:
            theta = _fine(theta, terms, z, y, scratch)
        standard = _solved(theta, terms, z, y)
        surrogates.append(_rescaled(standard, float(means[fold]), float(spreads[fold])))
    return surrogates


def _check(masks: np.ndarray, values: np.ndarray, folds: np.ndarray, terms: int) -> None:
    """Refuse what no surrogate can be fitted to."""
    if not len(masks) == len(values) == len(folds) > 0:
        raise InputError(
            f"a surrogate needs a value and a fold for each mask; "
            f"got {len(masks)} masks, {len(values)}, {len(folds)}."
        )
    unusable = int((~np.isfinite(values)).sum())
    if unusable:
        raise InputError(
            f"{unusable} of {len(values)} values are not finite: "
            f"no surrogate can be fitted to them."
        )
    if folds.min() < 0 or terms < 0:
        raise InputError(
            f"folds count from 0 and there are 0 or more terms, "
            f"not a fold {folds.min()} and {terms} terms."
        )


def _standardised(
    values: Float[np.ndarray, " mask"], others: Bool[np.ndarray, "fold mask"]
) -> tuple[Float[np.ndarray, " fold"], Float[np.ndarray, " fold"], Float[np.ndarray, "fold mask"]]:
    """Mean and spread of the rows that each fold may see, and the values measured by them.

    The rows that a fold may not see are 0.
    """
    seen = np.where(others, values, 0.0)

    # First by their size: the square of a value may be too large or too small for a number.
    size = np.abs(seen).max(1, keepdims=True)
    size[size == 0] = 1.0

    share = _shares(others)
    mean = (share * (seen / size)).sum(1, keepdims=True)
    away = np.where(others, seen / size - mean, 0.0)
    spread = np.sqrt((share * away**2).sum(1, keepdims=True))
    spread[spread <= ROUNDING] = 0.0

    standardised = away / np.where(spread > 0, spread, np.inf)
    return (mean * size)[:, 0], (spread * size)[:, 0], standardised


def _shares(others: Bool[np.ndarray, "fold mask"]) -> Float[np.ndarray, "fold mask"]:
    """The weight of each row in a mean over the rows that a fold may see."""
    return others / np.maximum(others.sum(1, keepdims=True), 1)


def _rescaled(standard: Surrogate, mean: float, spread: float) -> Surrogate:
    """A surrogate of standardised values, made one of the values themselves."""
    return replace(
        standard,
        constant=mean + spread * standard.constant,
        linear=spread * standard.linear,
        n=spread * standard.n,
        nh=spread * standard.nh,
        n0=spread * standard.n0,
    )


def _adam(
    theta: Float[np.ndarray, "*fold parameter"],
    gradient: Callable[[np.ndarray, int], np.ndarray],
    steps: int,
    rate: float,
    decay: float = 0.0,
) -> Float[np.ndarray, "*fold parameter"]:
    """Adam (Kingma & Ba 2015) for a number of steps; it stops where the gradient is no number.

    The decay is decoupled from the gradient (Loshchilov & Hutter 2019).
    """
    first = np.zeros_like(theta)
    second = np.zeros_like(theta)
    for step in range(1, steps + 1):
        slope = gradient(theta, step)
        if not np.isfinite(slope).all():
            break

        first += 0.1 * (slope - first)
        second += 0.01 * (slope**2 - second)
        move = first / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
        theta = theta * (1 - rate * decay) - rate / (1 - 0.9**step) * move
    return theta


def with_one(z: Float[np.ndarray, "mask unit"]) -> Float[np.ndarray, "mask unit_and_one"]:
    """A column of ones behind the units: a constant is the part of a unit that is always kept."""
    one = np.ones((len(z), 1), dtype=z.dtype)
    return np.concatenate([z, one], axis=1)


class Scratch:
    """Arrays that every step of a round uses again, by name.

    The system hands out new memory for an array of a few hundred kilobytes, and takes it back
    when the array is gone. In the first round this took longer than the arithmetic.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}

    def array(self, name: str, rows: int, columns: int, like: np.ndarray) -> np.ndarray:
        """The array of that name: zeros at first, later what was last written there."""
        array = self._arrays.get(name)
        if array is None or array.shape != (rows, columns) or array.dtype != like.dtype:
            array = np.zeros((rows, columns), dtype=like.dtype)
            self._arrays[name] = array
        return array


# ------------------------------------------------------- round 1: everything at once, roughly


def _rough(
    signs: Float[np.ndarray, "mask unit"],
    targets: Float[np.ndarray, "fold mask"],
    others: Bool[np.ndarray, "fold mask"],
    terms: int,
    scratch: Scratch,
) -> Float[np.ndarray, "fold term unit"]:
    """Log weights a of the denominators: a kept unit weighs e^a there, a removed one e^−a."""
    units = signs.shape[1]
    folds = len(others)

    weights_and_numerators = APART * np.random.default_rng(0).standard_normal(2 * terms * units)
    rest = np.zeros(terms + units + 1)
    start = np.concatenate([weights_and_numerators, rest]).astype(np.float32)

    z = with_one(signs.astype(np.float32))
    y = targets.astype(np.float32)
    share = _shares(others).astype(np.float32)

    def gradient(theta: np.ndarray, _: int) -> np.ndarray:
        return error_gradient(theta, terms, z, y, share, scratch)[1]

    theta = _adam(np.tile(start, (folds, 1)), gradient, ROUGH_STEPS, ROUGH_RATE, ROUGH_DECAY)
    a = theta[:, : terms * units].reshape(folds, terms, units).astype(np.float64)
    return np.clip(a, -STEEPEST, STEEPEST)


def error_gradient(
    theta: Float[np.ndarray, "fold parameter"],
    terms: int,
    z: Float[np.ndarray, "mask unit_and_one"],
    y: Float[np.ndarray, "fold mask"],
    share: Float[np.ndarray, "fold mask"],
    scratch: Scratch,
) -> tuple[Float[np.ndarray, " fold"], Float[np.ndarray, "fold parameter"]]:
    """Half the mean squared error of each fold, and its gradient.

    The parameters of a fold are log weights, numerators, the numerators' constants, linear part
    and constant. ``z`` is 1 and −1, so that a denominator is 1 + Σ_i (cosh a_i + z_i sinh a_i),
    here over 1 + the number of units.
    """
    folds = len(theta)
    masks, units = len(z), z.shape[1] - 1
    ratios = folds * terms

    # The parameters, a row for each ratio or for each fold.
    ends = np.cumsum([terms * units, terms * units, terms])
    a = theta[:, : ends[0]].reshape(ratios, units)
    n = theta[:, ends[0] : ends[1]].reshape(ratios, units)
    n0 = theta[:, ends[1] : ends[2]].reshape(ratios, 1)
    line = theta[:, ends[2] :]
    sinh = np.sinh(a) / (units + 1)
    cosh = np.cosh(a) / (units + 1)
    d0 = cosh.sum(1, keepdims=True) + 1 / (units + 1)

    # All denominators, numerators and lines at all masks: one product.
    coefficients = np.empty((2 * ratios + folds, units + 1), dtype=theta.dtype)
    coefficients[:ratios, :units] = sinh
    coefficients[:ratios, units:] = d0
    coefficients[ratios:-folds, :units] = n
    coefficients[ratios:-folds, units:] = n0
    coefficients[-folds:] = line
    sums = scratch.array("sums", len(coefficients), masks, like=theta)
    np.matmul(coefficients, z.T, out=sums)
    denominator, numerator, linear = sums[:ratios], sums[ratios:-folds], sums[-folds:]

    # h(z) − y = linear + Σ_t N_t / D_t − y
    inverse = np.divide(1, denominator, out=denominator)
    ratio = np.multiply(numerator, inverse, out=numerator)
    residual = linear + ratio.reshape(folds, terms, masks).sum(1) - y
    weighted = residual * share
    loss = (residual * weighted).sum(1) / 2

    # Backwards: the error's slope by N is weighted / D, and by D it is −weighted · N / D².
    to_sums = scratch.array("to sums", len(coefficients), masks, like=theta)
    minus_to_denominator, to_numerator = to_sums[:ratios], to_sums[ratios:-folds]
    by_fold = (folds, terms, masks)
    np.multiply(inverse.reshape(by_fold), weighted[:, None], out=to_numerator.reshape(by_fold))
    np.multiply(to_numerator, ratio, out=minus_to_denominator)
    to_sums[-folds:] = weighted
    slopes = to_sums @ z

    to_sinh = -slopes[:ratios, :units]
    to_cosh = -slopes[:ratios, units:]
    to_a = to_sinh * cosh + to_cosh * sinh
    to_n = slopes[ratios:-folds, :units]
    to_n0 = slopes[ratios:-folds, units:]
    to_line = slopes[-folds:]
    parts = [part.reshape(folds, -1) for part in (to_a, to_n, to_n0, to_line)]
    return loss, np.concatenate(parts, axis=1)


# ------------------------- round 2: denominators and scales, with the numerators integrated out


class Scales(NamedTuple):
    """What the marginal likelihood depends on: the log weights, and logarithms of variances.

    The variances are those of each unit's part in all numerators, of its linear part, of each
    whole term, of the numerators' constants, and of the noise.
    """

    a: Float[np.ndarray, "term unit"]
    numerator: Float[np.ndarray, " unit"]
    linear: Float[np.ndarray, " unit"]
    term: Float[np.ndarray, " term"]
    constant: Float[np.ndarray, " 1"]
    noise: Float[np.ndarray, " 1"]


def _scales(theta: Float[np.ndarray, " parameter"], terms: int, units: int) -> Scales:
    """The parameters by name."""
    a = theta[: terms * units].reshape(terms, units)
    logs = theta[terms * units :]
    return Scales(
        a,
        numerator=logs[:units],
        linear=logs[units : 2 * units],
        term=logs[2 * units : -2],
        constant=logs[-2:-1],
        noise=logs[-1:],
    )


def _start(a: Float[np.ndarray, "term unit"]) -> Float[np.ndarray, " parameter"]:
    """The log weights of the first round, and the logarithms of the variances at the start."""
    terms, units = a.shape
    variances = (
        np.full(units, NUMERATOR_VARIANCE / max(units, 1)),
        np.full(units, LINEAR_VARIANCE / max(units, 1)),
        np.full(terms, 1 / max(terms, 1)),
        [CONSTANT_VARIANCE, NOISE_VARIANCE],
    )
    return np.concatenate([a.ravel(), np.log(np.concatenate(variances))])


def _fine(
    start: Float[np.ndarray, " parameter"],
    terms: int,
    z: Float[np.ndarray, "mask unit"],
    y: Float[np.ndarray, " mask"],
    scratch: Scratch,
) -> Float[np.ndarray, " parameter"]:
    """Better log weights, and the variances, by the gradient of the marginal likelihood."""
    # Masks may come sorted by size, and a step must see all sizes.
    order = np.random.default_rng(0).permutation(len(y))
    z = with_one(z[order].astype(np.float32))
    y = y[order].astype(np.float32)
    start = start.astype(np.float32)
    size = min(FINE_ROWS, len(y))

    def gradient(theta: np.ndarray, step: int) -> np.ndarray:
        rows = np.arange((step - 1) * size, step * size) % len(y)
        return evidence_gradient(theta, start, terms, z[rows], y[rows], scratch)[1]

    return _adam(start, gradient, FINE_STEPS, FINE_RATE).astype(np.float64)


def evidence_gradient(
    theta: Float[np.ndarray, " parameter"],
    start: Float[np.ndarray, " parameter"],
    terms: int,
    z: Float[np.ndarray, "mask unit_and_one"],
    y: Float[np.ndarray, " mask"],
    scratch: Scratch,
) -> tuple[float, Float[np.ndarray, " parameter"]]:
    """Minus the log marginal likelihood up to a constant, and its gradient.

    There is a prior on ``a`` around 0 and on the scales around their start. The covariance of the
    values is

        K = S ∘ (R Rᵀ) + z diag(linear) zᵀ + 1 + noise I
        S = constant + z diag(numerator) zᵀ
        R_t = √term_t / D_t(z)

    The terms are never expanded, so their number costs next to nothing.
    """
    rows, units = len(z), z.shape[1] - 1
    scales = _scales(theta, terms, units)
    a = scales.a
    term = np.exp(scales.term)
    noise = np.exp(scales.noise)
    # The last column of z is 1, so the constants are variances beside those of the units.
    in_numerators = np.exp(np.concatenate([scales.numerator, scales.constant]))
    in_line = np.exp(np.concatenate([scales.linear, np.zeros_like(scales.constant)]))

    # R
    sinh = np.sinh(a) / (units + 1)
    cosh = np.cosh(a) / (units + 1)
    d0 = cosh.sum(1, keepdims=True) + 1 / (units + 1)
    denominators = z @ np.concatenate([sinh, d0], axis=1).T
    r = np.sqrt(term) / denominators

    # K
    s = np.matmul(z * in_numerators, z.T, out=scratch.array("s", rows, rows, like=z))
    rr = np.matmul(r, r.T, out=scratch.array("rr", rows, rows, like=z))
    k = np.matmul(z * in_line, z.T, out=scratch.array("k", rows, rows, like=z))
    k += np.multiply(s, rr, out=scratch.array("product", rows, rows, like=z))
    # The slope of the jitter is left out below: it is no part of the model.
    k.flat[:: rows + 1] += noise + JITTER * np.trace(k) / rows

    # −log likelihood = (yᵀ K⁻¹ y + log|K|) / 2
    inverse = _inverse(k, scratch)
    if inverse is None:
        return np.inf, np.full_like(theta, np.nan)
    q, half_log_determinant = inverse
    alpha = q @ y
    explained = y @ alpha

    # Its slope by K is (K⁻¹ − α αᵀ) / 2 with α = K⁻¹ y; from here on q is twice this slope.
    outer = scratch.array("product", rows, rows, like=z)
    q -= np.multiply(alpha[:, None], alpha, out=outer)

    # By the factors of S ∘ (R Rᵀ).
    s *= q
    rr *= q
    to_r = s @ r
    to_denominators = -to_r * r**2 / np.sqrt(term)
    to_sinh_and_d0 = to_denominators.T @ z
    to_a = to_sinh_and_d0[:, :units] * cosh + to_sinh_and_d0[:, units:] * sinh + a
    to_numerators = in_numerators * ((rr @ z) * z).sum(0) / 2
    to_line = in_line * ((q @ z) * z).sum(0) / 2
    to_term = (to_r * r).sum(0) / 2
    to_noise = noise * np.trace(q) / 2

    slopes = (
        to_a.ravel(),
        to_numerators[:units],
        to_line[:units],
        to_term,
        to_numerators[units:],
        to_noise,
    )
    pull = HYPER * (theta - start)
    pull[: terms * units] = 0.0
    prior = (a**2).sum() / 2 + pull @ (theta - start) / 2
    loss = explained / 2 + half_log_determinant + prior
    return float(loss), np.concatenate(slopes) + pull


def _inverse(
    k: Float[np.ndarray, "mask mask"], scratch: Scratch
) -> tuple[Float[np.ndarray, "mask mask"], float] | None:
    """K⁻¹ and half of log|K|, by Cholesky's factor; None where K is not positive definite.

    K is overwritten.
    """
    rows = len(k)
    potrf, lauum = get_lapack_funcs(("potrf", "lauum"), (k,))
    # LAPACK counts columns first. Of a symmetric matrix the transpose is the same, and no copy.
    factor, failed = potrf(k.T, lower=1, overwrite_a=1, clean=1)
    if failed:
        return None
    half_log_determinant = float(np.log(np.diag(factor)).sum())

    # K = L Lᵀ, so K⁻¹ = L⁻ᵀ L⁻¹, of which LAPACK gives the lower triangle.
    triangle = scratch.array("triangle", rows, rows, like=k).T
    _invert_triangle(factor, out=triangle)
    triangle, _ = lauum(triangle, lower=1, overwrite_c=1)
    inverse = scratch.array("inverse", rows, rows, like=k)
    np.add(triangle, triangle.T, out=inverse)
    inverse.flat[:: rows + 1] /= 2
    return inverse, half_log_determinant


def _invert_triangle(
    lower: Float[np.ndarray, "row row"], out: Float[np.ndarray, "row row"]
) -> None:
    """L⁻¹ of a lower triangle, by halves: [[A, 0], [B, C]]⁻¹ = [[A⁻¹, 0], [−C⁻¹ B A⁻¹, C⁻¹]].

    LAPACK's own, ``trtri``, takes nearly twice as long at a few hundred rows: the halves are
    products of matrices, which are fast. What is above the diagonal of ``out`` stays as it was.
    """
    rows = len(lower)
    if rows <= SMALL_TRIANGLE:
        (trtri,) = get_lapack_funcs(("trtri",), (lower,))
        out[:] = trtri(lower, lower=1)[0]
        return

    first, second = slice(rows // 2), slice(rows // 2, rows)
    _invert_triangle(lower[first, first], out=out[first, first])
    _invert_triangle(lower[second, second], out=out[second, second])
    corner = out[second, second] @ (lower[second, first] @ out[first, first])
    np.negative(corner, out=out[second, first])


# ------------------------------------ round 3: numerators and linear part, in closed form


def _solved(
    theta: Float[np.ndarray, " parameter"],
    terms: int,
    z: Float[np.ndarray, "mask unit"],
    y: Float[np.ndarray, " mask"],
) -> Surrogate:
    """The surrogate of standardised values, for given denominators and scales."""
    rows, units = z.shape
    scales = _scales(theta, terms, units)
    a = scales.a

    # Everything is linear in these features: 1, z, 1/D_t, z/D_t.
    inverse = (units + 1) / (1 + np.cosh(a).sum(1) + z @ np.sinh(a).T)
    z_over_d = inverse[:, :, None] * z[:, None, :]
    columns = (np.ones((rows, 1)), z, inverse, z_over_d.reshape(rows, terms * units))
    features = np.concatenate(columns, axis=1)

    deviations = _deviations(scales)
    weights, loss = _ridge(features * deviations, y)
    weights *= deviations

    # Of an additive game, or of noise, the ratios have nothing to tell: then the line alone.
    line, loss_of_line = _line(features[:, : units + 1], y)
    left_over = np.square(y - features[:, : units + 1] @ line).sum()
    if loss_of_line < loss or left_over <= EXACT * (y @ y):
        weights = np.concatenate([line, np.zeros(len(weights) - len(line))])

    constant = weights[0]
    slope = weights[1 : units + 1]
    n0 = weights[units + 1 : units + 1 + terms]
    n = (units + 1) * weights[units + 1 + terms :].reshape(terms, units)
    # From signs ±1 to masks 0 and 1: z = 2 mask − 1.
    return Surrogate(
        constant=float(constant - slope.sum()),
        linear=2 * slope,
        n=n,
        nh=-n,
        g=np.exp(a),
        gh=np.exp(-a),
        n0=(units + 1) * n0,
        d0=np.ones(terms),
    )


def _deviations(scales: Scales) -> Float[np.ndarray, " feature"]:
    """The standard deviation of each feature's weight under the prior."""
    numerator = np.exp(scales.numerator / 2)
    linear = np.exp(scales.linear / 2)
    term = np.exp(scales.term / 2)
    constant = np.exp(scales.constant / 2)
    of_numerators = term[:, None] * numerator
    return np.concatenate([[1.0], linear, term * constant, of_numerators.ravel()])


def _line(
    features: Float[np.ndarray, "mask unit_and_one"], y: Float[np.ndarray, " mask"]
) -> tuple[Float[np.ndarray, " unit_and_one"], float]:
    """The weights of 1 and z alone, and minus their log evidence."""
    units = features.shape[1] - 1
    deviation = np.sqrt(LINEAR_VARIANCE / max(units, 1))
    deviations = np.concatenate([[1.0], np.full(units, deviation)])
    weights, loss = _ridge(features * deviations, y)
    return deviations * weights, loss


def _ridge(
    features: Float[np.ndarray, "mask feature"], y: Float[np.ndarray, " mask"]
) -> tuple[Float[np.ndarray, " feature"], float]:
    """Weights under a prior of unit variance, and minus their log evidence (up to a constant).

    The noise is the likeliest of ``NOISES``.
    """
    rows, count = features.shape
    best = np.zeros(count)
    likeliest = np.inf
    if not y.any():
        return best, likeliest

    # The smaller of the two Gram matrices will do.
    is_tall = count <= rows
    if is_tall:
        gram = features.T @ features
        right = features.T @ y
    else:
        gram = features @ features.T
        right = y

    potrf, potrs = get_lapack_funcs(("potrf", "potrs"), (gram,))
    damped = np.empty_like(gram)
    for noise in NOISES:
        damped[:] = gram
        damped.flat[:: len(gram) + 1] += noise
        factor, failed = potrf(damped.T, lower=1, overwrite_a=1, clean=0)
        if failed:
            continue

        solution = potrs(factor, right, lower=1)[0]
        weights = solution if is_tall else features.T @ solution
        misfit = np.square(y - features @ weights).sum() / noise + weights @ weights
        half_log_determinant = np.log(np.diag(factor)).sum()
        loss = misfit / 2 + half_log_determinant + (rows - len(gram)) * np.log(noise) / 2
        if loss < likeliest:
            best = weights
            likeliest = float(loss)
    return best, likeliest
