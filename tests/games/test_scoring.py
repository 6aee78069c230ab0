"""Rounds of sampling: when they stop, what they ask for, what they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.games.synthetic import Formula, bent_attention, sigmoid
from whence.core.errors import SettingsError
from whence.games.functionals import beta_shapley, lime, shapley
from whence.games.permuting import ENOUGH_PAIRS, from_orders, orders
from whence.games.sampling import all_masks
from whence.games.scoring import Plan, relative_error, score
from whence.methods.shapley import Shapley


def test_auto_stops_when_the_error_is_small_enough_and_says_so() -> None:
    game = sigmoid(20, 0)
    scores = score(game, shapley(20), Plan(exact=0), "plain")
    assert scores.standard_error is not None
    assert relative_error(scores.units, scores.standard_error, 5) <= 0.1
    assert scores.note.startswith("sampled from")
    assert "(standard error), within the" in scores.note
    assert scores.detail is not None
    assert scores.detail["distinct"] == len(set(game.asked))


def test_auto_stops_when_the_budget_is_spent_and_says_so() -> None:
    game = sigmoid(20, 0)
    scores = score(game, shapley(20), Plan(tolerance=0.0, budget=300, exact=0), "plain")
    assert "the budget of 300 inputs is spent" in scores.note
    assert len(set(game.asked)) <= 300


def test_the_budget_is_a_bound_from_the_first_round_on() -> None:
    game = sigmoid(60, 0)
    score(game, lime(60), Plan(budget=50), "surrogate")
    assert len(set(game.asked)) <= 50


@pytest.mark.parametrize("samples", ["auto", 1024, 5000])
def test_small_games_are_enumerated(samples: int | str) -> None:
    game = bent_attention(10, 0)
    scores = score(game, lime(10), Plan(samples))  # type: ignore[arg-type]
    np.testing.assert_allclose(scores.units, lime(10).of_values(all_masks(10), game(all_masks(10))))
    assert scores.standard_error is not None
    assert not scores.standard_error.any()
    assert "exact" in scores.note


def test_the_budget_binds_enumeration_too() -> None:
    game = bent_attention(12, 0)
    assert "exact" not in score(game, shapley(12), Plan(budget=500, exact=12), "plain").note
    assert len(set(game.asked)) <= 500
    assert "exact" in score(game, shapley(12), Plan(budget=2**12, exact=12), "plain").note


def test_a_regression_with_hardly_more_masks_than_units_is_refused_with_the_cure() -> None:
    """It would fit by chance and call its error nothing."""
    with pytest.raises(SettingsError, match="draw at least 44, or take estimator='surrogate'"):
        score(bent_attention(20, 1), shapley(20), Plan(42), "plain")


def test_auto_enumerates_when_the_next_round_would_cost_as_much() -> None:
    game = bent_attention(9, 0)
    scores = score(game, shapley(9), Plan(tolerance=0.0, exact=0), "plain")
    assert "exact: every one of the 512 subsets" in scores.note


def test_lime_shapley_and_beta_shapley_ask_for_the_same_masks() -> None:
    game = bent_attention(18, 0)
    asked = []
    for functional in (lime(18), shapley(18), beta_shapley(18)):
        game.asked.clear()
        score(game, functional, Plan(200, exact=0, seed=4), "plain")
        asked.append(set(game.asked))
    assert all(one == asked[0] for one in asked)
    assert len(asked[0]) == 200


def test_the_same_seed_gives_the_same_and_another_does_not() -> None:
    game = bent_attention(18, 0)
    first = score(game, shapley(18), Plan(100, seed=1)).units
    again = score(game, shapley(18), Plan(100, seed=1)).units
    other = score(game, shapley(18), Plan(100, seed=2)).units
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other, rtol=1e-6)


def test_a_constant_game_needs_one_round() -> None:
    scores = score(Formula(30, lambda z: np.full(len(z), 3.0)), lime(30), Plan(), "plain")
    np.testing.assert_allclose(scores.units, 0, atol=1e-9)
    assert "(standard error), within the" in scores.note


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("samples", 0),
        ("samples", -5),
        ("budget", 0),
        ("budget", -1),
        ("top", 0),
        ("tolerance", -0.1),
        ("exact", 40),
    ],
)
def test_impossible_plans_are_named(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        Plan(**{field: value})  # type: ignore[arg-type]


def test_orders_and_their_reverses_by_hand() -> None:
    """Each order walked unit by unit, and its reverse; the error between pairs, by the textbook.

    The enemies: a normal quantile for Student's t; the spread with n for n − 1; pairs counted as
    two orders each.
    """
    game = bent_attention(5, 2)
    estimate, _ = from_orders(game, 5, 2 + 8 * ENOUGH_PAIRS, seed=3)
    pairs = []
    for order in orders(5, ENOUGH_PAIRS, seed=3).tolist():
        gains = np.zeros(5)
        for walked in (order, order[::-1]):
            kept = np.zeros((1, 5), dtype=bool)
            for unit in walked:
                before = game(kept)[0]
                kept[0, unit] = True
                gains[unit] += (game(kept)[0] - before) / 2
        pairs.append(gains)
    mean = np.mean(pairs, axis=0)
    spread = np.sqrt(((np.array(pairs) - mean) ** 2).sum(0) / (ENOUGH_PAIRS - 1))
    widening = stats.t.ppf(0.975, ENOUGH_PAIRS - 1) / stats.norm.ppf(0.975)
    np.testing.assert_allclose(estimate.units, mean, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        estimate.standard_error, spread / np.sqrt(ENOUGH_PAIRS) * widening, rtol=1e-9
    )


def test_few_pairs_of_orders_tell_no_error() -> None:
    """With five pairs a unit's interval held the truth in 67 % of runs: none is better."""
    game = bent_attention(20, 2)
    few = 2 + 38 * (ENOUGH_PAIRS - 1)
    settings = {"exact": 4, "estimator": "permutation"}
    scores = Shapley(samples=few, **settings)(game)
    assert scores.standard_error is None
    assert "15 pairs of orders are too few to tell how far the scores may be off" in scores.note
    assert f"16 take {few + 38} samples" in scores.note
    enough = Shapley(samples=few + 38, **settings)(game)
    assert enough.standard_error is not None
    assert (enough.standard_error > 0).all()
    assert "too few" not in enough.note
    # where the number is found by itself, it is not stopped at before the error is known
    by_itself = Shapley(samples="auto", tolerance=0.9, **settings)(game)
    assert by_itself.standard_error is not None
    spent = Shapley(samples="auto", budget=200, **settings)(game)
    assert spent.standard_error is None
    assert "the budget of 200 inputs is spent; 5 pairs of orders are too few" in spent.note


