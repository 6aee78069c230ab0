"""Pairs are different, evenly spread over sizes, and the first of many."""

from __future__ import annotations

from math import comb

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from whence.games.functionals import banzhaf, beta_shapley, lime, shapley
from whence.games.sampling import all_masks, draw_pairs, even_law, law_for, pairs_of_size


def test_every_mask_once() -> None:
    assert len(np.unique(all_masks(7), axis=0)) == len(all_masks(7)) == 128
    assert all_masks(0).shape == (1, 0)


@settings(max_examples=30)
@given(
    units=st.integers(2, 30),
    count=st.integers(1, 150),
    more=st.integers(0, 100),
    seed=st.integers(0, 2**40),
)
def test_pairs_differ_and_a_longer_draw_begins_with_the_shorter(
    units: int, count: int, more: int, seed: int
) -> None:
    halves = draw_pairs(units, even_law(units), count, seed)
    assert len(halves) == min(count, (2**units - 2) // 2)
    assert len(np.unique(np.concatenate([halves, ~halves]), axis=0)) == 2 * len(halves)
    assert ((halves.sum(1) >= 1) & (2 * halves.sum(1) <= units)).all()
    np.testing.assert_array_equal(
        draw_pairs(units, even_law(units), count + more, seed)[: len(halves)], halves
    )


@given(units=st.integers(2, 12))
def test_all_pairs_are_all_masks_but_the_ends(units: int) -> None:
    halves = draw_pairs(units, even_law(units), 10**6, seed=0)
    assert len(np.unique(np.concatenate([halves, ~halves]), axis=0)) == 2**units - 2
    assert sum(pairs_of_size(units, k) for k in range(1, units // 2 + 1)) == len(halves)


def test_sizes_are_as_frequent_as_the_law_says_to_within_a_few() -> None:
    sizes = draw_pairs(40, even_law(40), 400, seed=3).sum(1)
    np.testing.assert_allclose(np.bincount(sizes, minlength=21)[1:], 400 * even_law(40), atol=3)


def test_units_are_drawn_alike() -> None:
    """A wrong canonical half would favour the first unit.

    Of twenty units each is in half of the masks of size ten.
    """
    halves = draw_pairs(20, np.eye(10)[9], 4000, seed=1)
    both = np.concatenate([halves, ~halves])
    np.testing.assert_allclose(both.mean(0), 0.5)
    together = (both.T.astype(float) @ both) / len(both)
    expected = comb(18, 8) / comb(20, 10)
    assert np.abs(together[~np.eye(20, dtype=bool)] - expected).max() < 0.03


def test_methods_share_one_law_unless_it_would_cost_them_dear() -> None:
    of_23 = (lime(23), lime(23, None), shapley(23), beta_shapley(23))
    for functional in (*of_23, shapley(100), lime(300)):
        np.testing.assert_array_equal(law_for(functional), even_law(functional.units))
    own = law_for(banzhaf(100))  # nearly all its weight is within ten units of the half
    assert own[39:].sum() > 0.75
    assert own.min() > 0
    assert law_for(lime(23, 0.02))[0] > 0.5  # one unit removed, or two


def test_the_subsets_of_each_size_follow_the_seed() -> None:
    """The enemy draws the same subsets of a size for every seed, and only their sizes differ."""
    by_seed = []
    for seed in range(4):
        halves = draw_pairs(9, even_law(9), 40, seed)
        of_four = halves[halves.sum(1) == 4][:5]
        by_seed.append(of_four.tobytes())
    assert len(set(by_seed)) == 4
