"""Correlations beside scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import pearsonr, spearmanr

from whence.metrics.correlation import pearson, spearman

few_values = arrays(float, (2, 9), elements=st.integers(-3, 3).map(float))
any_values = arrays(float, (2, 6), elements=st.floats(-1e300, 1e300))


@given(few_values)
def test_ties_share_the_mean_of_their_ranks(sides: np.ndarray) -> None:
    """The enemy: ranks in the order in which equal values stand."""
    left, right = sides
    if np.ptp(left) == 0 or np.ptp(right) == 0:
        assert spearman(left[None], right[None]) == 0
        return
    peer = spearmanr(left, right).statistic
    assert spearman(left[None], right[None])[0] == pytest.approx(peer, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_rows_are_by_themselves(seed: int) -> None:
    rng = np.random.default_rng(seed)
    left, right = rng.normal(size=(4, 3, 8)), rng.normal(size=(1, 3, 8))
    ours = pearson(left, right)
    for i in range(4):
        for j in range(3):
            assert ours[i, j] == pytest.approx(pearsonr(left[i, j], right[0, j]).statistic)


@given(any_values)
def test_always_a_number_between_its_ends(sides: np.ndarray) -> None:
    """The enemies: zero by zero, a square that overflows, 1.0000000000000002."""
    for correlation in (pearson, spearman):
        (value,) = correlation(sides[:1], sides[1:])
        assert -1 <= value <= 1


def test_rounding_errors_are_no_variation() -> None:
    """The enemy: 0.1 + 0.2 beside 0.3, and a perfect correlation with it."""
    nearly_constant = np.array([[0.1 + 0.2, 0.3, 0.3]])
    assert pearson(nearly_constant, np.array([[1.0, 0.0, 0.0]])) == 0