@pytest.mark.slow
def test_orders_and_their_reverses_agree_with_enumeration() -> None:
    """A ratio of sums, 20 pairs, 1,500 runs: .93 to .97; an error 12 % too small gives .92."""
    game = bent_attention(10, 2)
    every = game(all_masks(10))
    truth = shapley(10).of_values(all_masks(10), every)
    place = 1 << np.arange(10)
    row = np.empty(2**10, dtype=np.int64)
    row[all_masks(10) @ place] = np.arange(2**10)
    table = Formula(10, lambda z: every[row[(z @ place).astype(int)]])
    estimates = [from_orders(table, 10, 380, seed)[0] for seed in range(1500)]
    errors = np.stack([one.units - truth for one in estimates])
    assert np.abs(errors.mean(0) / errors.std(0)).max() * np.sqrt(1500) < 4
    inside = np.mean([np.abs(one.units - truth) <= 1.96 * one.standard_error for one in estimates])
    assert 0.93 <= inside <= 0.97
    for one in estimates[:100]:
        assert one.units.sum() == pytest.approx(truth.sum(), abs=1e-9)


def test_too_few_samples_for_two_orders_are_refused() -> None:
    with pytest.raises(SettingsError, match="38 samples"):
        from_orders(bent_attention(10, 2), 10, 30, seed=0)


def test_the_error_is_that_of_the_largest_scores_whatever_their_sign() -> None:
    """The enemies: the smallest scores; those that are largest with their sign; the mean error."""
    units = np.array([0.2, -4.0, 3.0, 0.1])
    error = np.array([7.0, 0.4, 0.1, 9.0])
    expected = np.sqrt((0.4**2 + 0.1**2) / 2) / np.sqrt((4.0**2 + 3.0**2) / 2)
    assert relative_error(units, error, top=2) == pytest.approx(expected)
