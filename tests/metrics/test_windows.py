"""Evidence for a text in windows: of one window the plain evidence, of more a valid test.

The games are made up, so that everything can be counted by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

from tests.games.tables import Table
from whence.core.evidence import CURVES, Evidence, Verdict
from whence.metrics.curves import curves
from whence.metrics.evidence import control, evidence
from whence.metrics.matter import Matter
from whence.metrics.support import Support
from whence.metrics.windows import joint_control, joint_evidence


class Named(Table):
    """A game with a text of its own, so that its random numbers are its own too."""

    def __init__(self, weights: Sequence[float], name: str, bend: float = 0.0) -> None:
        own = np.asarray(weights, dtype=float)

        def value(masks: np.ndarray) -> np.ndarray:
            total = masks @ own
            return total + bend * np.sin(3 * total)

        self.name = name
        super().__init__(len(own), value)

    @property
    def digest(self) -> bytes:
        return self.name.encode()


def windows(rng: np.random.Generator, sizes: Sequence[int], bend: float = 0.5) -> list[Named]:
    name = str(rng.integers(2**40))
    return [Named(rng.normal(size=n), f"{name}-{i}", bend) for i, n in enumerate(sizes)]


def joint(games: Sequence[Table], rankings: int = 100) -> list:
    return [joint_control([control(game, rankings) for game in games], rankings)]


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("size", [2, 3, 4, 5, 9, 23])
def test_of_one_window_it_is_the_plain_evidence(size: int, signed: bool) -> None:
    rng = np.random.default_rng(size)
    scores = rng.normal(size=size).round(1)  # some are equal
    # twice the same games: what they count begins at nothing
    for_plain, for_joint = (windows(np.random.default_rng(size), [size]) for _ in range(2))
    plain = evidence(scores, signed, [control(game) for game in for_plain])
    joined = joint_evidence(scores, signed, joint(for_joint))
    (alone,) = joined.windows
    assert replace(joined, windows=(), note=plain.note) == plain
    assert bool(joined.note) == bool(plain.note)
    assert alone.p == plain.p


def test_the_statistic_is_the_mean_and_a_random_ranking_one_of_each_window() -> None:
    """Derived once more, slowly, from the curves of single rankings."""
    rng = np.random.default_rng(0)
    games = windows(rng, [7, 1, 12, 3])
    (both,) = joint(games)
    scores = rng.normal(size=23)
    for metric, signed in ((Support(), True), (Matter(), False)):
        (trial,) = joint_evidence(scores, signed, [both]).trials
        order = np.argsort(-scores)
        statistics = []
        start = 0
        for game in games:
            own = [unit - start for unit in order if start <= unit < start + game.size]
            statistics.append(metric.of(curves(game, np.array([own])))[0])
            start += game.size
        assert trial.statistic == pytest.approx(np.mean(statistics))

        random = []
        for row in both.rows:
            each = []
            for window, place in zip(both.windows, row, strict=True):
                ranking = window.rankings[place : place + 1]
                each.append(metric.of(curves(window.game, ranking))[0])
            random.append(np.mean(each))
        assert trial.random_mean == pytest.approx(np.mean(random))
        as_good = int((np.array(random) >= trial.statistic - 1e-9).sum())
        assert trial.p == pytest.approx((as_good + 1) / 101)


def test_every_window_gives_as_many_rankings_and_listed_ones_by_lot() -> None:
    games = windows(np.random.default_rng(1), [30, 1, 3, 4])
    (both,) = joint(games)
    assert both.rows.shape == (100, 4)
    assert not both.is_complete
    assert both.rows[:, 0].tolist() == list(range(100))
    assert not both.rows[:, 1].any()  # one unit has one order
    assert set(both.rows[:, 2]) == set(range(6))
    # drawn with replacement: no fixed number of each, and none that belongs to another window's
    assert len(set(np.bincount(both.rows[:, 2]))) > 1
    together = np.corrcoef(both.rows[:, 2], both.rows[:, 3])[0, 1]
    assert abs(together) < 0.3


def test_few_orders_of_all_windows_are_all_listed() -> None:
    games = windows(np.random.default_rng(2), [3, 1, 3])
    (both,) = joint(games)
    assert both.is_complete
    assert {tuple(row) for row in both.rows} == set(product(range(6), (0,), range(6)))
    scores = np.array([3.0, 2.0, 1.0, 0.0, 1.0, 2.0, 3.0])
    (trial,) = joint_evidence(scores, True, [both]).trials
    # by listing them once more
    values = []
    for first, last in product(permutations(range(3)), repeat=2):
        pair = zip((games[0], games[2]), (first, last), strict=True)
        areas = [Support()(game, np.array([order]))[0] for game, order in pair]
        values.append(sum(areas) / 3)
    as_good = sum(value >= trial.statistic - 1e-9 for value in values)
    assert trial.p == pytest.approx(as_good / 36)
    few = joint_evidence(
        np.arange(3.0), True, joint(games[1:2] + windows(np.random.default_rng(3), [2]))
    )
    assert few.verdict == Verdict.SAME
    assert "2 rankings: too few" in few.note


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [[15, 1, 4], [2, 3], [8, 3, 2]])
def test_random_rankings_are_seldom_called_better(sizes: list[int]) -> None:
    """At most one in twenty, whatever the windows; 400 texts, with three standard errors to spare.

    The enemy is a control whose windows go up and down together, or not at all.
    """
    rng = np.random.default_rng(len(sizes))
    verdicts = []
    for _ in range(400):
        games = windows(rng, sizes)
        scores = rng.normal(size=sum(sizes))
        verdicts.append(joint_evidence(scores, True, joint(games, 39)).verdict)
    most = 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    for verdict in (Verdict.BETTER, Verdict.WORSE):
        assert verdicts.count(verdict) / 400 <= most


def test_the_test_is_exact_where_nothing_is_listed_and_no_scores_are_equal() -> None:
    """With 39 random rankings, one or two places of 40 are at the top: 5 % of random rankings."""
    rng = np.random.default_rng(11)
    better = 0
    for _ in range(400):
        games = windows(rng, [9, 14])
        better += joint_evidence(rng.normal(size=23), True, joint(games, 39)).verdict == (
            Verdict.BETTER
        )
    assert abs(better / 400 - 0.05) <= 3 * np.sqrt(0.05 * 0.95 / 400)


@pytest.mark.parametrize("sizes", [[12, 12], [15, 1, 4], [4, 4, 3]])
def test_the_right_ranking_of_an_additive_game_is_found(sizes: list[int]) -> None:
    rng = np.random.default_rng(5)
    games = windows(rng, sizes, bend=0.0)
    weights = np.concatenate([game(np.eye(game.size)) for game in games])
    found = joint_evidence(weights, True, joint(games))
    assert found.verdict == Verdict.BETTER
    assert joint_evidence(-weights, True, joint(games)).verdict == Verdict.WORSE

    # what matters, whatever its direction, is plain where all units pull in one
    games = [Named(-np.abs(rng.normal(size=n)), f"one way {n}") for n in sizes]
    sizes_of_units = np.concatenate([np.abs(game(np.eye(game.size))) for game in games])
    assert joint_evidence(sizes_of_units, False, joint(games)).verdict == Verdict.BETTER


def test_weak_windows_are_strong_together() -> None:
    """Of three units no ranking can be better than random; of six such windows it can."""
    games = windows(np.random.default_rng(6), [3] * 6, bend=0.0)
    weights = np.concatenate([game(np.eye(3)) for game in games])
    found = joint_evidence(weights, True, joint(games))
    assert {window.verdict for window in found.windows} == {Verdict.SAME}
    assert found.verdict == Verdict.BETTER


def test_the_curves_begin_and_end_where_the_means_do() -> None:
    rng = np.random.default_rng(7)
    games = windows(rng, [20, 3, 1])
    (trial,) = joint_evidence(rng.normal(size=24), True, joint(games)).trials
    drawn = trial.curves
    assert drawn is not None
    assert (drawn.steps[0], drawn.steps[-1], len(drawn.steps)) == (0, 24, 11)
    full, empty = (np.mean([getattr(g, end) for g in games]) for end in ("full", "empty"))
    assert drawn.deletion[0] == pytest.approx(full)
    assert drawn.deletion[-1] == pytest.approx(empty)
    assert drawn.insertion[-1] == pytest.approx(full)
    for low, mean, high in drawn.random_deletion:
        assert low <= mean + 1e-12
        assert mean <= high + 1e-12


def test_equal_steps_give_the_very_mean_and_so_the_very_area() -> None:
    rng = np.random.default_rng(8)
    games = windows(rng, [20, 30])
    (trial,) = joint_evidence(rng.normal(size=50), True, joint(games)).trials
    assert trial.curves is not None
    between = np.subtract(trial.curves.insertion, trial.curves.deletion)
    area = np.trapezoid(between, np.linspace(0, 1, 11))
    assert area == pytest.approx(trial.statistic)


def test_json_keeps_the_windows_and_old_json_has_none() -> None:
    rng = np.random.default_rng(9)
    found = joint_evidence(rng.normal(size=9), True, joint(windows(rng, [5, 4])))
    assert len(found.windows) == 2
    assert Evidence.from_dict(found.to_dict()) == found
    old = evidence(rng.normal(size=5), True, [control(windows(rng, [5])[0])]).to_dict()
    assert "windows" not in old
    assert Evidence.from_dict(old).windows == ()
    assert Evidence.from_dict(old).measure == CURVES
