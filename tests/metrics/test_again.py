"""What every metric must keep to that wants the explanation made again, by every choice."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import FrozenInstanceError, asdict, fields, replace
from typing import Any

import numpy as np
import pytest

import whence
from tests.choices import choices
from tests.families import build
from tests.metrics.made_again import explanation
from whence.core.registry import Needs, metrics, settings_of
from whence.core.request import Request, wishes_for
from whence.explaining.again import MeasuredAgain, measured_again
from whence.metrics.again import AgainMetric, Missing, NotMeasured, drawn_anew, similarities

TEXT = "the food is great but not the prices"
METHODS = {"occlusion": {}, "smooth-grad": {"samples": 4}, "random": {}}
STANDARD_ERRORS = 5
FEW = ("seeds", "neighbours", "steps", "top")  # settings of which two are enough

listed = []
for name, info in metrics().items():
    if info.needs & Needs.AGAIN:
        listed += [(name, given) for given in choices(info.settings)]
ids = [f"{name}-{'-'.join(map(str, given.values()))}" for name, given in listed]
every_case = pytest.mark.parametrize(("name", "given"), listed, ids=ids)


def of(name: str, given: dict[str, Any], seed: int | None = None) -> Any:
    return settings_of(metrics()[name], given, seed)


def measured(model: whence.Model, cases: dict[str, AgainMetric], seed: int) -> MeasuredAgain:
    request = Request(wishes=wishes_for(METHODS), evidence=False, seed=seed)
    c = whence.compare(model, TEXT, METHODS, evidence=False, seed=seed)
    return measured_again(model, [c.attributions], cases, request, draws=3)


def plain(result: MeasuredAgain) -> dict[tuple[str, str], Any]:
    out = {}
    for method, by_metric in result.of_texts[0].items():
        for name, one in by_metric.items():
            out[method, name] = (one.value, one.reason, one.control.tolist())
    return out


@every_case
def test_settings_are_frozen_and_survive_json(name: str, given: dict[str, Any]) -> None:
    metric = of(name, given)
    for field in fields(metric):
        with pytest.raises((FrozenInstanceError, AttributeError)):
            setattr(metric, field.name, None)
    stored = json.loads(json.dumps(asdict(metric)))
    assert metrics()[name].settings(**stored) == metric


@every_case
def test_it_says_what_it_is(name: str, given: dict[str, Any]) -> None:
    metric = of(name, given)
    assert isinstance(metric, AgainMetric)
    wanted = metric.again()
    assert wanted
    assert len(set(wanted)) == len(wanted)  # each is another one, and equal ones are done once
    assert wanted == of(name, given).again()
    low, high = metric.range
    assert low <= metric.chance <= high


def test_the_model_is_left_as_it_was_and_the_same_seed_gives_the_same_numbers() -> None:
    """All at once, as a run does it; a fresh model object has nothing remembered of the first."""
    cases = {}
    for (name, given), key in zip(listed, ids, strict=True):
        names = {field.name for field in fields(metrics()[name].settings)}
        few = {setting: 2 for setting in FEW if setting in names}
        cases[key] = of(name, given | few, seed=3)
    model = build("bert")
    weights = {key: value.clone() for key, value in model.hf.state_dict().items()}
    first = measured(model, cases, seed=3)
    for key, value in model.hf.state_dict().items():
        assert value.equal(weights[key]), key
    assert all(p.requires_grad for p in model.hf.parameters())

    again = measured(build("bert"), cases, seed=3)
    assert plain(again) == plain(first)
    other = measured(model, cases, seed=4)
    for key in ids:
        assert plain(first)["occlusion", key][0] is not None
        assert plain(first)["occlusion", key][2] != plain(other)["occlusion", key][2] or (
            "csi" in key
        )


@every_case
def test_identical_explanations_get_the_best_value(name: str, given: dict[str, Any]) -> None:
    """But for a change of the model that must be seen: there they get the value of chance."""
    metric = of(name, given)
    first = explanation(np.random.default_rng(0).normal(size=30), error=np.full(30, 0.1))
    others = [replace(first, moved=0.1) for _ in metric.again()]
    value = metric(first, others)
    if name == "model-randomisation":
        assert value == metric.chance
        return
    low, high = metric.range
    assert value == pytest.approx(high if metric.better == "higher" else low, abs=1e-12)


@every_case
def test_worse_explanations_get_worse_values(name: str, given: dict[str, Any]) -> None:
    """The enemy: a ``better`` that points the wrong way."""
    metric = of(name, given)
    rng = np.random.default_rng(1)
    truth = rng.normal(size=60)
    values = []
    for noise in (0.01, 0.3, 3.0):
        others = []
        for again in metric.again():
            forgets = name == "model-randomisation" and again.model is not None
            scores = rng.normal(size=60) if forgets else truth + noise * rng.normal(size=60)
            others.append(explanation(scores, error=np.full(60, 0.05), moved=0.1))
        values.append(metric(explanation(truth, error=np.full(60, 0.05)), others))
    steps = np.diff(values)
    assert ((steps < 0) if metric.better == "higher" else (steps > 0)).all()


@every_case
def test_the_declared_chance_holds(name: str, given: dict[str, Any]) -> None:
    """A hundred normal scores of mean zero, given to the units anew each time, as by the control.

    A chance that is rounded, or a series cut short, may be off by a thousandth of itself.
    """
    metric = of(name, given)
    scale = getattr(metric, "scale", 0.1)
    rng = np.random.default_rng(0)
    values = []
    for seed in range(25):
        scores = rng.normal(size=100)
        scores = (scores - scores.mean()) / scores.std(ddof=1)
        one = explanation(scores, error=np.ones(100), moved=scale)
        values += drawn_anew(metric, one, [one] * len(metric.again()), [seed], 20).tolist()
    assert len(values) == 500
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    rounding = 1e-3 * abs(metric.chance)
    assert abs(np.mean(values) - metric.chance) <= STANDARD_ERRORS * error + rounding
    assert error < 0.01 * max(1.0, metric.chance)  # or the test would say nothing


@every_case
def test_what_is_missing_has_a_reason(name: str, given: dict[str, Any]) -> None:
    metric = of(name, given)
    first = explanation(np.arange(9.0))
    with pytest.raises(NotMeasured, match="it was refused"):
        metric(first, [Missing("it was refused.")] * len(metric.again()))


@every_case
@pytest.mark.parametrize("scores", [np.zeros(8), np.ones(8)], ids=["zero", "one"])
def test_where_nothing_is_ranked(name: str, given: dict[str, Any], scores: np.ndarray) -> None:
    """The enemy: a division by a spread or a length that is zero."""
    metric = of(name, given)
    first = explanation(scores, error=np.zeros(8))
    for other_scores in (scores, np.arange(8.0)):
        others = [explanation(other_scores, error=np.zeros(8), moved=0.1) for _ in metric.again()]
        with suppress(NotMeasured):
            assert np.isfinite(metric(first, others))


def test_one_that_ranks_nothing_is_like_none_but_its_own_kind() -> None:
    even, uneven = np.full(3, 0.1), np.array([1.0, 2.0, 3.0])
    rounding = even + np.array([0.0, 1e-17, 2e-17])
    alike = similarities(np.stack([even, uneven, rounding]))
    assert alike.tolist() == [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
