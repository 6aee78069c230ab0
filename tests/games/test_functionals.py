"""LIME, Shapley, Banzhaf and Beta Shapley as functionals, against their definitions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whence.core.errors import SettingsError
from whence.games.functionals import Functional, banzhaf, beta_shapley, lime, shapley
from whence.games.ratio import RatioOfSums, size_averages
from whence.games.sampling import all_masks

EVERY = {
    "lime": lime,
    "lime infinite": lambda d: lime(d, None),
    "lime narrow": lambda d: lime(d, 0.03),
    "shapley": shapley,
    "banzhaf": banzhaf,
    "beta": beta_shapley,
    "beta 4 1": lambda d: beta_shapley(d, 4, 1),
}
RATIONAL = RatioOfSums(
    n=np.array([[1.0, -2.0, 2.0]]),
    nh=np.zeros((1, 3)),
    g=np.array([[1.0, 2.0, 1.0]]),
    gh=np.ones((1, 3)),
    n0=np.zeros(1),
    d0=np.ones(1),
)


def test_the_rational_example_exactly() -> None:
    masks = all_masks(3)
    values = RATIONAL(masks)[:, 0]
    expected = {
        lime(3, None): (1 / 4, -9 / 20, 19 / 40),
        lime(3): (0.23822471, -0.48790264, 0.45016103),
        shapley(3): (9 / 40, -19 / 40, 9 / 20),
    }
    for functional, numbers in expected.items():
        np.testing.assert_allclose(functional.of_values(masks, values), numbers, atol=5e-9)
        np.testing.assert_allclose(functional.of_ratios(RATIONAL), numbers, atol=5e-9)


@settings(max_examples=25)
@given(units=st.integers(1, 7), seed=st.integers(0, 2**31))
def test_the_three_ways_agree(units: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, nh, g, gh = rng.normal(size=(4, 2, units))
    ratio = RatioOfSums(n, nh, np.exp(g), np.exp(gh), rng.normal(size=2), np.ones(2))
    masks = all_masks(units)
    average, kept = size_averages(ratio)
    for make in EVERY.values():
        functional = make(units)
        by_values = functional.of_values(masks, ratio(masks).sum(1))
        by_ratios = functional.of_ratios(ratio)
        by_sizes = functional.of_sizes(average.sum(0), kept.sum(0))
        np.testing.assert_allclose(by_ratios, by_values, atol=1e-10)
        np.testing.assert_allclose(by_sizes, by_values, atol=1e-10)


@given(
    bandwidth=st.none() | st.floats(1e-12, 1e6),
    units=st.integers(1, 60),
    seed=st.integers(0, 2**31),
)
def test_lime_gives_an_additive_game_back_for_every_bandwidth(
    bandwidth: float | None, units: int, seed: int
) -> None:
    coefficients = np.random.default_rng(seed).normal(size=units)
    functional = lime(units, bandwidth)
    by_formula = functional.of_linear(coefficients, 3.0)
    np.testing.assert_allclose(by_formula, coefficients, atol=1e-9)
    if units <= 8:
        masks = all_masks(units)
        by_values = functional.of_values(masks, 3.0 + masks @ coefficients)
        np.testing.assert_allclose(by_values, coefficients, atol=1e-9)


@given(
    units=st.integers(2, 6),
    bandwidth=st.floats(0.25, 3.0),
    ridge=st.floats(0, 0.5),
    seed=st.integers(0, 2**31),
)
def test_lime_is_weighted_least_squares_with_an_intercept_and_a_ridge(
    units: int, bandwidth: float, ridge: float, seed: int
) -> None:
    """The normal equations of the population: every mask has its probability times its weight.

    The intercept is not penalised.
    """
    masks = all_masks(units)[:-1]  # at least one unit is removed
    values = np.random.default_rng(seed).normal(size=len(masks))
    size = masks.sum(1)
    kernel = np.exp(-((1 - np.sqrt(size / units)) ** 2) / (2 * bandwidth**2))
    weight = kernel / units / np.bincount(size)[size]
    design = np.concatenate([np.ones((len(masks), 1)), masks], 1)
    penalty = np.diag([0.0] + [ridge] * units)
    weighted = (design * weight[:, None]).T
    expected = np.linalg.solve(weighted @ design + penalty, weighted @ values)[1:]

    # The whole text has no weight, whatever its value.
    with_whole = np.append(values, 1e3)
    scores = lime(units, bandwidth, ridge).of_values(all_masks(units), with_whole)
    np.testing.assert_allclose(scores, expected, atol=1e-8)


def test_lime_falls_to_its_limit_as_the_bandwidth_does() -> None:
    """At bandwidth 0 texts with one unit removed count for contrasts, with two for the slope."""
    values = np.random.default_rng(0).normal(size=32)
    smaller = [
        lime(5, bandwidth).of_values(all_masks(5), values)
        for bandwidth in (0.011, 0.009, 1e-3, 1e-9)
    ]
    for one in smaller[1:]:
        np.testing.assert_allclose(one, smaller[0], atol=1e-9)


@pytest.mark.parametrize("bandwidth", [0, -1.0])
def test_a_bandwidth_that_is_none_is_named(bandwidth: float) -> None:
    with pytest.raises(SettingsError, match="bandwidth"):
        lime(4, bandwidth)


def test_a_ridge_beside_vanishing_weights_is_refused() -> None:
    with pytest.raises(SettingsError, match="ridge"):
        lime(4, 1e-3, ridge=0.1)


@given(units=st.integers(2, 7), seed=st.integers(0, 2**31))
def test_beta_2_2_is_lime_of_infinite_bandwidth_over_all_sizes(units: int, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=2**units)
    of_lime = lime(units, None, whole=True).of_values(all_masks(units), values)
    of_beta = beta_shapley(units).of_values(all_masks(units), values)
    np.testing.assert_allclose(of_beta, of_lime, atol=1e-10)


@given(units=st.integers(1, 5), seed=st.integers(0, 2**31))
def test_shapley_is_the_mean_over_all_orders(units: int, seed: int) -> None:
    masks = all_masks(units)
    drawn = np.random.default_rng(seed).normal(size=2**units)
    values = {}
    for mask, value in zip(masks.tolist(), drawn.tolist(), strict=True):
        values[tuple(mask)] = value

    expected = np.zeros(units)
    every = list(permutations(range(units)))
    for order in every:
        mask = [False] * units
        for unit in order:
            before = values[tuple(mask)]
            mask[unit] = True
            expected[unit] += (values[tuple(mask)] - before) / len(every)
    scores = shapley(units).of_values(masks, drawn)
    np.testing.assert_allclose(scores, expected, atol=1e-10)
    change = values[(True,) * units] - values[(False,) * units]
    assert scores.sum() == pytest.approx(change, abs=1e-9)


@given(units=st.integers(1, 6), seed=st.integers(0, 2**31))
def test_banzhaf_is_the_mean_over_all_subsets_of_the_others(units: int, seed: int) -> None:
    masks, values = all_masks(units), np.random.default_rng(seed).normal(size=2**units)
    expected = [values[masks[:, j]].mean() - values[~masks[:, j]].mean() for j in range(units)]
    np.testing.assert_allclose(banzhaf(units).of_values(masks, values), expected, atol=1e-12)


@pytest.mark.parametrize("make", EVERY.values(), ids=list(EVERY))
def test_symmetric_units_share_and_dummies_get_nothing(make: Callable[[int], Functional]) -> None:
    masks = all_masks(5)
    values = np.tanh(masks[:, 0] * 2.0 + masks[:, 1] * 2.0 - masks[:, 2] * masks[:, 3])
    scores = make(5).of_values(masks, values)
    assert scores[0] == pytest.approx(scores[1])
    assert scores[2] == pytest.approx(scores[3])
    # LIME's slope along sizes is shared by all units, a dummy too.
    if not make(5).name.startswith("lime"):
        assert scores[4] == pytest.approx(0, abs=1e-12)


def test_a_large_banzhaf_or_beta_neither_overflows_nor_loses_its_sum() -> None:
    linear = np.random.default_rng(0).normal(size=2000)
    for functional in (banzhaf(2000), beta_shapley(2000), shapley(2000), lime(2000)):
        np.testing.assert_allclose(functional.of_linear(linear, 5.0), linear, atol=1e-9)


@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (4, 1), (1, 4), (2, 3)])
def test_beta_shapley_knows_alpha_from_beta(alpha: int, beta: int) -> None:
    """A unit that only counts with one other: the chance that this one is there, β/(α + β).

    The enemy has the two exchanged, which no test with 2 and 2 would see.
    """
    masks = all_masks(5)
    both = (masks[:, 0] & masks[:, 1]).astype(float)
    values = beta_shapley(5, alpha, beta).of_values(masks, both)
    np.testing.assert_allclose(values[:2], beta / (alpha + beta), rtol=1e-12)
    np.testing.assert_allclose(values[2:], 0, atol=1e-12)
