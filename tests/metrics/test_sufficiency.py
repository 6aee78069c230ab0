"""Sufficiency beside the paper's definition, read slowly."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np
import pytest

from tests.games.made_up import FeatureGame, additive
from whence.metrics.comprehensiveness import Comprehensiveness
from whence.metrics.curves import counts_of
from whence.metrics.sufficiency import Sufficiency

SHARES = [Fraction(percent, 100) for percent in (1, 5, 10, 20, 50)]


def slow(game: FeatureGame, ranking: list[int]) -> float:
    """1/|B| Σ_k p(x) − p(the top k alone); the enemy: p(x without the top k)."""
    missing = []
    for share in SHARES:
        kept = set(ranking[: ceil(share * game.size)])
        mask = [unit in kept for unit in range(game.size)]
        missing.append(game.full - float(game([mask])[0]))
    return sum(missing) / len(missing)


@pytest.mark.parametrize("units", [1, 3, 10, 21, 100, 140])
def test_against_the_definition(units: int) -> None:
    rng = np.random.default_rng(units)
    weights = rng.normal(size=units)
    game = FeatureGame(units, lambda z: 1 / (1 + np.exp(-z @ weights)))
    rankings = rng.permuted(np.tile(np.arange(units), (3, 1)), axis=1)
    expected = [slow(game, ranking) for ranking in rankings.tolist()]
    assert Sufficiency()(game, rankings) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_shares_are_rounded_up_as_exact_numbers_are() -> None:
    """The enemies: rounded down or to the nearest; a product that floating point puts above 7."""
    for units in range(1, 1200):
        assert counts_of(units).tolist() == [ceil(share * units) for share in SHARES]


def test_in_an_additive_game_kept_and_removed_are_two_halves() -> None:
    """What k units bring is what goes with them: the two metrics sum to full − empty."""
    game = additive(np.array([3.0, -1.0, 0.5, 0.0, 2.0]), start=0.7)
    rankings = np.array([[0, 4, 2, 3, 1], [1, 3, 2, 4, 0]])
    together = Sufficiency()(game, rankings) + Comprehensiveness()(game, rankings)
    assert together == pytest.approx([game.full - game.empty] * 2)


def test_one_word_that_does_it_all_is_sufficient() -> None:
    """Kept first nothing is missing; kept last all is, in all but the share of a half: 1.

    The enemy: a metric that keeps the last units.
    """
    game = FeatureGame(10, lambda z: z[:, 3])
    first = [3, *(unit for unit in range(10) if unit != 3)]
    assert Sufficiency()(game, np.array([first, first[::-1]])).tolist() == [0.0, 1.0]
