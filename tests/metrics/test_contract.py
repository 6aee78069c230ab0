"""What every metric must keep to, over every metric and every choice of its Literal settings."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import numpy as np
import pytest

import whence
from tests.choices import choices
from tests.families import build
from tests.games.made_up import FeatureGame, additive
from whence.core.measurement import Measurement
from whence.core.registry import Needs, as_values, metrics, settings_of
from whence.metrics.control import Subject, drawn_scores, laid_out, values_on
from whence.metrics.rankings import random_rankings


def cases(needs: Needs) -> Any:
    """Every metric that has one of these needs, with every choice of its Literal settings."""
    fitting = {name: info for name, info in metrics().items() if info.needs & needs}
    listed = [(name, given) for name, info in fitting.items() for given in choices(info.settings)]
    ids = [f"{name}-{'-'.join(map(str, given.values()))}" for name, given in listed]
    return pytest.mark.parametrize(("name", "given"), listed, ids=ids)


# a metric that wants the explanation made again has its own contract: test_again.py
every_case = cases(Needs.RANKINGS | Needs.SCORES)
of_a_game = cases(Needs.GAME)
STANDARD_ERRORS = 5  # a true mean is further away in one run of a million


def of(name: str, given: dict[str, Any]) -> Any:
    return settings_of(metrics()[name], given)


def subject_of(game: FeatureGame, weights: np.ndarray) -> Subject:
    """Gold is what does something."""
    return Subject(game, weights != 0)


def rows_of(metric: Any, rankings: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """What the metric takes: the rankings, or the true values, laid out in their order."""
    if metric.needs & Needs.RANKINGS:
        return rankings
    return laid_out(weights, rankings)


def values(metric: Any, game: FeatureGame, weights: np.ndarray, rankings: np.ndarray) -> Any:
    rows = rows_of(metric, rankings, weights)
    return values_on(metric, "it", subject_of(game, weights), rows)


def half_idle(rng: np.random.Generator, units: int) -> np.ndarray:
    """Weights of which half are zero."""
    weights = rng.exponential(size=units)
    weights[rng.permutation(units)[: units // 2]] = 0.0
    return weights


def true_ranking(weights: np.ndarray) -> np.ndarray:
    return np.argsort(-weights)[None]


def gain(metric: Any, value: Any, over: Any) -> Any:
    """By how much a value is better than another, in the metric's own direction."""
    if metric.better == "higher":
        return value - over
    return over - value


@every_case
@pytest.mark.parametrize("units", [1, 2, 7, 33])
def test_one_finite_number_for_each_ranking(name: str, given: dict[str, Any], units: int) -> None:
    metric = of(name, given)
    weights = np.linspace(-1, 2, units)
    game = additive(weights)
    rankings = random_rankings(game, 20).orders
    every = values(metric, game, weights, rankings)
    assert every.dtype == np.float64
    as_values(every, name, len(rankings))
    # each ranking is a case of its own: whoever is beside it changes nothing
    last = values(metric, game, weights, rankings[-1:])
    np.testing.assert_allclose(last, every[-1:], rtol=0, atol=1e-12)


@every_case
@pytest.mark.parametrize("kind", ["constant scores", "a constant game", "all zero"])
def test_where_nothing_is_ranked_or_nothing_matters(
    name: str, given: dict[str, Any], kind: str
) -> None:
    """The enemy: a division by a spread or a sum that is zero."""
    metric = of(name, given)
    weights = np.zeros(6) if kind == "a constant game" else np.linspace(-1, 2, 6)
    scores = np.zeros(6) if kind == "all zero" else np.ones(6)
    game = additive(weights)
    rows = np.arange(6)[None] if metric.needs & Needs.RANKINGS else scores[None]
    as_values(values_on(metric, name, subject_of(game, weights), rows), name, 1)


@every_case
def test_settings_are_frozen_and_survive_json(name: str, given: dict[str, Any]) -> None:
    metric = of(name, given)
    for field in fields(metric):
        with pytest.raises((FrozenInstanceError, AttributeError)):
            setattr(metric, field.name, None)
    measured = measured_on_a_text(name, given, seed=0)
    stored = json.loads(json.dumps(measured.to_dict()))
    assert Measurement.from_dict(stored) == measured
    assert metrics()[name].settings(**stored["settings"]) == metric


@every_case
def test_same_seed_same_numbers(name: str, given: dict[str, Any]) -> None:
    first, again, other = (measured_on_a_text(name, given, seed=seed) for seed in (1, 1, 2))
    assert first == again
    # a mean of few values may be the same by chance; not all that is said of the control
    assert replace(first, seed=2) != other


