"""Forecasts beside what runs really cost: on random models, where methods need many passes."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

import whence
from tests.choices import quick
from tests.families import build
from whence.core.progress import Step
from whence.core.registry import GRADIENTS, METHODS, Needs, Passes, find_method, method, methods
from whence.core.request import Request, wishes_for
from whence.core.scores import Scores
from whence.explaining.forecast import declared_passes, forecast_of, parameters_of
from whence.explaining.job import Job, job_of
from whence.games.protocol import AnyGame
from whence.metrics.evidence import control, control_passes, ranking_passes
from whence.models.model import Model
from whence.trace.trace import Trace

WORDS = "the food is great but the service is not bad"  # 10 words: games can be enumerated
LONG = f"{WORDS} and {WORDS}"  # 21 words: random masks hardly ever repeat


@pytest.fixture(scope="module")
def model() -> Model:
    return build("bert")


CASES = [(name, quick(info.settings)) for name, info in methods().items()]
CASES += [("shapley", {"estimator": "permutation"}), ("occlusion", {"window": 3, "stride": 2})]


@pytest.mark.parametrize("text", [WORDS, LONG], ids=["short", "long"])
@pytest.mark.parametrize(("name", "given"), CASES)
def test_a_method_takes_what_it_declares(
    model: Model, text: str, name: str, given: dict[str, object]
) -> None:
    info = find_method(name)
    if "single-layer" in info.only_for:
        model = build("single-layer")
    found = whence.explain(model, text, name, evidence=False, **given)
    job = _job(model, {name: given})
    (call,) = (*job.looking, *job.playing)
    declared = declared_passes(call, len(found.units))
    assert declared is not None, "our own methods tell"
    # the whole text, and the backward pass of a trace, are shared
    shared_backwards = int(bool(info.needs & GRADIENTS))
    forwards, backwards = found.cost.forwards - 1, found.cost.backwards - shared_backwards
    if declared.at_most:
        assert forwards <= declared.forwards
        assert backwards <= declared.backwards
    else:
        # of all masks the whole text is one
        of_all_masks = int(declared.pool == "all masks")
        assert (forwards, backwards) == (declared.forwards - of_all_masks, declared.backwards)


@pytest.mark.parametrize(("rankings", "steps"), [(100, 10), (39, 5)])
def test_the_passes_of_the_control(model: Model, rankings: int, steps: int) -> None:
    game = whence.game(model, LONG)
    paid = control(game, rankings, steps=steps).forwards
    assert 0.9 * control_passes(game.size, rankings, steps) < paid
    assert paid <= control_passes(game.size, rankings, steps)


@pytest.mark.parametrize("text", [WORDS, LONG], ids=["short", "long"])
def test_a_comparison_costs_no_more_than_its_forecast(model: Model, text: str) -> None:
    settings = {name: quick(info.settings) for name, info in methods().items()}
    del settings["lime-exact"], settings["shapley-exact"]
    told: list[Step] = []
    c = whence.compare(model, text, settings, progress=told.append)
    forecast = told[0].forecast
    spent = c.cost.forwards + 2 * c.cost.backwards
    assert spent <= forecast.of_methods + forecast.evidence
    # and not by far: what methods share, and what the memory has, is taken off
    assert forecast.passes < 1.5 * spent
    assert forecast.passes == whence.forecast(model, text, settings).passes


def test_masks_that_methods_share_are_counted_once(model: Model) -> None:
    passage = model.encode(LONG)
    both = forecast_of(_job(model, ["lime", "shapley"]), passage)
    one = forecast_of(_job(model, ["shapley"]), passage)
    assert both.of_methods == one.of_methods == 2001
    apart = forecast_of(_job(model, {"lime": {"removal": "delete"}, "shapley": {}}), passage)
    assert apart.of_methods == 4002


def test_a_game_has_no_more_masks_than_there_are(model: Model) -> None:
    job = _job(model, ["anchors", "banzhaf", "shapley", "occlusion"], evidence=True)
    passage = model.encode("the food is great")
    assert forecast_of(job, passage).passes == 2 * 2**4


def test_several_targets_share_masks_but_not_traces(model: Model) -> None:
    passage = model.encode(LONG)
    job = _job(model, ["gradient-l2", "shapley"], evidence=True)
    targets = (whence.Target("bad"), whence.Target("good"))
    several = job_of(model, replace(job.request, targets=targets))
    one, two = forecast_of(job, passage), forecast_of(several, passage)
    assert (one.trace, two.trace) == (Passes(1, 1), Passes(1, 2))
    assert one.methods["shapley"] == two.methods["shapley"]
    # two methods, under two removals, for one target more
    assert two.evidence - one.evidence == 2 * 2 * ranking_passes(21)


def _job(model: Model, wanted: Any, evidence: bool = False) -> Job:
    return job_of(model, Request(wishes=wishes_for(wanted), evidence=evidence))


@pytest.fixture
def _others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two methods of somebody who declares no passes."""
    monkeypatch.setattr(METHODS, "entries", dict(methods()))

    @method("their-norm", version=1, cites="")
    @dataclass(frozen=True, slots=True)
    class TheirNorm:
        """The size of an embedding."""

        needs: ClassVar[Needs] = Needs.EMBEDDINGS
        signed: ClassVar[bool] = False

        def __call__(self, trace: Trace) -> Any:
            return trace.embeddings.norm(dim=-1)

    @method("their-game", version=1, cites="")
    @dataclass(frozen=True, slots=True)
    class TheirGame:
        """The place of a unit."""

        removal: str = "auto"
        needs: ClassVar[Needs] = Needs.GAME
        signed: ClassVar[bool] = False

        def __call__(self, game: AnyGame) -> Scores:
            return Scores(units=np.arange(game.size, dtype=float))


@pytest.mark.usefixtures("_others")
def test_a_method_that_does_not_tell_is_named(model: Model) -> None:
    forecast = whence.forecast(model, WORDS, ["their-norm", "their-game"])
    assert forecast.methods == {"their-norm": Passes(), "their-game": None}
    assert "not known of their-game" in str(forecast)
    assert json.loads(json.dumps(forecast.to_dict()))["methods"]["their-game"] is None
    # and it is never left out for its cost, which nobody knows
    c = whence.compare(model, LONG, ["shapley", "their-game"], budget=750)
    assert list(c) == ["their-game"]


def test_parameters_without_embeddings(model: Model) -> None:
    hf = model.hf
    everything = sum(p.numel() for p in hf.parameters())
    assert parameters_of(model) == everything - hf.get_input_embeddings().weight.numel()
