"""The formulas of LIME's limit beside the exact values."""

import numpy as np
import pytest

from tests.theory.test_exact import RATIONAL, heads
from whence.games.ratio import RatioOfSums, size_averages
from whence.theory.exact import exact_lime
from whence.theory.limits import (
    alpha,
    corollary,
    first_order,
    kept_means,
    large_bandwidth,
    mean_field,
    population_lime,
    sigmas,
    talk,
)


def averages(ratio: RatioOfSums) -> tuple[np.ndarray, np.ndarray]:
    average, kept = size_averages(ratio)
    return average.sum(0), kept.sum(0)


@pytest.mark.parametrize("d", [3, 8, 50])
def test_the_constants_of_infinite_bandwidth(d: int) -> None:
    np.testing.assert_allclose(
        [alpha(p, d, None) for p in range(4)],
        [(d - p) / ((p + 1) * d) if p else 1 for p in range(4)],
    )
    s = sigmas(d, None)
    both = (d + 1) * (d - 1)
    np.testing.assert_allclose(
        [s.s1, s.s2, s.s3],
        [-6 / (d + 1), 6 * (d * d - 2 * d + 3) / both, -6 * (d - 3) / both],
        atol=1e-12,
    )


@pytest.mark.parametrize("bandwidth", [None, 1.0, 0.25, 0.2])
@pytest.mark.parametrize("d", [2, 7, 40])
def test_the_population_limit_is_the_exact_value(d: int, bandwidth: float | None) -> None:
    ratio = heads(5, d, 2, 2.0)
    np.testing.assert_allclose(
        population_lime(*averages(ratio), bandwidth),
        exact_lime(ratio, bandwidth),
        atol=1e-9,
        rtol=0,
    )


def test_the_finite_form_is_exact_and_the_corollary_of_the_talk_is_not() -> None:
    m, m0 = kept_means(*averages(RATIONAL))
    np.testing.assert_allclose([*m, m0], [4 / 15, -1 / 5, 5 / 12, 1 / 10], atol=1e-12)
    np.testing.assert_allclose(large_bandwidth(m, m0), [1 / 4, -9 / 20, 19 / 40], atol=1e-12)
    np.testing.assert_allclose(corollary(m), [19 / 60, -13 / 12, 23 / 30], atol=1e-12)
    ratio = heads(6, 30, 3, 1.5)
    np.testing.assert_allclose(
        large_bandwidth(*kept_means(*averages(ratio))), exact_lime(ratio, None), atol=1e-12
    )


def test_the_approximations_of_the_rational_example() -> None:
    np.testing.assert_allclose(talk(RATIONAL), [0.3, -0.6, 0.6], atol=1e-12)
    np.testing.assert_allclose(mean_field(RATIONAL), [0.2228, -0.4693, 0.4455], atol=5e-5)
    np.testing.assert_allclose(
        first_order(RATIONAL), [1 / 5, -2 / 5 - 1 / 25, 2 / 5], atol=1e-12
    )  # f = 1/5, g − ĝ = (0, 1, 0), D = 5


def padded(d: int, places: int, mean_of_hats: float) -> RatioOfSums:
    """The setting of the theorem.

    Bounded scores, d words among many padded places, which hold the same token as a removed word.
    """
    rng = np.random.default_rng(d)
    g, gh, fixed = (
        np.exp(0.3 * rng.normal(size=(1, d))),
        np.exp(0.3 * rng.normal(size=(1, d))),
        np.exp(0.3 * rng.normal(size=places - d)),
    )
    v, vh, v0 = (
        rng.normal(size=(1, d)),
        mean_of_hats + 0.1 * rng.normal(size=(1, d)),
        mean_of_hats + 0.1 * rng.normal(size=places - d),
    )
    return RatioOfSums(g * v, gh * vh, g, gh, np.array([fixed @ v0]), np.array([fixed.sum()]))


@pytest.mark.parametrize("mean_of_hats", [0.0, -0.5])
def test_under_the_theorems_own_assumptions_the_factor_is_one(mean_of_hats: float) -> None:
    """Would catch 3/2: it is half as much too much, however long the text.

    And a missing term, where [UNK] has a mean value of its own.
    """
    ratio = padded(100, 4000, mean_of_hats)
    truth = exact_lime(ratio, None)

    def off(found: np.ndarray) -> float:
        return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))

    assert off(mean_field(ratio)) < 1e-4
    assert off(first_order(ratio)) < 0.02
    assert off(talk(ratio)) > 0.4
    slope = float(talk(ratio, 1.0) @ truth / (talk(ratio, 1.0) @ talk(ratio, 1.0)))
    assert 0.85 < slope < 1.1
    assert (off(talk(ratio, 1.0)) > 0.1) == (mean_of_hats != 0)
