"""The test of all methods together: its level, its exact cases, and what must not change it."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.naming import LOTS, Cell, counted
from tests.core.test_answer import BETTER, SAME, evidence, scored
from whence.core.agreement import rank_correlation
from whence.core.answer import answer
from whence.core.attribution import Attribution, Window
from whence.core.evidence import Verdict
from whence.core.naming import (
    best_third,
    judged_together,
    normal_scores,
    of_areas,
    places_of,
    together,
)

HUNDRED_AND_ONE = 101


def same(methods: int) -> np.ndarray:
    return np.ones((methods, methods))


def counts(methods: int, places: int = HUNDRED_AND_ONE) -> np.ndarray:
    return np.full(methods, places)


# ---------------------------------------------------------------------- cases known by hand


@pytest.mark.parametrize("places", [6, 24, 40, 101])
@pytest.mark.parametrize("methods", [1, 2, 9, 21])
def test_copies_of_one_method_count_as_one(methods, places):
    """Correlations are singular here; all copies stand at one place, which has its own chance."""
    for wins in range(places):
        p = (places - wins) / places
        there = places_of(np.full(methods, p), counts(methods, places))
        found = together(there, counts(methods, places), same(methods))
        assert found.p == pytest.approx(p, abs=0.0005)
        assert found.smallest_p == pytest.approx(1 / places, abs=0.0005)


def test_two_unrelated_methods_by_counting():
    """The mean of both normal scores, over all pairs of places that there are."""
    places = 24
    p = 1 - np.arange(places) / places
    of_one = normal_scores(places_of(p, counts(places, places)))
    of_both = (of_one[:, None] + of_one[None, :]) / 2
    for one, other in ((23, 20), (23, 12), (18, 18), (5, 7)):
        exact = float((of_both >= of_both[one, other] - 1e-9).mean())
        there = places_of(p[[one, other]], counts(2, places))
        found = together(there, counts(2, places), np.eye(2))
        assert found.p == pytest.approx(exact, abs=0.01)


def test_all_orders_of_four_words_by_counting():
    """An additive game: the law of one order's area is known for each of 24 permutations."""
    weights = np.array([3.0, 1.5, 1.0, -2.0])
    orders = np.array(list(permutations(range(4))))
    areas = (weights[orders] * np.array([4.0, 3.0, 2.0, 1.0])).sum(1)
    best = orders[areas.argmax()]
    scores = np.empty(4)
    scores[best] = [4.0, 3.0, 2.0, 1.0]
    dealt = [(scores[list(lot)] @ weights) for lot in permutations(range(4))]
    exact = float(np.mean(np.array(dealt) >= scores @ weights - 1e-9))
    alike = rank_correlation(np.stack([scores, scores]))
    found = together(places_of(np.full(2, exact), counts(2, 24)), counts(2, 24), alike)
    assert found.p == pytest.approx(exact, abs=0.001)
    assert found.p == pytest.approx(1 / 24, abs=0.001)


def test_the_best_third_is_of_two_at_least():
    assert best_third(np.array([1.0, 2.0, 3.0])) == 2.5
    assert best_third(np.arange(9.0)) == 7.0
    assert best_third(np.array([1.5])) == 1.5


def test_what_could_be_seen_ends_where_there_are_too_few_places():
    assert not together(np.full(2, 0.9), counts(2, 6), same(2)).smallest_p <= 0.05
    assert together(np.full(2, 0.9), counts(2, 20), same(2)).smallest_p == pytest.approx(
        0.05, abs=0.001
    )
    assert together(np.full(2, 0.9), counts(2, 24), same(2)).smallest_p <= 0.05


def test_correlations_of_areas_are_correlations():
    rng = np.random.default_rng(0)
    for _ in range(20):
        c = of_areas(rank_correlation(rng.normal(size=(9, 5))))
        assert np.linalg.eigvalsh(c).min() > -1e-9
        assert np.diag(c) == pytest.approx(1.0)


# ---------------------------------------------------------------------- what must not change it

few = st.integers(2, 8)


@settings(max_examples=40, deadline=None)
@given(few, st.integers(3, 12), st.integers(0, 10**6))
def test_neither_the_order_of_methods_nor_that_of_words_changes_p(methods, words, seed):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(methods, words))
    p = rng.integers(1, 102, methods) / 101
    signed = rng.random(methods) < 0.5
    there = places_of(p, counts(methods))
    found = together(there, counts(methods), rank_correlation(scores), signed)

    other = rng.permutation(methods)
    c = rank_correlation(scores[other][:, rng.permutation(words)])
    again = together(there[other], counts(methods), c, signed[other])
    assert again.p == pytest.approx(found.p, abs=1e-3)
    assert again.smallest_p == pytest.approx(found.smallest_p, abs=1e-3)


