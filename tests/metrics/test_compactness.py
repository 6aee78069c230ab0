"""Compactness: closed forms, and that it looks at the form alone."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import entropy

from whence.metrics.compactness import Compactness

By = Literal["mass", "entropy", "gini"]
every_way = pytest.mark.parametrize("by", ["mass", "entropy", "gini"])
any_scores = arrays(float, (1, 7), elements=st.floats(-1e300, 1e300))


@pytest.mark.parametrize(
    ("by", "one_of_ten", "all_alike"),
    # one unit is enough, so nine are not needed; of ten equal ones eight are
    [("mass", 0.9, 0.2), ("entropy", 1.0, 0.0), ("gini", 0.9, 0.0)],
)
def test_the_ends(by: By, one_of_ten: float, all_alike: float) -> None:
    """The enemies: signed sums, which would cancel; ties at 80 % that need one unit more."""
    rows = np.zeros((3, 10))
    rows[0, 4] = -3.0
    rows[1] = 0.1
    rows[2] = [0.1, -0.1] * 5
    expected = [one_of_ten, all_alike, all_alike]
    assert Compactness(by)(rows) == pytest.approx(expected, abs=1e-12)


def test_eighty_per_cent() -> None:
    """8 of 10 is enough, 7.9 of 10 is not."""
    rows = np.array([[2.0, 8.0, 0.0, 0.0], [2.1, 7.9, 0.0, 0.0]])
    assert Compactness()(rows).tolist() == [0.75, 0.5]


@pytest.mark.parametrize("seed", range(5))
def test_against_scipys_entropy_and_every_pair(seed: int) -> None:
    """Gini: Σ_ij |x_i − x_j| / (2 n² mean). The enemy: divided by n (n − 1)."""
    sizes = np.random.default_rng(seed).exponential(size=12)
    signs = np.random.default_rng(seed).choice([-1, 1], size=12)
    (by_entropy,) = Compactness("entropy")((signs * sizes)[None])
    assert by_entropy == pytest.approx(1 - entropy(sizes) / np.log(12))
    differences = np.abs(sizes[:, None] - sizes[None]).sum()
    (by_gini,) = Compactness("gini")((signs * sizes)[None])
    assert by_gini == pytest.approx(differences / (2 * 12**2 * sizes.mean()))


@every_way
@given(scores=any_scores, factor=st.sampled_from([-1.0, 0.5, 2.0**-900, 4.0]))
def test_only_the_form_counts(by: By, scores: np.ndarray, factor: float) -> None:
    """The enemies: a sum that overflows, and the order of the units."""
    (value,) = Compactness(by)(scores)
    assert 0 <= value <= 1
    (mirrored,) = Compactness(by)(-scores[:, ::-1])
    assert value == pytest.approx(mirrored, abs=1e-12)
    scaled = factor * scores
    is_exact = np.isfinite(scaled).all() and (scaled / factor == scores).all()
    if is_exact:
        (of_scaled,) = Compactness(by)(scaled)
        assert value == pytest.approx(of_scaled, abs=1e-9)


@every_way
def test_nothing_and_one_alone_are_not_compact(by: By) -> None:
    assert Compactness(by)(np.zeros((1, 5))).tolist() == [0.0]
    assert Compactness(by)(np.ones((1, 1))).tolist() == [0.0]


def test_gini_of_the_normal_distribution() -> None:
    """√2 − 1 for endlessly many scores."""
    drawn = np.random.default_rng(0).standard_normal((1, 200_000))
    assert Compactness("gini")(drawn) == pytest.approx([np.sqrt(2) - 1], abs=3e-3)
