"""Exact values beside brute force: every subset, and a least-squares problem of its own."""

from fractions import Fraction
from itertools import product
from math import comb, factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whence.games.functionals import beta_shapley
from whence.games.ratio import RatioOfSums
from whence.theory.exact import deletion_curve, exact_banzhaf, exact_lime, exact_shapley

RATIONAL = RatioOfSums(
    n=np.array([[1.0, -2.0, 2.0]]),
    nh=np.zeros((1, 3)),
    g=np.array([[1.0, 2.0, 1.0]]),
    gh=np.ones((1, 3)),
    n0=np.zeros(1),
    d0=np.ones(1),
)


def heads(seed: int, units: int, terms: int, sharpness: float) -> RatioOfSums:
    """Random heads as attention makes them.

    Here g = e^score and n = g·value, the largest g of a head scaled to one.
    """
    rng = np.random.default_rng(seed)
    scores, hats, fixed = (sharpness * rng.normal(size=(terms, k)) for k in (units, units, 1))
    top = np.concatenate([scores, hats, fixed], 1).max(1, keepdims=True)
    g, gh, d0 = (np.exp(x - top) for x in (scores, hats, fixed))
    return RatioOfSums(
        g * rng.normal(size=g.shape),
        gh * rng.normal(size=g.shape),
        g,
        gh,
        (d0 * rng.normal(size=d0.shape))[:, 0],
        d0[:, 0],
    )


def every_mask(units: int) -> np.ndarray:
    return np.array(list(product([False, True], repeat=units)))


def slow_lime(masks: np.ndarray, values: np.ndarray, bandwidth: float | None) -> np.ndarray:
    """Weighted least squares with an intercept on all masks but the whole text.

    A size is as likely as another.
    """
    d = masks.shape[1]
    kept = masks.sum(1)
    use = kept < d
    weight = np.array([1 / comb(d, k) for k in kept])
    if bandwidth is not None:
        weight = weight * np.exp(-((1 - np.sqrt(kept / d)) ** 2) / (2 * bandwidth**2))
    root = np.sqrt(weight[use])[:, None]
    x = np.column_stack([np.ones(use.sum()), masks[use]])
    return np.linalg.lstsq(root * x, root[:, 0] * values[use], rcond=None)[0][1:]


def slow_semivalue(masks: np.ndarray, values: np.ndarray, weight) -> np.ndarray:
    d, value_of = masks.shape[1], {m.tobytes(): v for m, v in zip(masks, values, strict=True)}
    out = np.zeros(d)
    for j in range(d):
        for m in masks[~masks[:, j]]:
            joined = m.copy()
            joined[j] = True
            out[j] += weight(int(m.sum()), d) * (value_of[joined.tobytes()] - value_of[m.tobytes()])
    return out


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    units=st.integers(2, 12),
    terms=st.integers(1, 3),
    sharpness=st.sampled_from([0.1, 1.0, 4.0, 12.0]),
)
def test_every_value_equals_enumeration(
    seed: int, units: int, terms: int, sharpness: float
) -> None:
    """Would catch a quadrature that fails for sharp heads.

    A double-exponential rule of 40 nodes is off by 3e-3 there.
    """
    ratio, masks = heads(seed, units, terms, sharpness), every_mask(units)
    values = ratio(masks).sum(1)
    for bandwidth in (
        None,
        1.0,
        0.25,
        0.2,
    ):  # narrower, and the reference loses its digits: weights of e⁻⁵⁰
        np.testing.assert_allclose(
            exact_lime(ratio, bandwidth), slow_lime(masks, values, bandwidth), atol=1e-10, rtol=0
        )
    curve = [values[masks.sum(1) == units - removed].mean() for removed in range(units + 1)]
    np.testing.assert_allclose(deletion_curve(ratio), curve, atol=1e-10, rtol=0)
    if units <= 9:
        shapley = slow_semivalue(
            masks, values, lambda k, d: factorial(k) * factorial(d - 1 - k) / factorial(d)
        )
        np.testing.assert_allclose(exact_shapley(ratio), shapley, atol=1e-10, rtol=0)
        np.testing.assert_allclose(
            exact_banzhaf(ratio),
            slow_semivalue(masks, values, lambda _, d: 0.5 ** (d - 1)),
            atol=1e-10,
            rtol=0,
        )
    np.testing.assert_allclose(
        exact_shapley(ratio).sum(), values[-1] - values[0], atol=1e-10, rtol=0
    )


