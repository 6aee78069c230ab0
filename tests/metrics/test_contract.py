"""What every metric must keep to, over every metric and every choice of its Literal settings."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest

import whence
from tests.choices import choices
from tests.families import build
from tests.games.made_up import FeatureGame, additive
from whence.core.measurement import Measurement
from whence.core.registry import Needs, as_values, metrics, settings_of
from whence.metrics.rankings import random_rankings

CASES = [(name, given) for name, info in metrics().items() for given in choices(info.settings)]
every_case = pytest.mark.parametrize(
    ("name", "given"), CASES, ids=[f"{n}-{'-'.join(map(str, g.values()))}" for n, g in CASES]
)
STANDARD_ERRORS = 5  # a true mean is further away in one run of a million


def of(name: str, given: dict[str, Any]) -> Any:
    return settings_of(metrics()[name], given)


def inputs(metric: Any, rankings: np.ndarray) -> np.ndarray:
    """What the metric takes: the rankings, or scores that have them (10, 9, 8 … in their order)."""
    if metric.needs & Needs.RANKINGS:
        return rankings
    units = rankings.shape[1]
    return units - np.argsort(rankings, axis=1).astype(np.float64)


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
    game = additive(np.linspace(-1, 2, units))
    rankings = random_rankings(game, 20).orders
    values = metric(game, inputs(metric, rankings))
    assert values.dtype == np.float64
    as_values(values, name, len(rankings))
    # each ranking is a case of its own: whoever is beside it changes nothing
    last = metric(game, inputs(metric, rankings)[-1:])
    np.testing.assert_allclose(last, values[-1:], rtol=0, atol=1e-12)


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
    assert first.random_mean != other.random_mean


def measured_on_a_text(name: str, given: dict[str, Any], seed: int) -> Measurement:
    model = build("bert")
    text = "the food is great but not the prices"
    a = whence.explain(model, text, "occlusion", target="good", evidence=False)
    game = whence.game(model, text, target="good")
    return whence.measure(game, a, name, seed=seed, **given)


@every_case
@pytest.mark.parametrize("seed", range(5))
def test_the_truth_is_better_than_chance_and_its_reverse_is_worse(
    name: str, given: dict[str, Any], seed: int
) -> None:
    """The enemy: a metric whose ``better`` points the wrong way."""
    metric = of(name, given)
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=12)
    game = additive(weights, start=rng.normal())
    truth = true_ranking(weights)
    (best,) = metric(game, inputs(metric, truth))
    (worst,) = metric(game, inputs(metric, truth[:, ::-1]))
    random = metric(game, inputs(metric, random_rankings(game, 200).orders))
    assert gain(metric, best, random.mean()) > 0
    assert gain(metric, random.mean(), worst) > 0
    assert (gain(metric, best, random) >= -1e-9).all()  # an additive game has no better ranking


@every_case
def test_the_declared_chance_holds(name: str, given: dict[str, Any]) -> None:
    """A hundred units that act independently and sum to one, ranked at random."""
    metric = of(name, given)
    weights = np.random.default_rng(3).exponential(size=100)
    game = additive(weights / weights.sum())
    values = metric(game, inputs(metric, random_rankings(game, 3000).orders))
    error = values.std(ddof=1) / np.sqrt(len(values))
    assert abs(values.mean() - metric.chance) <= STANDARD_ERRORS * error
    assert error < 0.01 * (metric.range[1] - metric.range[0])  # or the test would say nothing


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
        values = metric(game, inputs(metric, random_rankings(game, 200).orders))
        assert (values >= low - 1e-12).all()
        assert (values <= high + 1e-12).all()


@every_case
@pytest.mark.parametrize("units", [1, 5, 40])
def test_it_asks_no_more_masks_than_it_says(name: str, given: dict[str, Any], units: int) -> None:
    """Each mask counts once, as the games of a text remember them."""
    metric = of(name, given)
    asked = set()

    def remembered(masks: np.ndarray) -> np.ndarray:
        asked.update(mask.tobytes() for mask in masks)
        return masks.sum(1)

    game = FeatureGame(units, remembered)
    metric(game, inputs(metric, np.arange(units)[None]))
    assert 0 < len(asked) <= metric.passes(units)


@pytest.mark.parametrize("name", metrics())
def test_every_metric_is_listed(name: str) -> None:
    listed = {metric.name: metric for metric in whence.list_metrics()}
    assert listed[name].summary.endswith(".")
    assert listed[name].better == of(name, {}).better
    assert json.loads(json.dumps(listed[name].to_dict()))["chance"] == listed[name].chance
