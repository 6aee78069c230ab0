"""Sensitivity, dummy and non-sensitivity: what is zero, and what should be."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.games.made_up import FeatureGame, additive
from whence.metrics.dummy import Dummy
from whence.metrics.non_sensitivity import NonSensitivity
from whence.metrics.sensitivity import Sensitivity

ALL = (Sensitivity(), Dummy(), NonSensitivity(), NonSensitivity(counted="share"))
scores_of_five = arrays(float, 5, elements=st.floats(-1e6, 1e6))


def saturated(x: torch.Tensor) -> torch.Tensor:
    """1 − relu(1 − x), Sundararajan's example: flat from x = 1 on."""
    return 1 - torch.relu(1 - x)


def test_the_gradient_breaks_sensitivity_and_integrated_gradients_keep_it() -> None:
    """At x = 2, from the baseline 0: the target rises from 0 to 1, and the gradient is 0.

    The enemy: a tolerance beside the *effect* of one, by which a score of zero would pass as well
    as one that is tiny everywhere.
    """
    game = FeatureGame(1, lambda z: saturated(torch.tensor(2 * z[:, 0])).numpy())
    assert (game.empty, game.full) == (0.0, 1.0)
    x = torch.tensor(2.0, requires_grad=True)
    (gradient,) = torch.autograd.grad(saturated(x), x)
    midpoints = ((torch.arange(100) + 0.5) / 50).requires_grad_()
    (on_path,) = torch.autograd.grad(saturated(midpoints).sum(), midpoints)
    integrated = 2 * float(on_path.mean())
    assert integrated == pytest.approx(1.0)
    rows = np.array([[float(gradient)], [integrated], [1e-9]])
    assert Sensitivity()(game, rows).tolist() == [0.0, 1.0, 1.0]


def test_sensitivity_is_a_share_of_the_units_that_change_something() -> None:
    """Four of six do; the enemy: a share of all units, 1/2 for the first row."""
    game = additive(np.array([1.0, -1.0, 2.0, 0.5, 0.0, 0.0]))
    rows = np.array([[1.0, 1, 1, 0, 0, 0], [0, 0, 0, 0, 1, 1], [1, -1, 1, 1, 1, 1]])
    assert Sensitivity()(game, rows).tolist() == [0.75, 0.0, 1.0]


def test_dummy_looks_at_coalitions() -> None:
    """Either of units 0 and 1 is enough, so without one alone nothing changes; yet they matter.

    Unit 2 is the only dummy. The enemy: one removal at a time, by which all three are.
    """
    game = FeatureGame(3, lambda z: np.maximum(z[:, 0], z[:, 1]))
    rows = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    assert Dummy()(game, rows).tolist() == [1.0, 0.0, 1.0]
    assert Sensitivity()(game, rows).tolist() == [1.0, 1.0, 1.0]  # no removal of one changes it


def test_dummy_is_a_share_of_the_dummies() -> None:
    game = additive(np.array([1.0, 0.0, 0.0, 0.0, 0.0]))
    rows = np.array([[1.0, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 0, 1, 1]])
    assert Dummy()(game, rows).tolist() == [1.0, 0.75, 0.5]


def test_shapley_values_keep_both_axioms_and_equal_scores_break_one() -> None:
    weights = np.array([2.0, 0.0, -1.0, 0.0])
    game = additive(weights)  # whose Shapley values are its weights
    rows = np.array([weights, np.ones(4)])
    assert Sensitivity()(game, rows).tolist() == [1.0, 1.0]
    assert Dummy()(game, rows).tolist() == [1.0, 0.0]
    assert NonSensitivity()(game, rows).tolist() == [0.0, 2.0]


def test_the_symmetric_difference() -> None:
    """G = {1, 3, 5} matter and G' = {3, 4, 5} have scores: {1, 4} → 2. The enemies: 1 for either
    side alone, 4 for the union less one."""
    matters = np.array([1.0, 0, 1, 0, 1])
    scored = np.array([[0, 0, 1.0, 1, 1]])
    assert NonSensitivity()(additive(matters), scored).tolist() == [2.0]
    assert NonSensitivity(counted="share")(additive(matters), scored).tolist() == [0.4]


def test_tolerances_are_relative_to_the_largest() -> None:
    """The enemy: |score| < 1e-5, by which scores of 1e-6 are all zero, whatever their unit."""
    game = additive(np.array([1e-6, 1e-7, 0.0]))
    assert NonSensitivity()(game, np.array([[1e-8, 1e-9, 0.0]])).tolist() == [0.0]
    assert NonSensitivity(tolerance=0.5)(game, np.array([[3.0, 2.0, 0.0]])).tolist() == [1.0]


def test_rounding_errors_change_nothing() -> None:
    """The enemy: the largest of the rounding errors as the scale."""
    game = FeatureGame(3, lambda z: 1.0 + 1e-16 * z.sum(1) + 4e-16 * z[:, 0])
    assert NonSensitivity()(game, np.zeros((1, 3))).tolist() == [0.0]
    assert Dummy()(game, np.zeros((1, 3))).tolist() == [1.0]


@given(scores_of_five, st.sampled_from([-8.0, 0.5, 1024.0]))
@settings(max_examples=30)
def test_scale_and_order_of_units_do_not_matter(scores: np.ndarray, factor: float) -> None:
    weights = np.array([1.0, 0.0, -2.0, 0.0, 0.5])
    shuffled = [3, 0, 4, 1, 2]
    for metric in ALL:
        (value,) = metric(additive(weights), scores[None])
        (scaled,) = metric(additive(weights), factor * scores[None])
        (moved,) = metric(additive(weights[shuffled]), scores[shuffled][None])
        assert value == pytest.approx(scaled, abs=1e-12)
        assert value == pytest.approx(moved, abs=1e-12)


@pytest.mark.parametrize("kind", [Sensitivity, Dummy, NonSensitivity])
def test_settings_are_checked(kind: type) -> None:
    for wrong in (-0.1, 1.0):
        with pytest.raises(ValueError, match="from 0 to below 1"):
            kind(tolerance=wrong)
    with pytest.raises(ValueError, match="at least 1, not 0"):
        Dummy(samples=0)
