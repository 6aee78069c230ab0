"""Recall of gold features, by sets and by counting."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import hypergeom

import whence
from whence.metrics.recall import Recall


def test_the_example_of_the_course() -> None:
    """G = {1, 3, 5}, G' = {3, 4, 5}: two of three. Precision by a budget of 4 would be a half."""
    gold = np.isin(np.arange(1, 7), (1, 3, 5))
    names_345_first = np.array([[2, 3, 4, 0, 1, 5]])
    assert Recall(budget=3)(gold, names_345_first).tolist() == [2 / 3]
    assert Recall(budget=4)(gold, names_345_first).tolist() == [1.0]


@pytest.mark.parametrize("budget", [1, 4, 10])
def test_it_is_the_share_of_a_set(budget: int) -> None:
    rng = np.random.default_rng(budget)
    gold = rng.random(17) < 0.4
    rankings = np.array([rng.permutation(17) for _ in range(30)])
    every = Recall(budget)(gold, rankings)
    for ranking, value in zip(rankings, every, strict=True):
        truth, named = set(np.flatnonzero(gold)), set(ranking[:budget])
        assert value == pytest.approx(len(truth & named) / len(truth))


def test_chance_is_that_of_drawing_without_putting_back() -> None:
    """Whatever the number of gold units; a chance of budget / gold units would be another one."""
    for gold in (3, 50, 80):
        mean_hits = hypergeom(100, gold, 10).mean()
        assert mean_hits / gold == pytest.approx(Recall(10).chance)
    assert Recall(200).chance == 1.0


def test_a_text_without_gold_units_gets_nothing() -> None:
    assert Recall()(np.zeros(4, dtype=bool), np.arange(4)[None]).tolist() == [0.0]


def test_a_budget_of_none_is_refused() -> None:
    with pytest.raises(whence.SettingsError, match="budget is 1 or more, not 0"):
        whence.core.registry.settings_of(whence.core.registry.find_metric("recall"), {"budget": 0})
