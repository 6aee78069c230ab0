"""Deletion, insertion and what the evidence is made of, beside a slow reading of their formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import whence
from tests.games.made_up import FeatureGame
from whence.games.protocol import AnyGame
from whence.metrics.curves import Curves, curve_masks, steps_of
from whence.metrics.deletion import Deletion
from whence.metrics.evidence import Control, control, evidence
from whence.metrics.insertion import Insertion
from whence.metrics.matter import Matter
from whence.metrics.rankings import rankings_of
from whence.metrics.support import Support


def bent(units: int, seed: int) -> FeatureGame:
    weights, pairs = np.random.default_rng(seed).normal(size=(2, units))
    return FeatureGame(units, lambda z: np.tanh(z @ weights) + (z @ pairs) ** 2 / units)


def slow_area(game: FeatureGame, ranking: list[int], steps: list[int], inserts: bool) -> float:
    """The mean height of each step's two ends, times its share of the way."""
    heights = []
    for count in steps:
        mask = [(unit in ranking[:count]) == inserts for unit in range(game.size)]
        heights.append(float(game([mask])[0]))
    total = 0.0
    for i in range(1, len(steps)):
        share = (steps[i] - steps[i - 1]) / game.size
        total += share * (heights[i] + heights[i - 1]) / 2
    return total


@given(st.integers(1, 25), st.integers(1, 12), st.integers(0, 10**6))
def test_areas_against_their_formula(units: int, most: int, seed: int) -> None:
    """The enemies: steps weighted alike though they are not; the curve without its last point."""
    game = bent(units, seed)
    ranking = np.random.default_rng(seed).permutation(units)[None]
    steps = steps_of(units, most).tolist()
    for metric, inserts in ((Deletion(most), False), (Insertion(most), True)):
        slow = slow_area(game, ranking[0].tolist(), steps, inserts)
        assert metric(game, ranking) == pytest.approx([slow], rel=1e-9, abs=1e-9)


@given(st.integers(1, 25), st.integers(0, 10**6))
def test_support_is_insertion_less_deletion(units: int, seed: int) -> None:
    game = bent(units, seed)
    rankings = np.random.default_rng(seed).permuted(np.tile(np.arange(units), (4, 1)), axis=1)
    difference = Insertion()(game, rankings) - Deletion()(game, rankings)
    np.testing.assert_allclose(Support()(game, rankings), difference, rtol=0, atol=1e-12 * units)


@pytest.fixture(scope="module")
def drawn() -> tuple[AnyGame, Control]:
    """A real game, and random rankings in it."""
    v = whence.game(whence.load("sentiment"), "the food is great but the service is not bad")
    return v, control(v)


@pytest.mark.parametrize("signed", [True, False])
def test_the_evidence_is_a_metric_beside_the_same_metric_on_random_rankings(
    drawn: tuple[AnyGame, Control], signed: bool
) -> None:
    v, random = drawn
    scores = v.full - v(~np.eye(v.size, dtype=bool))
    if not signed:
        scores = np.abs(scores)
    (trial,) = evidence(scores, signed, [random]).trials
    metric = Support() if signed else Matter()
    values = metric(v, random.rankings)
    assert trial.statistic == metric(v, rankings_of(scores, v)).mean()
    assert trial.random_mean == values.mean()
    assert (trial.random_low, trial.random_high) == tuple(np.quantile(values, [0.025, 0.975]))
    assert trial.beaten == (trial.statistic > values).mean()
    if signed:
        difference = Insertion()(v, random.rankings) - Deletion()(v, random.rankings)
        np.testing.assert_allclose(values, difference, rtol=0, atol=1e-9)


def test_areas_of_a_line() -> None:
    """v = share kept: deletion falls from 1 to 0, insertion rises; both areas are a half."""
    game = FeatureGame(4, lambda z: z.mean(1))
    ranking = np.array([[2, 0, 3, 1]])
    assert Deletion()(game, ranking) == pytest.approx([0.5])
    assert Insertion()(game, ranking) == pytest.approx([0.5])
    assert Support()(game, ranking) == pytest.approx([0.0], abs=1e-15)
    assert Matter()(game, ranking) == pytest.approx([0.0], abs=1e-15)


def test_what_holds_the_target_up_and_what_matters() -> None:
    """v = z0 − z1 of four units: support wants unit 1 last, and matter wants it near the front."""
    weights = np.array([1.0, -1.0, 0.0, 0.0])

    def curves_of(ranking: list[int]) -> Curves:
        deletion, insertion = curve_masks(np.array([ranking]), np.arange(5)) @ weights
        return Curves(np.arange(5), deletion, insertion)

    def support(ranking: list[int]) -> float:
        return float(Support().of(curves_of(ranking))[0])

    assert support([0, 2, 3, 1]) > support([0, 1, 2, 3]) > support([1, 2, 3, 0])
    assert support([0, 2, 3, 1]) == -support([1, 2, 3, 0]) == 1.5
    shift = FeatureGame(4, lambda z: 3 * z[:, 1] - z[:, 0])
    for_matter = Matter()(shift, np.array([[1, 0, 2, 3], [2, 3, 0, 1]]))
    assert for_matter[0] > for_matter[1]