def test_the_rational_example() -> None:
    np.testing.assert_allclose(exact_lime(RATIONAL, None), [1 / 4, -9 / 20, 19 / 40], atol=1e-12)
    np.testing.assert_allclose(exact_shapley(RATIONAL), [9 / 40, -19 / 40, 9 / 20], atol=1e-12)
    np.testing.assert_allclose(
        exact_lime(RATIONAL, 0.25), [0.23822471, -0.48790264, 0.45016103], atol=5e-9
    )
    values = {
        kept: Fraction(
            sum(n * k for n, k in zip((1, -2, 2), kept, strict=True)),
            1 + sum((2 if k and i == 1 else 1) for i, k in enumerate(kept)),
        )
        for kept in product([0, 1], repeat=3)
    }
    curve = [
        sum(v for kept, v in values.items() if sum(kept) == 3 - s) / comb(3, s) for s in range(4)
    ]
    np.testing.assert_allclose(deletion_curve(RATIONAL), [float(c) for c in curve], atol=1e-12)


@pytest.mark.parametrize("units", [2, 5, 9])
def test_lime_that_may_draw_the_whole_text_is_the_beta_2_2_semivalue(units: int) -> None:
    ratio = heads(1, units, 2, 2.0)
    np.testing.assert_allclose(
        exact_lime(ratio, None, whole=True), beta_shapley(units, 2, 2).of_ratios(ratio), atol=1e-12
    )


@pytest.mark.parametrize("bandwidth", [None, 0.25, 0.1])
def test_constant_attention_is_additive_so_the_factor_is_one(bandwidth: float | None) -> None:
    """The case from which the factor can be read.

    With all scores equal f is additive, and LIME returns W_l(v_j − v_h)/T, not 3/2 of it.
    """
    units = 99
    rng = np.random.default_rng(0)
    v, vh = rng.normal(size=(2, 1, units))
    one = np.ones((1, units))
    ratio = RatioOfSums(v, vh, one, one, np.zeros(1), np.full(1, 157.0))
    np.testing.assert_allclose(exact_lime(ratio, bandwidth), ((v - vh) / 256)[0], atol=1e-13)


def bernoulli(ratio: RatioOfSums, weight) -> np.ndarray:
    """∫ weight(p) (E_p[f | j kept] − E_p[f | j removed]) dp by the other route.

    Units drop out independently with probability p.
    """
    d = ratio.n.shape[1]
    node, w = np.polynomial.legendre.leggauss((d + 4) // 2 + 1)
    p, w = (node + 1) / 2, w / 2
    out = np.zeros(d)
    for n, nh, g, gh, n0, d0 in zip(
        ratio.n, ratio.nh, ratio.g, ratio.gh, ratio.n0, ratio.d0, strict=True
    ):
        x = np.arange(
            np.log(1e-17 / (d0 + np.maximum(g, gh).sum())),
            np.log(42 / (d0 + np.minimum(g, gh).sum())),
            0.3,
        )
        for u, du in zip(np.exp(x), 0.3 * np.exp(x), strict=True):
            low = np.minimum(g, gh)
            keep, drop = np.exp(-u * (g - low)), np.exp(-u * (gh - low))
            q = 1 - p[:, None]
            phi = q * keep + (1 - q) * drop
            psi = q * n * keep + (1 - q) * nh * drop
            rest = n0 + (psi / phi).sum(1, keepdims=True) - psi / phi
            base = np.exp(-u * (d0 + low.sum()) + np.log(phi).sum(1, keepdims=True)) / phi
            out += du * (
                (w * weight(p))[:, None] * base * (keep * (rest + n) - drop * (rest + nh))
            ).sum(0)
    return out


@pytest.mark.parametrize(("units", "sharpness"), [(30, 0.5), (30, 3.0), (120, 1.0)])
def test_many_units_agree_with_independent_removal(units: int, sharpness: float) -> None:
    """Beyond enumeration.

    The Bernoulli mixture of FACTS 4.1 is another algorithm for the same numbers.
    """
    ratio = heads(3, units, 1, sharpness)
    np.testing.assert_allclose(
        exact_shapley(ratio), bernoulli(ratio, np.ones_like), atol=1e-11, rtol=0
    )
    np.testing.assert_allclose(
        exact_lime(ratio, None, whole=True),
        bernoulli(ratio, lambda p: 6 * p * (1 - p)),
        atol=1e-11,
        rtol=0,
    )


@pytest.mark.parametrize("bandwidth", [0.04, 0.02, 0.01])
def test_a_narrow_bandwidth_that_may_draw_the_whole_text_keeps_its_digits(bandwidth: float) -> None:
    """All weight is on the whole text and, less, on one word gone.

    LIME is then the change when that word goes (a reviewer's case).
    """
    ratio = RatioOfSums(
        np.array([[1.0, -2.0]]),
        np.zeros((1, 2)),
        np.array([[1.0, 2.0]]),
        np.ones((1, 2)),
        np.zeros(1),
        np.ones(1),
    )
    full, first, second = ratio(np.array([[True, True], [False, True], [True, False]])).sum(1)
    np.testing.assert_allclose(
        exact_lime(ratio, bandwidth, whole=True), [full - first, full - second], atol=1e-9
    )