def measured_on_a_text(name: str, given: dict[str, Any], seed: int) -> Measurement:
    model = build("bert")
    text = "the food is great but not the prices"
    a = whence.explain(model, text, "occlusion", target="good", evidence=False)
    game = whence.game(model, text, target="good")
    gold = [0, 0, 0, 1, 0, 1, 0, 0]
    return whence.measure(game, a, name, gold=gold, seed=seed, **given)


@cases(Needs.GAME | Needs.GOLD)
@pytest.mark.parametrize("seed", range(5))
def test_the_truth_is_better_than_chance_and_its_reverse_is_worse(
    name: str, given: dict[str, Any], seed: int
) -> None:
    """The enemy: a metric whose ``better`` points the wrong way."""
    metric = of(name, given)
    rng = np.random.default_rng(seed)
    weights = half_idle(rng, 12)
    game = additive(weights, start=rng.normal())
    truth = true_ranking(weights)
    (best,) = values(metric, game, weights, truth)
    (worst,) = values(metric, game, weights, truth[:, ::-1])
    random = values(metric, game, weights, random_rankings(game, 200).orders)
    assert gain(metric, best, random.mean()) > 0
    assert gain(metric, random.mean(), worst) > 0
    assert (gain(metric, best, random) >= -1e-9).all()  # an additive game has no better ranking


@every_case
def test_constant_reversed_and_random_can_be_told_apart(name: str, given: dict[str, Any]) -> None:
    """A metric that gives all of them one number has no place."""
    metric = of(name, given)
    rng = np.random.default_rng(7)
    weights = half_idle(rng, 12)
    game = additive(weights)
    truth = true_ranking(weights)
    told = [
        float(values(metric, game, weights, ranking).mean())
        for ranking in (truth, truth[:, ::-1], random_rankings(game, 200).orders)
    ]
    if metric.needs & Needs.SCORES:
        told += values_on(metric, name, subject_of(game, weights), np.ones((1, 12))).tolist()
    assert np.ptp(told) > 1e-6


@every_case
def test_the_declared_chance_holds(name: str, given: dict[str, Any]) -> None:
    """A hundred units that act independently, half of them idle, and sum to one; at random.

    Of the form alone, what chance gets are scores drawn from the normal distribution.
    """
    metric = of(name, given)
    weights = half_idle(np.random.default_rng(3), 100)
    game = additive(weights / weights.sum())
    rankings = random_rankings(game, 3000).orders
    if metric.needs == Needs.SCORES:
        drawn = drawn_scores(game, 3000, signed=True)
        of_random = values_on(metric, name, subject_of(game, weights), drawn)
    else:
        of_random = values(metric, game, weights / weights.sum(), rankings)
    error = of_random.std(ddof=1) / np.sqrt(len(of_random))
    assert abs(of_random.mean() - metric.chance) <= STANDARD_ERRORS * error + 1e-9
    low, high = metric.range
    if np.isfinite([low, high]).all():
        assert error < 0.01 * (high - low)  # or the test would say nothing


@every_case
def test_values_lie_within_the_range(name: str, given: dict[str, Any]) -> None:
    """On games of any form whose values go from 0 to 1; a game of two steps reaches far out."""
    metric = of(name, given)
    low, high = metric.range
    steps = [lambda z: z[:, 0], lambda z: 1 - z[:, 0], lambda z: (z.sum(1) > 4).astype(float)]
    rng = np.random.default_rng(0)
    steps.append(lambda z: 1 / (1 + np.exp(-(z @ rng.normal(size=(9, 1)))[:, 0])))
    for value in steps:
        game = FeatureGame(9, value)
        weights = np.linspace(-1, 1, 9)
        of_random = values(metric, game, weights, random_rankings(game, 200).orders)
        assert (of_random >= low - 1e-12).all()
        assert (of_random <= high + 1e-12).all()


@of_a_game
@pytest.mark.parametrize("units", [1, 5, 40])
def test_it_asks_no_more_masks_than_it_says(name: str, given: dict[str, Any], units: int) -> None:
    """Each mask counts once, as the games of a text remember them."""
    metric = of(name, given)
    asked = set()

    def remembered(masks: np.ndarray) -> np.ndarray:
        asked.update(mask.tobytes() for mask in masks)
        return masks.sum(1)

    game = FeatureGame(units, remembered)
    values(metric, game, np.linspace(-1, 2, units), np.arange(units)[None])
    assert 0 < len(asked) <= metric.passes(units)


@pytest.mark.parametrize("name", metrics())
def test_every_metric_is_listed(name: str) -> None:
    listed = {metric.name: metric for metric in whence.list_metrics()}
    assert listed[name].summary.endswith(".")
    assert listed[name].better == of(name, {}).better
    assert json.loads(json.dumps(listed[name].to_dict()))["chance"] == listed[name].chance
