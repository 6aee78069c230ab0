"""Correlation of readings of attention with gradients and leave-one-out."""

from __future__ import annotations

from itertools import permutations
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from whence.audits.correlation import (
    SHUFFLE_STREAM,
    Correlation,
    kendall,
    p_value,
    share_significant,
    shuffled_taus,
    tiers,
)
from whence.core.audit import Observation
from whence.core.errors import InputError

GRADIENT, LOO = "gradient-x-input", "occlusion"


def by_quantity(observations: list[Observation], reading: str) -> dict[str, Observation]:
    return {o.quantity: o for o in observations if o.reading == reading}


def test_tau_b_of_small_rankings_is_that_of_the_formula() -> None:
    """Counted by hand; the enemy: τ-a, which divides by all pairs, and is smaller with ties."""
    assert kendall([1, 2, 3, 4], [1, 2, 4, 3]) == pytest.approx((5 - 1) / 6)
    # one tie on the left: 2 concordant pairs, of 2 untied pairs on the left and 3 on the right
    assert kendall([1, 1, 2], [1, 2, 3]) == pytest.approx(2 / sqrt(2 * 3))
    # ties on both sides: pairs 01 tied left, 23 tied right; of the others 3 agree, 1 does not
    assert kendall([1, 1, 2, 3], [1, 2, 3, 3]) == pytest.approx(4 / sqrt(5 * 5))
    assert kendall([1, 1, 2, 3], [3, 2, 1, 1]) == pytest.approx(-4 / sqrt(5 * 5))


def test_a_ranking_agrees_with_itself_ties_included() -> None:
    """The enemy, τ-a again, gives less than 1 where there are ties."""
    tied = [3.0, 3.0, 1.0, 2.0, 2.0]
    assert kendall(tied, tied) == pytest.approx(1.0)
    assert kendall(tied, np.negative(tied)) == pytest.approx(-1.0)


RANKS = st.integers(0, 6)


@given(st.lists(st.tuples(RANKS, RANKS), min_size=3, max_size=25))
def test_tau_is_scipys(pairs: list[tuple[int, int]]) -> None:
    one, other = np.array(pairs).T
    assume(len(set(one)) > 1 and len(set(other)) > 1)
    assert kendall(one, other) == pytest.approx(kendalltau(one, other)[0], abs=1e-12)


def test_p_is_the_share_of_orders_that_are_as_extreme() -> None:
    """Every order of five units; the enemy: the normal approximation, and one direction only."""
    one, other = np.arange(5), np.array([1, 0, 2, 4, 3])
    observed = abs(kendall(one, other))
    taus = [abs(kendall(one, order)) for order in permutations(range(5))]
    share = np.mean([tau >= observed - 1e-12 for tau in taus])
    assert p_value(one, other) == pytest.approx(share)
    approximate: Any = kendalltau(one, other, method="asymptotic")
    assert abs(approximate.pvalue - share) > 0.005


def test_random_weights_have_a_tau_of_zero() -> None:
    """4,000 copies; τ of n units has the variance 2(2n+5)/9n(n−1). The enemy: one copy, reused."""
    rng = np.random.default_rng(3)
    one, other = rng.normal(size=(2, 12))
    taus = shuffled_taus(one, other, 4000, seed=1)
    variance = 2 * (2 * 12 + 5) / (9 * 12 * 11)
    assert abs(taus.mean()) < 4 * sqrt(variance / 4000)
    assert taus.var() == pytest.approx(variance, rel=0.1)
    assert np.array_equal(taus, shuffled_taus(one, other, 4000, seed=1))
    assert not np.array_equal(taus, shuffled_taus(one, other, 4000, seed=2))


def test_a_copy_is_the_same_weights_on_other_units() -> None:
    """Made slowly, and ranked by the definition; the enemy: rows and columns permuted apart."""
    one, other = np.array([4.0, 1.0, 1.0, 3.0, 2.0]), np.array([1.0, 5.0, 2.0, 2.0, 3.0])
    rng = np.random.default_rng([7, 15, 5])
    expected = [kendall(one[rng.permutation(5)], other) for _ in range(6)]
    np.testing.assert_allclose(shuffled_taus(one, other, 6, seed=7), expected)


def test_scores_that_differ_by_rounding_are_tied() -> None:
    """The enemy ranks words that do not matter by the last digits of their scores."""
    assert tiers(np.array([1.0, 1e-9, 0.0, 0.5])).tolist() == [2, 0, 0, 1]
    matters = np.array([0.9, 1e-8, 3e-8, 0.4, 2e-8])
    noise = np.array([0.9, 3e-8, 1e-8, 0.4, 2e-8])
    scores = {"rollout": matters, LOO: noise}
    found = by_quantity(Correlation()(scores, ["rollout"]), "rollout")
    assert found["tau-loo"].value == pytest.approx(1.0)
    assert kendall(matters, noise) < 0.8


