"""The area over the perturbation curve beside its sum, read slowly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.games.made_up import FeatureGame, additive
from whence.metrics.aopc import AreaOverCurve
from whence.metrics.deletion import Deletion


def slow(game: FeatureGame, ranking: list[int]) -> float:
    """1/d Σ_{k=1..d}; the enemy: Samek's 1/(L+1), with a term for k = 0 that is always zero."""
    total = 0.0
    for count in range(1, game.size + 1):
        mask = [unit not in ranking[:count] for unit in range(game.size)]
        total += game.full - float(game([mask])[0])
    return total / game.size


@given(st.integers(1, 14), st.integers(0, 10**6))
def test_against_the_sum_over_every_removal(units: int, seed: int) -> None:
    weights, pairs = np.random.default_rng(seed).normal(size=(2, units))
    game = FeatureGame(units, lambda z: np.tanh(z @ weights) + (z @ pairs) ** 2 / units)
    ranking = np.random.default_rng(seed).permutation(units)[None]
    (value,) = AreaOverCurve(steps=units)(game, ranking)
    assert value == pytest.approx(slow(game, ranking[0].tolist()), rel=1e-9, abs=1e-12)


def test_it_is_what_lies_over_the_deletion_curve() -> None:
    """full − deletion, but for the trapezoids' halves at both ends; the same masks, too."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=8)
    game = FeatureGame(8, lambda z: np.tanh(z @ weights))
    rankings = rng.permuted(np.tile(np.arange(8), (5, 1)), axis=1)
    ends = (game.full - game.empty) / (2 * 8)
    over = game.full - Deletion()(game, rankings) + ends
    assert AreaOverCurve()(game, rankings) == pytest.approx(over)


def test_long_texts_go_in_steps() -> None:
    """Of 40 units, 4 at a time; the enemy: the first ten removals alone."""
    game = additive(np.ones(40))
    (value,) = AreaOverCurve()(game, np.arange(40)[None])
    assert value == np.mean(np.arange(4, 41, 4))


@pytest.mark.parametrize("steps", [1, 7, 10, 100, 1000])
def test_chance_follows_the_steps(steps: int) -> None:
    game = additive(np.full(100, 0.01))
    (of_any_ranking,) = AreaOverCurve(steps)(game, np.arange(100)[None])
    assert AreaOverCurve(steps).chance == pytest.approx(of_any_ranking)


def test_steps_are_checked() -> None:
    with pytest.raises(ValueError, match="at least 1, not 0"):
        AreaOverCurve(0)
