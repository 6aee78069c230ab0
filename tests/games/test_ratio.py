"""The averages of a ratio of sums are those that enumeration finds."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whence.games.ratio import (
    RatioOfSums,
    exponential_sum,
    kept_averages,
    mean_by_size,
    size_averages,
)


def random_ratio(units: int, terms: int, sharpness: float, seed: int) -> RatioOfSums:
    rng = np.random.default_rng(seed)
    n, nh = rng.normal(size=(2, terms, units))
    g, gh = np.exp(sharpness * rng.normal(size=(2, terms, units)))
    n0 = rng.normal(size=terms)
    d0 = np.exp(sharpness * rng.normal(size=terms))
    return RatioOfSums(n, nh, g, gh, n0, d0)


def enumerated(ratio: RatioOfSums) -> tuple[np.ndarray, np.ndarray]:
    units = ratio.n.shape[1]
    masks = np.array(list(product([False, True], repeat=units)))
    values = ratio(masks).T
    size = masks.sum(1)
    average, kept = [], []
    for k in range(units + 1):
        of_size = values[:, size == k]
        average.append(of_size.mean(1))
        kept.append((of_size[:, :, None] * masks[size == k]).mean(1))
    return np.stack(average, 1), np.stack(kept, 1)


@settings(max_examples=40)
@given(
    units=st.integers(1, 8),
    terms=st.integers(1, 3),
    sharpness=st.sampled_from([0.1, 1.0, 4.0, 12.0]),
    seed=st.integers(0, 2**31),
)
def test_equals_enumeration_however_sharp(
    units: int, terms: int, sharpness: float, seed: int
) -> None:
    ratio = random_ratio(units, terms, sharpness, seed)
    average, kept = size_averages(ratio)
    expected, expected_kept = enumerated(ratio)
    largest_numerator = np.abs(ratio.n0) + np.abs(ratio.n).sum(1) + np.abs(ratio.nh).sum(1)
    scale = largest_numerator / (ratio.d0 + np.minimum(ratio.g, ratio.gh).sum(1))
    off = (average - expected) / scale[:, None]
    off_kept = (kept - expected_kept) / scale[:, None, None]
    np.testing.assert_allclose(off, 0, rtol=0, atol=2e-13)
    np.testing.assert_allclose(off_kept, 0, rtol=0, atol=2e-13)


def test_ten_units_and_many_lanes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ratio = random_ratio(10, 5, 2.0, 7)
    expected, expected_kept = enumerated(ratio)
    # Sixteen lanes at a time, so that terms are cut in two.
    monkeypatch.setattr("whence.games.ratio.BYTES", 1)
    average, kept = size_averages(ratio)
    np.testing.assert_allclose(average, expected, atol=1e-10)
    np.testing.assert_allclose(kept, expected_kept, atol=1e-10)


def test_weighted_averages_are_rows_of_the_table() -> None:
    ratio = random_ratio(7, 2, 1.0, 3)
    weights = np.random.default_rng(1).normal(size=(3, 8))
    _, kept = size_averages(ratio)
    expected = np.einsum("fk,tkj->tfj", weights, kept)
    np.testing.assert_allclose(kept_averages(ratio, weights), expected, atol=1e-12)


def test_the_rational_example_of_three_units() -> None:
    n, g = (1, -2, 2), (1, 2, 1)
    ratio = RatioOfSums(
        np.array([n], float),
        np.zeros((1, 3)),
        np.array([g], float),
        np.ones((1, 3)),
        np.zeros(1),
        np.ones(1),
    )
    sums = [Fraction(0)] * 4
    for mask in product([0, 1], repeat=3):
        numerator, denominator = 0, 1
        for unit, is_kept in enumerate(mask):
            if is_kept:
                numerator += n[unit]
                denominator += g[unit]
            else:
                denominator += 1
        sums[sum(mask)] += Fraction(numerator, denominator)
    means = [float(total / count) for total, count in zip(sums, (1, 3, 3, 1), strict=True)]
    np.testing.assert_allclose(mean_by_size(ratio)[0], means, atol=1e-13)


@given(spread=st.floats(1.0, 1e9), place=st.floats(0, 1))
def test_one_over_x_is_a_sum_of_exponentials(spread: float, place: float) -> None:
    u, w = exponential_sum(spread)
    x = spread**place
    assert w @ np.exp(-u * x) * x == pytest.approx(1, abs=5e-13)


def test_hundreds_of_units_stay_finite_and_keep_their_sum() -> None:
    ratio = random_ratio(200, 1, 2.0, 5)
    average = mean_by_size(ratio)[0]
    ends = ratio(np.array([[False] * 200, [True] * 200]))[:, 0]
    np.testing.assert_allclose(average[[0, -1]], ends, rtol=1e-11)
    marginal = np.ones((1, 201))
    total = kept_averages(ratio, marginal)[0, 0].sum()  # Σ_j E[f z_j | k] = k E[f | k]
    np.testing.assert_allclose(total, np.arange(201) @ average, rtol=1e-10)