def test_each_reading_is_compared_with_both_and_they_with_each_other() -> None:
    """The enemy: the names of the published code, where gradient and leave-one-out are swapped."""
    attention = np.array([0.1, 0.2, 0.3, 0.4])
    gradient = np.array([-0.1, 0.2, -0.3, 0.4])  # the same order, by size
    loo = np.array([0.4, -0.3, 0.2, 0.1])  # the opposite one
    scores = {"rollout": attention, GRADIENT: gradient, LOO: loo}
    observations = Correlation()(scores, ["rollout"], seed=5)

    own = by_quantity(observations, "rollout")
    kinds = ("tau", "shuffled", "p", "significant")
    assert set(own) == {f"{kind}-{of}" for kind in kinds for of in ("gradient", "loo")}
    assert own["tau-gradient"].value == pytest.approx(1.0)
    assert own["tau-loo"].value == pytest.approx(-1.0)
    assert own["p-loo"].value == pytest.approx(2 / 24)
    assert own["tau-loo"].control == pytest.approx(
        shuffled_taus(attention, np.abs(loo), 20, seed=5).mean()
    )
    copies = shuffled_taus(attention, np.abs(loo), 20, seed=5)
    assert own["shuffled-loo"].value == pytest.approx(copies[0])
    assert own["shuffled-loo"].value != pytest.approx(copies.mean())  # of which texts differ less
    yardstick = by_quantity(observations, "")
    assert set(yardstick) == {f"{kind}-gradient-loo" for kind in kinds}
    assert yardstick["tau-gradient-loo"].value == pytest.approx(-1.0)


def test_what_is_significant_is_so_in_both_directions() -> None:
    """Of five units in the same, the opposite and another order, p is 2/120, 2/120 and more."""
    one = np.arange(1.0, 6.0)
    orders = {"same": one, "opposite": one[::-1], "other": np.array([2.0, 1.0, 4.0, 3.0, 5.0])}
    scores = {**orders, LOO: one}
    found = Correlation()(scores, list(orders))
    shares = {o.reading: o for o in found if o.quantity == "significant-loo"}
    assert {name: o.value for name, o in shares.items()} == {
        "same": 1.0,
        "opposite": 1.0,
        "other": 0.0,
    }
    copies = shuffled_taus(one, one, 20, seed=0)
    assert shares["same"].control == np.mean(np.abs(copies) > 0.9)  # the two orders of 120


def test_the_share_of_copies_with_a_small_p_is_counted_one_by_one() -> None:
    """Ties and none, short and long; the enemy: 5 %, which three or four units never reach."""
    rng = np.random.default_rng(0)
    for units in (3, 4, 6, 12, 40):
        one, other = rng.integers(0, 6, size=(2, units)).astype(float)
        one[0], one[1], other[0], other[1] = 7.0, 0.0, 7.0, 0.0
        for first, second in ((one, other), rng.normal(size=(2, units))):
            orders = np.random.default_rng([3, SHUFFLE_STREAM, units])
            ps = [p_value(first[orders.permutation(units)], second) for _ in range(60)]
            taus = shuffled_taus(first, second, 60, seed=3)
            share = share_significant(first, second, taus, seed=3)
            assert share == pytest.approx(np.mean(np.array(ps) < 0.05))
    short = np.arange(4.0)
    assert share_significant(short, short, shuffled_taus(short, short, 60, seed=0), seed=0) == 0


def test_what_ranks_nothing_gives_no_number() -> None:
    """The enemy: NaN, which a mean over texts would carry on."""
    attention, loo = np.array([0.2, 0.5, 0.3]), np.array([0.1, 0.3, 0.2])
    constant = np.full(3, 0.1) + np.array([0.0, 1e-10, 0.0])
    both = {"rollout": attention, "mean": constant, LOO: loo, GRADIENT: constant}
    observations = Correlation()(both, ["rollout", "mean"])
    assert [(o.reading, o.quantity) for o in observations] == [
        ("rollout", "tau-loo"),
        ("rollout", "shuffled-loo"),
        ("rollout", "p-loo"),
        ("rollout", "significant-loo"),
    ]
    short = {name: each[:2] for name, each in both.items()}
    assert Correlation()(short, ["rollout"]) == []
    assert Correlation()({"rollout": attention}, ["rollout", "flow"]) == []


def test_scores_of_other_units_are_refused() -> None:
    three, four = np.arange(3.0), np.arange(4.0)
    with pytest.raises(InputError, match="rollout 3, occlusion 4"):
        Correlation()({"rollout": three, LOO: four}, ["rollout"])
    with pytest.raises(InputError, match="occlusion are not all finite"):
        Correlation()({"rollout": three, LOO: three * np.nan}, ["rollout"])
    with pytest.raises(InputError, match="not 0"):
        Correlation(shuffles=0)
