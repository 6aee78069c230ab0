"""The best and the worst ranking beside every ranking there is."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.games.made_up import FeatureGame, additive
from whence.metrics.comprehensiveness import Comprehensiveness
from whence.metrics.curves import counts_of
from whence.metrics.limits import Search, limits
from whence.metrics.normalised_comprehensiveness import NormalisedComprehensiveness
from whence.metrics.normalised_sufficiency import NormalisedSufficiency
from whence.metrics.sufficiency import Sufficiency

PAIRS = [
    (NormalisedComprehensiveness, Comprehensiveness, 1),
    (NormalisedSufficiency, Sufficiency, -1),
]
of_both = pytest.mark.parametrize(("normalised", "plain", "sign"), PAIRS)


def bent(units: int, seed: int) -> FeatureGame:
    """Units that act together, so that the best set of two need not hold the best one."""
    rng = np.random.default_rng(seed)
    weights, pairs = rng.normal(size=units), rng.normal(size=(units, units))
    return FeatureGame(units, lambda z: z @ weights + np.einsum("mi,ij,mj->m", z, pairs, z))


@of_both
@pytest.mark.parametrize("units", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("seed", range(4))
def test_against_every_ranking(
    normalised: type, plain: type, sign: int, units: int, seed: int
) -> None:
    """The enemy: the best set of each size by itself, which no ranking need reach."""
    game = bent(units, seed)
    every = np.array(list(permutations(range(units))))
    values = plain()(game, every)
    lowest, highest = values.min(), values.max()
    worst, best = (lowest, highest) if sign > 0 else (highest, lowest)
    if best == pytest.approx(worst):
        expected = np.full(len(every), 0.5)
    else:
        expected = (values - worst) / (best - worst)
    ours = normalised()(game, every)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-9)
    if units > 1:
        assert {ours.min().round(9), ours.max().round(9)} == {0.0, 1.0}


def test_the_best_sets_need_not_be_nested() -> None:
    """Alone, unit 0 does most; together, 1 and 2 do. No ranking has both first.

    Of four units the counts are 1, 1, 1, 1, 2. Unit 0 first: (4 · 3 + 3)/5 = 3. Units 1 and 2
    first: (4 · 0 + 10)/5 = 2. The best sets by themselves: (4 · 3 + 10)/5 = 4.4.
    """

    def value(z: np.ndarray) -> np.ndarray:
        both_gone = (1 - z[:, 1]) * (1 - z[:, 2])
        return 13 - 3 * (1 - z[:, 0]) - 10 * both_gone * z[:, 0]

    game = FeatureGame(4, value)
    counts = counts_of(4)
    assert counts.tolist() == [1, 1, 1, 1, 2]
    lowest, highest = limits(lambda gone: game.full - game(~gone), 4, counts, Search())
    assert (lowest, highest) == (0.0, 3.0)


@pytest.mark.parametrize("units", [4, 9, 40, 100])
def test_the_beam_finds_the_best_where_units_act_alone(units: int) -> None:
    weights = np.random.default_rng(units).normal(size=units)
    counts = counts_of(units)
    best_first = np.argsort(-weights)[None]
    game = additive(weights)
    found = limits(lambda gone: game.full - game(~gone), units, counts, Search(exact=0))
    highest, lowest = (
        float(Comprehensiveness()(game, order)[0]) for order in (best_first, best_first[:, ::-1])
    )
    assert found == pytest.approx((lowest, highest))


@given(st.integers(1, 9), st.integers(1, 5), st.integers(0, 10**6))
@settings(max_examples=40)
def test_the_beam_is_within_the_limits_and_reached(units: int, width: int, seed: int) -> None:
    """What it returns is the value of a ranking: never beyond the true limits."""
    game, counts = bent(units, seed), counts_of(units)

    def falls(gone: np.ndarray) -> np.ndarray:
        return game.full - game(~gone)

    low, high = limits(falls, units, counts, Search())
    beam_low, beam_high = limits(falls, units, counts, Search(exact=0, width=width))
    assert low - 1e-9 <= beam_low <= beam_high + 1e-9
    assert beam_high <= high + 1e-9


def test_how_near_the_beam_comes() -> None:
    """Of ten units that act in pairs: 98.8 % of the way from worst to best.

    The enemies: a greedy search, which comes 96 % of the way here; and three sets that grow in
    three ways each, as in version 1, which come 98.5 % of the way with half as many passes again.
    """
    covered = []
    for seed in range(30):
        game, counts = bent(10, seed), counts_of(10)

        def falls(gone: np.ndarray, game: FeatureGame = game) -> np.ndarray:
            return game.full - game(~gone)

        low, high = limits(falls, 10, counts, Search())
        beam_low, beam_high = limits(falls, 10, counts, Search(exact=0))
        covered.append((beam_high - beam_low) / (high - low))
    assert np.mean(covered) > 0.986


@of_both
def test_a_ranking_beyond_the_beam_is_at_the_end(normalised: type, plain: type, sign: int) -> None:
    """The enemy: a share above one, out of the range."""
    game = bent(9, 1)
    rankings = np.random.default_rng(0).permuted(np.tile(np.arange(9), (500, 1)), axis=1)
    of_beam = normalised(exact=0, width=1)(game, rankings)
    assert of_beam.min() >= 0
    assert of_beam.max() <= 1
    order = np.argsort(sign * plain()(game, rankings))
    assert (np.diff(of_beam[order]) >= -1e-12).all()


@of_both
def test_the_scale_and_the_start_of_the_target_do_not_matter(
    normalised: type, plain: type, sign: int
) -> None:
    del plain, sign
    game = bent(7, 3)
    other = FeatureGame(7, lambda z: 5 - 0.01 * -game.value(z))
    rankings = np.random.default_rng(0).permuted(np.tile(np.arange(7), (20, 1)), axis=1)
    np.testing.assert_allclose(
        normalised()(other, rankings), normalised()(game, rankings), rtol=0, atol=1e-9
    )


@of_both
def test_settings_are_checked(normalised: type, plain: type, sign: int) -> None:
    del plain, sign
    with pytest.raises(ValueError, match="width is at least 1, not 0"):
        normalised(width=0)
    with pytest.raises(ValueError, match="exact is at least 0, not -1"):
        normalised(exact=-1)


@pytest.mark.parametrize("units", [5, 12, 13, 60])
def test_what_the_search_asks(units: int) -> None:
    """Exact up to twelve units, by the number of sets; then no more than it says."""
    asked = set()

    def falls(gone: np.ndarray) -> np.ndarray:
        asked.update(row.tobytes() for row in gone)
        return gone @ np.linspace(-1, 2, units)

    search, counts = Search(), counts_of(units)
    limits(falls, units, counts, search)
    assert search.is_exact(units, counts) == (units <= 12)
    assert len(asked) <= search.passes(units, counts) <= 2 * len(asked)


def test_only_the_best_set_tries_every_unit() -> None:
    """Of 20 units, 1, 2, 4 and 10 come in: 20 + 19 + 18 + 16 are tried, the 20 for both ends.

    The enemy: every kept set tries all units each time.
    """
    asked = set()

    def falls(gone: np.ndarray) -> np.ndarray:
        asked.update(row.tobytes() for row in gone)
        return gone @ np.linspace(1, 2, 20) ** 9

    counts = counts_of(20)
    assert np.unique(counts).tolist() == [1, 2, 4, 10]
    limits(falls, 20, counts, Search())
    grown = 3 * 2 * 8  # two sets, in eight ways each, to 2, 4 and 10 units
    assert len(asked) <= 20 + 2 * (19 + 18 + 16 + grown)
