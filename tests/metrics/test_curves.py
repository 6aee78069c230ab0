"""Curves beside a slow reading of their definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import whence
from whence.metrics.curves import Curves, curve_masks, curves, steps_of


@given(st.integers(1, 60), st.integers(1, 20))
def test_steps_go_from_nothing_to_all(units: int, most: int) -> None:
    steps = steps_of(units, most)
    assert steps[0] == 0
    assert steps[-1] == units
    assert len(steps) == min(units, most) + 1
    assert (np.diff(steps) > 0).all()
    assert np.diff(steps).max() - np.diff(steps).min() <= 1


@given(st.permutations(range(7)), st.integers(1, 7))
def test_masks_remove_and_keep_the_first_of_the_ranking(ranking: list[int], most: int) -> None:
    steps = steps_of(7, most)
    deletion, insertion = curve_masks(np.array([ranking]), steps)
    for i, k in enumerate(steps):
        assert set(np.flatnonzero(~deletion[0, i])) == set(ranking[:k])
        assert set(np.flatnonzero(insertion[0, i])) == set(ranking[:k])


def test_insertion_is_the_deletion_of_the_reverse_read_backwards() -> None:
    v = whence.game(whence.load("sentiment"), "not bad at all and fine")
    ranking = np.array([[3, 0, 5, 1, 4, 2]])
    ours, reverse = curves(v, ranking), curves(v, ranking[:, ::-1])
    np.testing.assert_array_equal(ours.insertion, reverse.deletion[:, ::-1])
    np.testing.assert_allclose(ours.support(), -reverse.support())
    np.testing.assert_allclose(ours.matter(), -reverse.matter())


def test_areas_of_a_line() -> None:
    """v = share kept: deletion falls from 1 to 0, insertion rises; both areas are a half."""
    steps = np.arange(5)
    down, up = (4 - steps)[None] / 4, steps[None] / 4
    c = Curves(steps, down, up)
    np.testing.assert_allclose(c.support(), [0.0], atol=1e-15)
    np.testing.assert_allclose(c.matter(), [0.0], atol=1e-15)


def test_what_holds_the_target_up_and_what_matters() -> None:
    """v = z0 − z1 of four units: the supporting ranking removes unit 0 first and unit 1 last; importance alone removes both first."""
    weights = np.array([1.0, -1.0, 0.0, 0.0])

    def of(ranking: list[int]) -> Curves:
        deletion, insertion = curve_masks(np.array([ranking]), np.arange(5)) @ weights
        return Curves(np.arange(5), deletion, insertion)

    assert of([0, 2, 3, 1]).support() > of([0, 1, 2, 3]).support() > of([1, 2, 3, 0]).support()
    assert of([0, 2, 3, 1]).support() == -of([1, 2, 3, 0]).support() == 1.5
