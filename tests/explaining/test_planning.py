"""Plans: full where a model is small, lean where it is large, and within a budget."""

from __future__ import annotations

from typing import Any

import pytest

import whence
from tests.families import build
from whence.core.comparison import Comparison
from whence.core.errors import InputError, SettingsError
from whence.core.request import Request
from whence.explaining import planning
from whence.models.model import Model

LONG = (
    "the food is great but the service is not bad and the food is fine or the service is dull so "
    "she would rather leave"
)
SOME = ["gradient-l2", "integrated-gradients", "lime", "anchors"]


@pytest.fixture(scope="module")
def model() -> Model:
    return build("bert")


@pytest.fixture
def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the model were large: any nominal time is too long."""
    monkeypatch.setattr(planning, "NOMINAL_LIMIT", 0.0)


@pytest.fixture
def _no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> float:
        raise AssertionError("a clock was asked")

    monkeypatch.setattr(planning, "timed_pass", refuse)


def spent(comparison: Comparison) -> int:
    return comparison.cost.forwards + 2 * comparison.cost.backwards


@pytest.mark.usefixtures("_no_clock")
def test_a_small_model_gets_everything(model: Model) -> None:
    c = whence.compare(model, LONG, ["gradient-l2"])
    evidence = c.first.evidence
    assert evidence is not None
    assert (evidence.rankings, evidence.steps) == (100, 10)
    assert c.plan is None
    assert "plan" not in c.to_dict()


@pytest.mark.usefixtures("_large", "_no_clock")
def test_a_large_model_gets_the_lean_plan_and_the_result_says_so(model: Model) -> None:
    c = whence.compare(model, LONG, SOME)
    for attribution in c.attributions.values():
        assert attribution.evidence is not None
        assert (attribution.evidence.rankings, attribution.evidence.steps) == (39, 5)
    assert c.plan is not None
    assert c.plan.settings == {
        "integrated-gradients": {"max_nodes": 64},
        "lime": {"budget": 200},
        "anchors": {"budget": 256},
    }
    assert c["lime"].settings["budget"] == 200
    assert "39 random rankings (usually 100)" in c.plan.describe()
    assert Comparison.from_dict(c.to_dict()).plan == c.plan


@pytest.mark.usefixtures("_large", "_no_clock")
def test_what_the_caller_gave_is_never_made_smaller(model: Model) -> None:
    # more than the lean plan's 39 rankings and 5 steps
    wanted = {"lime": {"budget": 300}, "anchors": {}}
    c = whence.compare(model, LONG, wanted, rankings=40, steps=6)
    assert c["lime"].settings["budget"] == 300
    assert c["anchors"].settings["budget"] == 256
    assert c.first.evidence is not None
    assert (c.first.evidence.rankings, c.first.evidence.steps) == (40, 6)
    a = whence.explain(model, LONG, "gradient-l2", rankings=40, steps=6)
    assert a.plan is None


@pytest.mark.usefixtures("_large", "_no_clock")
def test_full_is_everything_whatever_it_costs(model: Model) -> None:
    a = whence.explain(model, LONG, "gradient-l2", budget="full")
    assert a.evidence is not None
    assert (a.evidence.rankings, a.evidence.steps, a.plan) == (100, 10, None)
    lean = whence.explain(model, LONG, "gradient-l2")
    assert lean.plan is not None
    assert whence.Attribution.from_dict(lean.to_dict()).plan == lean.plan


def test_the_plan_of_a_text_does_not_depend_on_its_neighbours(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = "not bad"
    passes = whence.forecast(model, LONG, "gradient-l2").passes
    limit = planning.nominal_seconds(model, model.encode(LONG), passes) / 2
    monkeypatch.setattr(planning, "NOMINAL_LIMIT", limit)
    together = whence.explain(model, [short, LONG, short], "gradient-l2")
    alone = [whence.explain(model, text, "gradient-l2") for text in (short, LONG, short)]
    assert [a.plan is None for a in together] == [True, False, True]
    for one, other in zip(together, alone, strict=True):
        assert one.evidence == other.evidence


@pytest.mark.usefixtures("_no_clock")
@pytest.mark.parametrize(
    ("budget", "rankings", "lowered", "left_out"),
    [
        (100_000, 100, [], []),
        (9_000, 39, [], []),
        (1_500, 39, ["anchors", "integrated-gradients", "lime"], []),
        # those that can stop anywhere do so before any method is left out
        (1_050, 39, ["anchors", "integrated-gradients", "lime"], []),
        (750, 39, ["integrated-gradients"], ["anchors", "lime"]),
        (650, 39, [], ["anchors", "integrated-gradients", "lime"]),
    ],
)
def test_what_a_budget_makes_smaller_comes_in_order(
    model: Model, budget: int, rankings: int, lowered: list[str], left_out: list[str]
) -> None:
    c = whence.compare(model, LONG, SOME, budget=f"{budget} passes")
    assert spent(c) <= budget
    assert c.first.evidence is not None
    assert c.first.evidence.rankings == rankings
    assert sorted(c.skipped) == left_out
    if rankings == 100:
        assert c.plan is None
        return
    assert c.plan is not None
    assert sorted(c.plan.settings) == lowered
    for name in left_out:
        assert f"the budget is {budget:,} passes" in c.skipped[name]


def test_a_budget_of_time_is_one_of_passes(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "timed_pass", lambda *_: 0.01)
    c = whence.compare(model, LONG, SOME, budget="7.5s")
    assert spent(c) <= 750
    assert sorted(c.skipped) == ["anchors", "lime"]


@pytest.mark.parametrize("methods", [SOME, ["gradient-l2"]])
def test_an_impossible_budget_is_one_clear_error(model: Model, methods: list[str]) -> None:
    with pytest.raises(SettingsError, match=r"budget of 20 passes is too small.*evidence=False"):
        whence.compare(model, LONG, methods, budget=20)
    with pytest.raises(SettingsError, match=r"too small: integrated-gradients may take 57 passes"):
        whence.explain(model, LONG, "integrated-gradients", budget=20, evidence=False)


def test_a_plain_number_is_the_method_s_own_budget_where_it_has_one(model: Model) -> None:
    a = whence.explain(model, LONG, "lime", budget=150, evidence=False)
    assert a.settings["budget"] == 150
    assert a.plan is None
    of_run = whence.explain(model, LONG, "lime", budget="250 passes", evidence=False)
    assert of_run.settings["budget"] == 200
    assert of_run.plan is not None


@pytest.mark.parametrize(
    "fault", [{"budget": "soon"}, {"rankings": 38}, {"rankings": 0}, {"steps": 1}]
)
def test_a_faulty_request_is_refused_before_any_work(fault: dict[str, Any]) -> None:
    with pytest.raises((InputError, SettingsError)):
        Request.of("lime", **fault)


def test_a_request_with_a_budget_is_stored() -> None:
    request = Request.of("gradient-l2", budget="30s", rankings=50, steps=4)
    assert Request.from_dict(request.to_dict()) == request
    older = request.to_dict()
    for name in ("budget", "rankings", "steps"):
        del older[name]
    assert Request.from_dict(older) == Request.of("gradient-l2")


@pytest.mark.parametrize("estimator", ["kernel", "permutation", "surrogate"])
@pytest.mark.usefixtures("_large")
def test_the_lean_plan_leaves_enough_for_every_estimator(model: Model, estimator: str) -> None:
    """A fixed number of masks would be refused: orders of 60 units need 238."""
    text = " ".join(["the"] * 60)
    a = whence.explain(model, text, "shapley", estimator=estimator, evidence=False)
    assert a.settings["budget"] == 4 * 61
    assert len(a.scores) == 60


@pytest.mark.usefixtures("_large")
def test_the_lean_plan_keeps_to_nodes_that_were_given(model: Model) -> None:
    a = whence.explain(model, LONG, "integrated-gradients", nodes=80, evidence=False)
    assert (a.settings["nodes"], a.settings["max_nodes"]) == (80, 80)


@pytest.mark.usefixtures("_no_clock")
def test_what_can_stop_anywhere_is_cut_to_the_budget_and_says_what_it_reached(
    model: Model,
) -> None:
    # would catch: a budget between the least and the lean plan that is refused, or exceeded
    a = whence.explain(model, LONG, "integrated-gradients", budget="150 passes", evidence=False)
    assert a.plan is not None
    assert 16 < a.settings["max_nodes"] < 64
    assert a.cost.forwards + 2 * a.cost.backwards <= 150
    anchors = {"precision": 1.0, "slack": 0.0}
    b = whence.explain(model, LONG, "anchors", budget="80 passes", evidence=False, **anchors)
    assert b.settings["budget"] == 79  # one is the whole text
    assert b.detail is not None
    assert b.detail["samples"] <= 79
    assert b.error is not None
    if not b.detail["holds"]:
        assert "within budget=79, which does not say that there is none" in b.error.note
        assert "90 % interval" in b.error.note


@pytest.mark.usefixtures("_large", "_no_clock")
def test_a_very_large_model_gets_no_more_than_the_limit_of_a_method(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    # would catch: 256 texts of a model of which each takes seconds
    each = planning.nominal_seconds(model, model.encode(LONG), 1)
    monkeypatch.setattr(planning, "NOMINAL_LIMIT_OF_A_METHOD", 100.5 * each)
    c = whence.compare(model, LONG, ["integrated-gradients", "anchors"], evidence=False)
    assert c["anchors"].settings["budget"] == 100
    ig = c["integrated-gradients"]
    assert ig.settings["max_nodes"] < 64
    assert ig.cost.forwards + 2 * ig.cost.backwards <= 100
    # what the caller gave stays, whatever it costs
    given = whence.explain(model, LONG, "anchors", budget=300, evidence=False)
    assert given.settings["budget"] == 300
