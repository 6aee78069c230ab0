"""Curves beside a slow reading of their definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import whence
from whence.metrics.curves import curve_masks, curves, steps_of
from whence.metrics.matter import Matter
from whence.metrics.support import Support


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
    for metric in (Support(), Matter()):
        np.testing.assert_allclose(metric.of(ours), -metric.of(reverse))
