"""The scoring of the planted truth, against every tie-break and every assignment by brute force."""

from __future__ import annotations

from itertools import combinations, pairwise, permutations, product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from whence.metrics.planted import by_chance, chance_range, found, holm, p_of, parts_of

few_levels = st.lists(st.integers(0, 3), min_size=2, max_size=6)


def rankings(scores: list[int]) -> list[tuple[int, ...]]:
    """Every order of the units that the scores allow."""
    orders = permutations(range(len(scores)))
    return [o for o in orders if all(scores[a] >= scores[b] for a, b in pairwise(o))]


@settings(max_examples=60, deadline=None)
@given(few_levels, st.data())
def test_a_text_counts_by_the_share_of_tie_breaks_that_find_it(levels, data):
    """The enemy breaks ties by place: it finds a gold word that stands first for nothing."""
    count = len(levels)
    gold = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=count))
    decoys = data.draw(st.sets(st.integers(0, count - 1)))
    orders = rankings(levels)
    hits = [set(order[: len(gold)]) == gold for order in orders]
    recalls = [len(set(order[: len(gold)]) & gold) / len(gold) for order in orders]
    fooled = [order[0] in decoys for order in orders]
    result = found(np.array(levels, dtype=float), sorted(gold), sorted(decoys))
    assert result.share == pytest.approx(np.mean(hits))
    assert result.recall == pytest.approx(np.mean(recalls))
    assert result.fooled == pytest.approx(np.mean(fooled))


@settings(max_examples=40, deadline=None)
@given(few_levels, st.integers(1, 3))
def test_by_chance_a_share_has_the_two_values_that_all_assignments_give(levels, size):
    """The enemy takes 1 / C(n, g) for the probability also where ties split the share."""
    size = min(size, len(levels))
    scores = np.array(levels, dtype=float)
    every = [found(scores, gold) for gold in combinations(range(len(levels)), size)]
    shares = np.array([one.share for one in every])
    one = every[0]
    assert np.mean(shares > 0) == pytest.approx(one.chance)
    assert set(shares[shares > 0].round(12)) == {round(one.tied_share, 12)}
    assert shares.mean() == pytest.approx(1 / comb(len(levels), size))


def test_scores_that_differ_by_rounding_alone_are_tied():
    noisy = np.array([1.0, 0.1 + 0.2, 0.3, 0.0])
    assert found(noisy, [0, 1]).share == 0.5


def test_p_is_the_share_of_all_assignments_that_find_as_much():
    """The enemy counts ties as whole texts, or takes > for ≥."""
    texts = [np.array([2.0, 1.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0]), np.array([3.0, 2.0, 1.0])]
    sizes = (2, 2, 1)
    gold_sets = [combinations(range(len(s)), g) for s, g in zip(texts, sizes, strict=True)]
    every = []
    for chosen in product(*gold_sets):
        every.append([found(s, gold) for s, gold in zip(texts, chosen, strict=True)])
    totals = np.array([sum(one.share for one in each) for each in every])
    for each, total in zip(every, totals, strict=True):
        assert p_of(each) == pytest.approx(np.mean(totals >= total - 1e-9))
    distribution = by_chance(every[0])
    assert distribution.sum() == pytest.approx(1)
    mean = distribution @ np.arange(len(distribution)) / parts_of(every[0])
    assert mean == pytest.approx(1 / 6 + 1 / 3 + 1 / 3)


def test_the_range_of_chance_is_that_of_the_binomial():
    for n, g, texts in [(10, 1, 30), (12, 2, 60), (8, 1, 5)]:
        low, high = binom.interval(0.95, texts, 1 / comb(n, g))
        assert chance_range([(n, g)] * texts) == (low, high)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_holm_is_the_closed_test_of_bonferroni(p_values):
    """The enemy forgets that a later adjusted p is never smaller than an earlier one."""
    number = len(p_values)
    for i, adjusted in enumerate(holm(p_values)):
        worst = 0.0
        for size in range(1, number + 1):
            for subset in combinations(range(number), size):
                if i in subset:
                    worst = max(worst, size * min(p_values[j] for j in subset))
        assert adjusted == pytest.approx(min(1.0, worst))
