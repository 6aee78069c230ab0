"""Where a value stands among random ones, by counting; and what is drawn follows the seed."""

from __future__ import annotations

import numpy as np
import pytest

from tests.games.made_up import FeatureGame
from whence.core.evidence import Verdict
from whence.core.registry import Better
from whence.metrics.rankings import random_rankings, rankings_of
from whence.metrics.standing import Standing, standing

HUNDRED = np.arange(100.0)


def stands(value: float, better: Better = "higher", is_complete: bool = False) -> Standing:
    return standing(value, HUNDRED, better=better, is_complete=is_complete, scale=100.0)


def test_the_band_holds_95_percent_of_the_random_ones() -> None:
    """2.5 % of the way from 0 to 99, and as much from its end. The enemy: a band of 90 %."""
    middle = stands(50.0)
    assert (middle.low, middle.high) == pytest.approx((0.025 * 99, 0.975 * 99))
    assert middle.mean == 49.5


@pytest.mark.parametrize(
    ("value", "beaten", "p", "verdict"),
    [
        (99.5, 1.0, 1 / 101, Verdict.BETTER),
        (95.5, 0.96, 5 / 101, Verdict.BETTER),
        (94.5, 0.95, 6 / 101, Verdict.SAME),
        (95.0, 0.955, 6 / 101, Verdict.SAME),  # a tie is half beaten, and as good
        (5.0, 0.055, 96 / 101, Verdict.SAME),
        (4.5, 0.05, 96 / 101, Verdict.SAME),
        (4.0, 0.045, 97 / 101, Verdict.SAME),  # a tie is as bad, too
        (3.5, 0.04, 97 / 101, Verdict.WORSE),
        (-1.0, 0.0, 1.0, Verdict.WORSE),
    ],
)
def test_p_counts_the_ranking_itself_and_ties_count_half(
    value: float, beaten: float, p: float, verdict: Verdict
) -> None:
    """The enemies: p without the ranking itself; ties beaten, or not at all; ties not as good.

    The other way round, for a metric that is better when it is lower, all is mirrored.
    """
    for found in (stands(value), stands(99.0 - value, "lower")):
        assert found.beaten == pytest.approx(beaten)
        assert found.p == pytest.approx(p)
        assert found.verdict == verdict


def test_of_all_rankings_p_is_a_plain_share() -> None:
    assert stands(95.0, is_complete=True).p == 5 / 100
    assert stands(95.0, is_complete=True).verdict == Verdict.BETTER


def test_lots_and_random_rankings_follow_the_seed() -> None:
    """The enemies: one seed for all; equal scores in the order of reading."""
    game = FeatureGame(12, lambda z: z.sum(1))
    lots = {tuple(rankings_of(np.zeros(12), game, seed)[0].tolist()) for seed in range(6)}
    assert len(lots) == 6
    assert tuple(range(12)) not in lots
    one, again, other = (random_rankings(game, 100, seed).orders for seed in (0, 0, 1))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
