"""Ties: beside copies of themselves, exactly where these can be listed, and at the level promised.

The games are made up, so that every copy, and every order within its tiers, can be enumerated.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations

import numpy as np
import pytest

from tests.games.tables import Table
from tests.metrics.test_windows import Named, joint, windows
from whence.core.evidence import Verdict
from whence.games.functionals import shapley
from whence.metrics.curves import curves
from whence.metrics.evidence import ALL_EQUAL, control, evidence
from whence.metrics.matter import Matter
from whence.metrics.support import Support
from whence.metrics.ties import (
    copies_of,
    mirrored,
    number_of_copies,
    sizes_of,
    smoothed,
    tiers_in,
    tiers_of,
)
from whence.metrics.windows import joint_evidence


class Drawn(Table):
    """A game with a text of its own: weights, and pairs of units that bend it."""

    def __init__(self, units: int, rng: np.random.Generator, bend: float) -> None:
        own, pairs = rng.normal(size=(2, units))
        self.name = rng.bytes(8)

        def value(masks: np.ndarray) -> np.ndarray:
            total = masks @ own
            return total + bend * np.tanh(total) + bend * (masks @ pairs) ** 2 / units

        super().__init__(units, value)

    @property
    def digest(self) -> bytes:
        return self.name


def shapley_values(game: Table) -> np.ndarray:
    every = (np.arange(2**game.size)[:, None] >> np.arange(game.size) & 1).astype(bool)
    return shapley(game.size).of_values(every, game(every))


def top_two(scores: np.ndarray) -> np.ndarray:
    ones = np.zeros(len(scores))
    ones[np.argsort(-scores)[:2]] = 1.0
    return ones


def test_tiers_and_what_can_be_put_into_them() -> None:
    scores = np.array([0.0, 3.0, 0.0, 1.0, 3.0])
    assert tiers_of(scores).tolist() == [2, 0, 2, 1, 0]
    assert sizes_of(scores).tolist() == [2, 1, 2]
    every = {tuple(tiers_of(scores[list(order)])) for order in permutations(range(5))}
    assert number_of_copies(sizes_of(scores)) == len(every) == 30
    orders = np.array(list(permutations(range(5))))
    assert {tuple(tiers) for tiers in tiers_in(orders, sizes_of(scores))} == every


def test_the_mirror_turns_each_tier_round_and_nothing_else() -> None:
    orders = np.array([[4, 1, 3, 0, 2], [0, 1, 2, 3, 4]])
    sizes = np.array([2, 1, 2])
    assert mirrored(orders, sizes).tolist() == [[1, 4, 3, 2, 0], [1, 0, 2, 4, 3]]
    assert (tiers_in(mirrored(orders, sizes), sizes) == tiers_in(orders, sizes)).all()


@pytest.mark.parametrize("units", [4, 9, 23])
def test_without_the_lot_an_additive_game_gives_its_mean_over_lots(units: int) -> None:
    """By enumeration of 300 lots; the enemy takes the order that was drawn as it is."""
    rng = np.random.default_rng(units)
    weights = rng.normal(size=units)
    game = Named(weights, "additive")
    scores = np.round(weights)
    sizes = sizes_of(scores)
    random = control(game)
    orders = np.concatenate([random.rankings, np.argsort(-scores)[None]])
    own = smoothed(curves(game, orders), orders, sizes)
    # units of a tier leave one as the other: each stands for the mean of its tier
    means = np.array([weights[scores == score].mean() for score in scores])
    expected = curves(Named(means, "means"), orders[-1:])
    np.testing.assert_allclose(own.insertion[-1], expected.insertion[0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(own.deletion[-1], expected.deletion[0], rtol=0, atol=1e-9)
    if units > 4:
        plain = curves(game, orders[-1:])
        assert np.abs(plain.insertion[0] - expected.insertion[0]).max() > 1e-3


def test_scores_without_ties_stay_as_they_are() -> None:
    game = Drawn(12, np.random.default_rng(0), bend=1.0)
    rows = curves(game, control(game).rankings)
    assert smoothed(rows, control(game).rankings, np.ones(12, dtype=int)) is rows


def test_where_all_orders_are_listed_p_counts_the_copies() -> None:
    """Four units, one at the top: four copies, each the mean over the six orders of the others."""
    game = Named([3.0, 1.0, -1.0, 0.5], "four", bend=0.5)
    scores = np.array([1.0, 0.0, 0.0, 0.0])
    judged = evidence(scores, True, [control(game)])
    (trial,) = judged.trials
    means = []
    for first in range(4):
        orders = [order for order in permutations(range(4)) if order[0] == first]
        means.append(Support()(game, np.array(orders)).mean())
    assert trial.statistic == pytest.approx(means[0])
    assert trial.p == sum(mean >= means[0] - 1e-9 for mean in means) / 4
    assert (judged.rankings, judged.verdict) == (4, Verdict.SAME)
    assert judged.note == (
        "equal scores leave only 4 different rankings here: too few for a verdict"
    )


@pytest.mark.parametrize("units", [8, 9, 10])
def test_p_is_the_place_among_the_distinct_copies(units: int) -> None:
    """Two of the units at the top of an additive game: a copy is worth what its two weigh.

    The enemies: copies counted as often as they were drawn; single orders as the control, which
    spread more than copies do; p without the scores themselves.
    """
    rng = np.random.default_rng(units)
    weights = rng.normal(size=units)
    game = Named(weights, f"two of {units}")
    random = control(game)
    drawn = {frozenset(order[:2]) for order in random.rankings.tolist()}
    for top in combinations(range(units), 2):
        scores = np.zeros(units)
        scores[list(top)] = 1.0
        judged = evidence(scores, True, [random])
        copies = drawn | {frozenset(top)}
        as_good = sum(weights[list(copy)].sum() >= weights[list(top)].sum() for copy in copies)
        assert judged.p == pytest.approx(as_good / len(copies))
        is_complete = len(copies) == number_of_copies(np.array([2, units - 2]))
        assert judged.rankings == len(copies) - (not is_complete)


def test_a_method_with_ties_pays_what_any_other_pays() -> None:
    game = Drawn(25, np.random.default_rng(1), bend=1.0)
    random = control(game)
    asked_before = len(game.asked)
    evidence(top_two(np.arange(25.0)), True, [random])
    asked = game.asked[asked_before:]
    # the note needs the rows once more: a game with a memory has them
    assert {len(masks) for masks in asked} == {2 * 11}
    assert len({mask.tobytes() for masks in asked for mask in masks}) == 2 * 11 - 2


def test_equal_scores_rank_nothing_and_cost_nothing() -> None:
    game = Drawn(12, np.random.default_rng(2), bend=1.0)
    random = control(game)
    paid = game.cost.forwards
    judged = evidence(np.full(12, 0.3), True, [random])
    assert (judged.verdict, judged.p, judged.note) == (None, None, ALL_EQUAL)
    assert game.cost.forwards == paid
    games = windows(np.random.default_rng(3), [6, 7])
    judged = joint_evidence(np.repeat([0.3, 0.1], [6, 7]), True, joint(games))
    assert (judged.verdict, judged.p) == (None, None)
    assert "nothing is ranked" in judged.note


def test_copies_in_windows_by_listing_them() -> None:
    """Windows of three and four units, one at the top of each: 12 copies of the whole."""
    games = windows(np.random.default_rng(4), [3, 4])
    scores = np.array([0.0, 1.0, 0.0, 2.0, 0.0, 0.0, 0.0])
    judged = joint_evidence(scores, True, joint(games, 144))
    values = {}
    for first in range(3):
        for last in range(4):
            each = []
            for game, top in zip(games, (first, last), strict=True):
                orders = [o for o in permutations(range(game.size)) if o[0] == top]
                each.append(Support()(game, np.array(orders)).mean())
            values[first, last] = np.mean(each)
    (trial,) = judged.trials
    assert trial.statistic == pytest.approx(values[1, 0])
    assert trial.p == sum(value >= values[1, 0] - 1e-9 for value in values.values()) / 12
    assert "only 12 different rankings" in judged.note


def test_a_window_without_ties_keeps_its_numbers_beside_one_with_some() -> None:
    games = windows(np.random.default_rng(5), [9, 12])
    rng = np.random.default_rng(6)
    scores = np.concatenate([rng.normal(size=9), 2 * rng.normal(size=12).round()])
    (trial,) = joint_evidence(scores, False, joint(games)).trials
    (first,) = evidence(scores[:9], False, [control(games[0])]).trials
    (second,) = evidence(scores[9:], False, [control(games[1])]).trials
    assert trial.statistic == pytest.approx((first.statistic + second.statistic) / 2)
    assert trial.random_mean == pytest.approx(
        (Matter()(games[0], control(games[0]).rankings).mean() + second.random_mean) / 2, abs=0.02
    )


def test_rows_of_one_copy_are_averaged() -> None:
    copies = copies_of(np.array([[0, 1, 1], [1, 0, 1], [0, 1, 1]]), np.array([1, 0, 1]), 3)
    own, others = copies.apart(np.array([1.0, 7.0, 3.0]))
    assert (own.tolist(), others.tolist(), copies.is_complete) == ([7.0], [2.0], False)
    assert (len(copies), copies.distinct, copies.smallest_p) == (1, 2, 0.5)


def found_and_false(
    sizes: Sequence[int], repeats: int, bend: float, signed: bool = True
) -> tuple[float, float]:
    """How often the true tied scores are called better, and how often random ones are."""
    rng = np.random.default_rng([sum(sizes), int(10 * bend)])
    found, false = 0, 0
    for _ in range(repeats):
        games = [Drawn(size, rng, bend) for size in sizes]
        true = np.concatenate([top_two(shapley_values(game)) for game in games])
        random = np.concatenate([rng.permutation(top_two(np.arange(size))) for size in sizes])
        if len(games) == 1:
            only = control(games[0])
            verdicts = [evidence(scores, signed, [only]).verdict for scores in (true, random)]
        else:
            both = joint(games)
            verdicts = [joint_evidence(scores, signed, both).verdict for scores in (true, random)]
        found += verdicts[0] == Verdict.BETTER
        false += verdicts[1] == Verdict.BETTER
    return found / repeats, false / repeats


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [[10], [6, 6]])
def test_tied_scores_are_judged_at_the_level_that_is_promised(sizes: list[int]) -> None:
    """At most one random tying in twenty is called better, and the two best units mostly are.

    The enemy, single orders as the control, calls 1 % of the random ones better and a third of the
    true ones. Two of ten units have 45 copies, of which two are the best 5 %; so of 300 random ones
    12 are expected, with a standard error of 3.4.
    """
    repeats = 300
    found, false = found_and_false(sizes, repeats, bend=0.5)
    assert 0.015 <= false <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / repeats)
    assert found >= 0.82