@settings(max_examples=30, deadline=None)
@given(few, st.integers(0, 10**6))
def test_a_better_place_never_makes_p_larger(methods, seed):
    rng = np.random.default_rng(seed)
    c = rank_correlation(rng.normal(size=(methods, 9)))
    p = rng.integers(2, 102, methods) / 101
    found = together(places_of(p, counts(methods)), counts(methods), c)
    p[rng.integers(methods)] -= 1 / 101
    better = together(places_of(p, counts(methods)), counts(methods), c)
    assert better.p <= found.p + 2e-3  # the draws may be dealt to the methods in another order
    assert 0 < found.smallest_p <= found.p <= 1


def untied(method: str, p: float, seed: int, **facts) -> Attribution:
    verdict = Verdict.BETTER if p <= 0.05 else Verdict.SAME
    scores = np.random.default_rng(seed).normal(size=10)
    return scored(method, dict(enumerate(scores.tolist())), evidence(verdict, p), **facts)


def test_the_control_methods_without_verdict_and_those_that_rank_nothing_do_not_count():
    every = {f"m{i}": untied(f"m{i}", 0.04, i) for i in range(3)}
    found = answer(every).together
    more = dict(every)
    more["random"] = untied("random", 0.9, 7, signed=False)
    more["not tried"] = scored("not tried", {0: 1.0}, None)
    more["flat"] = scored("flat", dict.fromkeys(range(10), 1.0), SAME)
    assert found is not None
    assert answer(more).together == found
    assert found.methods == 3
    assert answer({"flat": more["flat"]}).together is None


def test_the_same_records_give_the_same_p():
    every = {f"m{i}": untied(f"m{i}", 0.04, i) for i in range(3)}
    again = {f"m{i}": untied(f"m{i}", 0.04, i) for i in range(3)}
    assert judged_together(every) == judged_together(again)


def test_it_must_hold_under_every_removal():
    by = (Verdict.BETTER, Verdict.SAME)
    under_both = evidence(Verdict.SAME, 0.01, by)
    trials = (
        under_both.trials[0],
        type(under_both.trials[1])("delete", by[1], 0.0, 0.0, 0.0, p=0.6),
    )
    torn = type(under_both)(**{**vars(under_both), "trials": trials})
    every = {f"m{i}": scored(f"m{i}", {3: 2.0, i: 1.0}, torn) for i in range(3)}
    found = judged_together(every)
    assert found is not None
    assert found.p > 0.3
    fine = {f"m{i}": scored(f"m{i}", {3: 2.0, i: 1.0}, under_both) for i in range(3)}
    held = judged_together(fine)
    assert held is not None
    assert held.p <= 0.05


def test_windows_are_ranked_each_by_itself():
    """Shifting a window's scores changes no ranking within it, so nothing changes."""
    windows = (Window(0, 5, 0.5), Window(5, 10, 0.5))
    rng = np.random.default_rng(0)
    scores, others = rng.normal(size=(2, 10))
    moved = scores + np.repeat([0.0, 50.0], 5)

    def found(values, cut):
        pair = {
            "a": scored("a", dict(enumerate(values.tolist())), BETTER, windows=cut),
            "b": scored("b", dict(enumerate(others.tolist())), BETTER, windows=cut),
        }
        return judged_together(pair)

    assert found(scores, windows) == found(moved, windows)
    assert found(scores, ()) != found(moved, ())


# ---------------------------------------------------------------------- how often by chance


@pytest.mark.parametrize(
    "cell",
    [
        Cell(5, 9, alike=0.95),
        Cell(12, 21, alike=0.95),
        Cell(8, 2),
        # a method and its sizes, where every word is against the target: taken as if one question
        # were asked of both, words would be named in 40 of 100 texts
        Cell(12, 2, mixed=True, twins=True),
    ],
)
def test_shuffled_scores_name_words_in_one_text_of_twenty(cell):
    rng = np.random.default_rng(1)
    count = counted((cell.text(rng) for _ in range(120)), rng, cell.rankings, LOTS)
    error = np.std(count.new) / np.sqrt(len(count.new))
    assert np.mean(count.new) <= 0.055 + 2 * error
    assert error < 0.01


def test_it_finds_more_than_the_rule_before():
    """Two good methods of two on short texts, and five of nine."""
    for cell in (Cell(6, 2, good=2), Cell(8, 9, good=5)):
        rng = np.random.default_rng(2)
        count = counted((cell.text(rng) for _ in range(150)), rng, cell.rankings, lots=0)
        assert np.mean(count.new) > np.mean(count.old) + 0.15
