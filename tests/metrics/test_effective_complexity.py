"""Effective complexity: how many of the first units are enough."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.games.made_up import FeatureGame, additive
from tests.metrics.test_contract import half_idle
from whence.metrics.effective_complexity import EffectiveComplexity
from whence.metrics.rankings import random_rankings


def test_two_of_five_features() -> None:
    """f depends on 2 of 5: the right ranking needs 2, one with an idle unit on top 3.

    The enemies: the loss when the top k are *removed*, which is never small here; and the number of
    scores that are not zero.
    """
    game = additive(np.array([0.0, 3.0, 0.0, -1.0, 0.0]))
    rankings = np.array([[1, 3, 0, 2, 4], [0, 1, 3, 2, 4], [0, 2, 4, 3, 1]])
    assert EffectiveComplexity()(game, rankings).tolist() == [2.0, 3.0, 5.0]
    shares = EffectiveComplexity(counted="share")(game, rankings)
    assert shares.tolist() == [0.4, 0.6, 1.0]


@given(st.integers(1, 12), st.integers(0, 10**6))
def test_monotone_in_epsilon_and_as_slow_as_can_be(units: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=units)
    game = FeatureGame(units, lambda z: np.tanh(z @ weights) + z[:, 0])
    ranking = rng.permutation(units)
    previous = units
    for epsilon in (0.0, 0.001, 0.01, 0.1, 0.5):
        (value,) = EffectiveComplexity(epsilon, steps=units)(game, ranking[None])
        assert value == slow(game, ranking.tolist(), epsilon)
        assert value <= previous
        previous = value


def slow(game: FeatureGame, ranking: list[int], epsilon: float) -> int:
    allowed = epsilon * (game.full - game.empty) ** 2
    for count in range(game.size):
        mask = [unit in ranking[:count] for unit in range(game.size)]
        if (game.full - float(game([mask])[0])) ** 2 <= allowed:
            return count
    return game.size


def test_the_scale_of_the_target_does_not_matter() -> None:
    """The enemy: an absolute epsilon."""
    weights = np.array([4.0, 1.0, 0.3, 0.1, 0.0])
    for factor in (1e-6, 1.0, -1e6):
        values = EffectiveComplexity()(additive(factor * weights), np.arange(5)[None])
        assert values.tolist() == [2.0]  # 0.4 of 5.4 is 7 %, and √epsilon is 10 %


def test_a_target_that_nothing_moves_needs_no_unit() -> None:
    assert EffectiveComplexity()(additive(np.zeros(4)), np.arange(4)[None]) == 0


def test_long_texts_go_in_steps() -> None:
    """Of 40 units, 4 at a time: 5 become 8."""
    game = additive((np.arange(40) < 5).astype(float))
    ranking = np.arange(40)[None]
    assert EffectiveComplexity()(game, ranking) == 8
    assert EffectiveComplexity(steps=40)(game, ranking) == 5


@pytest.mark.parametrize("epsilon", [0.002, 0.01, 0.04, 0.25])
@pytest.mark.parametrize("steps", [10, 100])
def test_chance_follows_epsilon_and_steps(epsilon: float, steps: int) -> None:
    """Up to one unit of a hundred; the enemies: 1 − epsilon, and steps that are forgotten (4.5)."""
    metric = EffectiveComplexity(epsilon, steps)
    means = []
    for seed in range(60):
        weights = half_idle(np.random.default_rng([9, seed]), 100)
        game = additive(weights / weights.sum())
        means.append(metric(game, random_rankings(game, 30, seed).orders).mean())
    assert np.mean(means) == pytest.approx(metric.chance, abs=1.0)


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match=r"epsilon is from 0 to below 1, not 1\.0"):
        EffectiveComplexity(epsilon=1.0)
    with pytest.raises(ValueError, match="steps is at least 1, not 0"):
        EffectiveComplexity(steps=0)
