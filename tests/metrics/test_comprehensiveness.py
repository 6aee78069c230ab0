"""Comprehensiveness beside the paper's definition, read slowly."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest

import whence
from tests.games.made_up import FeatureGame, additive
from whence.metrics.comprehensiveness import Comprehensiveness
from whence.metrics.curves import SHARES


def slow(game: FeatureGame, ranking: list[int]) -> float:
    """1/|B| Σ_k p(x) − p(x without the top k); the enemy: a sixth term for k = 0, which is zero."""
    falls = []
    for share in SHARES:
        removed = set(ranking[: ceil(share * game.size)])
        mask = [unit not in removed for unit in range(game.size)]
        falls.append(game.full - float(game([mask])[0]))
    return sum(falls) / len(falls)


@pytest.mark.parametrize("units", [1, 3, 10, 21, 100])
def test_against_the_definition(units: int) -> None:
    rng = np.random.default_rng(units)
    weights = rng.normal(size=units)
    game = FeatureGame(units, lambda z: 1 / (1 + np.exp(-z @ weights)))
    rankings = rng.permuted(np.tile(np.arange(units), (3, 1)), axis=1)
    expected = [slow(game, ranking) for ranking in rankings.tolist()]
    assert Comprehensiveness()(game, rankings) == pytest.approx(expected, rel=1e-12)


def test_at_least_one_unit_is_removed() -> None:
    game = additive(np.array([4.0, 0.0]))
    assert Comprehensiveness()(game, np.array([[0, 1], [1, 0]])) == pytest.approx([4.0, 0.0])


def test_the_paper_reads_probabilities() -> None:
    model = whence.load("sentiment")
    text = "a truly wonderful and moving film"
    game = whence.game(model, text, read="probability")
    ranking = np.array([[2, 4, 1, 0, 3, 5]])
    (value,) = Comprehensiveness()(game, ranking)
    assert -1 <= value <= 1
    assert value == pytest.approx(
        game.full
        - (
            3 * game([[1, 1, 0, 1, 1, 1]])[0]
            + game([[1, 1, 0, 1, 0, 1]])[0]
            + game([[1, 0, 0, 1, 0, 1]])[0]
        )
        / 5
    )
