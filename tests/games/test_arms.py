"""Draws that are shared between sets are fair ones, and what is enumerated is exact."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.games.tables import Table
from whence.games.arms import Arms, Pool, all_sets, completions, grown, lattice_precisions
from whence.games.bounds import bernoulli_kl


def precision(game: Table, kept: np.ndarray) -> float:
    """Straight from the definition."""
    stays = []
    for mask in product([False, True], repeat=game.size):
        if all(mask[unit] for unit in np.flatnonzero(kept)):
            stays.append(game.labels([mask])[0] == game.label)
    return float(np.mean(stays))


def random_game(seed: int, d: int) -> Table:
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=d)
    pairs = rng.normal(size=(d, d)) / 3
    shift = rng.normal() / 2
    return Table(d, lambda z: z @ weights + ((z @ pairs) * z).sum(1) + shift)


@settings(max_examples=25)
@given(st.integers(1, 6), st.integers(0, 10**6))
def test_precisions_on_the_lattice_are_the_definition(d: int, seed: int) -> None:
    game = random_game(seed, d)
    masks = completions(np.zeros(d, dtype=bool))
    precisions = lattice_precisions(game.labels(masks) == game.label)
    assert precisions == pytest.approx([precision(game, m) for m in masks], abs=1e-12)


@given(st.lists(st.booleans(), min_size=1, max_size=8))
def test_completions_are_all_masks_that_keep_the_set(kept: list[bool]) -> None:
    masks = completions(np.array(kept))
    units = range(len(kept))
    expected = set()
    for mask in product([False, True], repeat=len(kept)):
        if all(mask[unit] for unit in units if kept[unit]):
            expected.add(mask)
    assert {tuple(m) for m in masks.tolist()} == expected
    assert len(masks) == len(expected)


@given(st.integers(1, 7), st.data())
def test_grown_sets_are_all_sets_from_any_start(d: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(0, d - 1))
    larger = {tuple(s) for s in all_sets(d, size + 1).tolist()}
    assert {tuple(s) for s in grown(all_sets(d, size)).tolist()} == larger

    few = all_sets(d, size)[:2]
    with_one_of_few = set()
    for one in larger:
        if (np.array(one) >= few).all(1).any():
            with_one_of_few.add(one)
    assert {tuple(s) for s in grown(few).tolist()} == with_one_of_few


def test_shared_draws_are_fair() -> None:
    """A draw that was forced to keep more than the set would be a biased one.

    With {0} forced, {1} would look more precise than it is.
    """
    game = Table(8, lambda z: z[:, 0] + 0.2 * z[:, 1] - 0.5)
    pool = Pool(game, 0.1, 10**6, np.random.default_rng(0))
    forced, free = np.eye(8, dtype=bool)[:1], np.zeros((1, 8), dtype=bool)
    pool.draw(forced, 4000)
    pool.draw(free, 4000)
    arms = Arms(pool, np.eye(8, dtype=bool))
    assert arms.mean[0] == 1
    assert arms.mean[1:] == pytest.approx(0.5, abs=0.05)
    assert arms.draws[0] == pytest.approx(6000, abs=200)
    assert arms.draws[1:] == pytest.approx(2000, abs=200)


@settings(max_examples=8)
@given(st.integers(0, 10**6))
def test_tallies_are_counts_of_their_definition_however_they_come(seed: int) -> None:
    game = random_game(seed, 6)
    pool = Pool(game, 0.1, 10**6, np.random.default_rng(seed))
    arms = Arms(pool, all_sets(6, 2))
    none = np.zeros((1, 6), dtype=bool)
    for sets in (none, all_sets(6, 1), all_sets(6, 2)[:3], all_sets(6, 3)[:3]):
        pool.draw(sets, 150)
        arms.update()
    for i, kept in enumerate(arms.sets):
        fair = (pool.given <= kept).all(1) & (kept <= pool.masks).all(1)
        assert arms.draws[i] == fair.sum()
        assert arms.hits[i] == pool.same[fair].sum()


def test_all_intervals_are_right_at_once_and_at_all_times() -> None:
    missed = 0
    for seed in range(25):
        game = random_game(seed, 7)
        truth = lattice_precisions(game.labels(completions(np.zeros(7, dtype=bool))) == game.label)
        pool = Pool(game, 0.1, 10**6, np.random.default_rng(seed))
        levels = [Arms(pool, all_sets(7, size)) for size in range(3)]
        wrong = False
        for _ in range(5):
            for arms in levels:
                # The one that looks best: the choice depends on the draws.
                arms.ask([int(arms.mean.argmax())], 20, few=0)
                for level in levels:
                    level.update()
                    true = truth[level.sets @ (1 << np.arange(7))]
                    wrong |= bool(((true < level.low) | (true > level.high)).any())
        missed += wrong
    assert missed <= 2


@pytest.mark.parametrize(("units", "size"), [(7, 0), (7, 1), (7, 3), (12, 2)])
def test_the_intervals_pay_for_all_sets_of_all_sizes(units: int, size: int) -> None:
    """The ends solve n·d(p̂, q) = log 2√n/δ' where δ' is the set's own share of δ.

    The enemies: δ for every set (no union bound); δ over the sets of this size alone.
    """
    game = random_game(1, units)
    pool = Pool(game, 0.1, 10**6, np.random.default_rng(0))
    pool.draw(np.zeros((1, units), dtype=bool), 400)
    arms = Arms(pool, all_sets(units, size))
    own_share = 0.1 / (comb(units, size) * (size + 1) * (size + 2))
    inside = (arms.mean > 0) & (arms.mean < 1) & (arms.draws > 0)
    assert inside.any()
    for i in np.flatnonzero(inside):
        n = arms.draws[i]
        for end in (arms.low[i], arms.high[i]):
            if 1e-9 < end < 1 - 1e-9:
                distance = n * bernoulli_kl(arms.mean[i], end)
                assert distance == pytest.approx(np.log(2 * np.sqrt(n) / own_share), abs=1e-4)


def test_the_shares_of_all_sets_are_no_more_than_one() -> None:
    shares = 0.0
    for size in range(10):
        pool = Pool(random_game(1, 9), 0.1, 10**6, np.random.default_rng(0))
        sets = all_sets(9, size)
        shares += len(sets) * np.exp(-Arms(pool, sets).log_arms)
    assert shares == pytest.approx(1 - 1 / 11)


def test_enumeration_makes_every_larger_set_exact() -> None:
    game = random_game(3, 9)
    pool = Pool(game, 0.1, 1000, np.random.default_rng(0))
    arms = Arms(pool, all_sets(9, 3))
    pool.enumerate(np.eye(9, dtype=bool)[2])
    arms.update()
    assert (arms.exact == arms.sets[:, 2]).all()
    assert pool.asked == 256
    for i in np.flatnonzero(arms.exact)[::5]:
        assert arms.mean[i] == arms.low[i] == arms.high[i] == precision(game, arms.sets[i])


def test_the_budget_is_kept_to() -> None:
    game = random_game(0, 10)
    pool = Pool(game, 0.1, 100, np.random.default_rng(0))
    game.asked.clear()
    arms = Arms(pool, all_sets(10, 1))
    for _ in range(5):
        arms.ask([0, 1, 2], 16, few=1)
    arms.ask([3], 16, few=10**6)
    assert pool.left == 0
    assert pool.asked == len(pool.same) == 100
    # The last, shorter turn is dealt out evenly.
    assert max(arms.draws[:3]) - min(arms.draws[:3]) < 25
