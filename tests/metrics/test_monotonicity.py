"""Monotonicity: closed forms, scipy's rank correlation, and what it does not see."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import spearmanr

import whence
from tests.games.made_up import FeatureGame, additive
from whence.metrics.monotonicity import Monotonicity


def test_the_closed_form_of_a_linear_model() -> None:
    """f = w·x, squared loss: the loss without i is (w_i x_i)². Its root gives 1, its order -1.

    The enemies: signed scores instead of their sizes; falls instead of losses, of which that of
    the last unit is the lowest.
    """
    effects = np.array([0.5, 3.0, -1.0, 0.1, -4.0])
    game = additive(effects)
    sizes = np.abs(effects)
    rows = np.array([sizes, effects, -effects, sizes**2, 1 / sizes])
    assert Monotonicity()(game, rows) == pytest.approx([1, 1, 1, 1, -1])


def test_beside_scipy_and_a_slow_loss() -> None:
    rng = np.random.default_rng(1)
    weights = rng.normal(size=9)
    game = FeatureGame(9, lambda z: np.tanh(z @ weights) + z[:, 0] * z[:, 1])
    losses = []
    for unit in range(9):
        mask = [other != unit for other in range(9)]
        losses.append((game.full - float(game([mask])[0])) ** 2)
    scores = rng.integers(-3, 4, size=(6, 9)).astype(float)
    peer = [spearmanr(np.abs(row), losses).statistic for row in scores]
    assert Monotonicity()(game, scores) == pytest.approx(peer)


def test_units_that_do_nothing_are_tied_though_sums_round() -> None:
    """The enemy: ranks among falls of 1e-12, so that the truth is less than 1."""
    weights = np.array([0.3, 0.0, 0.1, 0.0, 0.7, 0.0, 0.0])
    rounding = np.array([0, 1, 0, -3, 0, 0, 2]) * 1e-12
    game = FeatureGame(7, lambda z: 0.1 + z @ (weights + rounding))
    assert Monotonicity()(game, weights[None]) == pytest.approx([1.0])


@given(arrays(float, 5, elements=st.floats(-1e6, 1e6)), st.floats(1e-3, 1e3))
@settings(max_examples=30)
def test_scale_sign_and_order_of_units_do_not_matter(scores: np.ndarray, factor: float) -> None:
    weights = np.array([1.0, -2.0, 0.0, 0.5, 4.0])
    shuffled = [3, 0, 4, 1, 2]
    (value,) = Monotonicity()(additive(weights), scores[None])
    (of_sizes,) = Monotonicity()(additive(weights), -np.abs(scores)[None])
    (moved,) = Monotonicity()(additive(weights[shuffled]), scores[shuffled][None])
    assert value == pytest.approx(of_sizes, abs=1e-12)
    assert value == pytest.approx(moved, abs=1e-12)
    if len(np.unique(np.abs(scores * factor))) == len(np.unique(np.abs(scores))):
        (scaled,) = Monotonicity()(additive(weights), factor * scores[None])
        assert value == pytest.approx(scaled, abs=1e-12)


def test_a_constant_side_gives_zero() -> None:
    assert Monotonicity()(additive(np.arange(4.0)), np.ones((1, 4))) == 0
    assert Monotonicity()(additive(np.zeros(4)), np.arange(4.0)[None]) == 0


def test_occlusion_is_perfect_by_definition() -> None:
    """It ranks by the very removals that monotonicity asks for, as its page warns."""
    model, text = whence.load("sentiment"), "a truly wonderful and moving little film"
    a = whence.explain(model, text, "occlusion", target="positive", evidence=False)
    v = whence.game(model, text, target="positive", removal=a.settings["removal"])
    assert whence.measure(v, a, "monotonicity").value == pytest.approx(1.0)
