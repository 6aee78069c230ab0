"""A budget that runs share: fewer rankings, then larger units, then fewer methods; and said."""

from __future__ import annotations

import pytest

import whence
from tests.families import build
from whence.core.budget import Budget
from whence.core.errors import SettingsError
from whence.core.plan import Plan
from whence.core.request import Request
from whence.explaining.planning import Clock
from whence.explaining.sharing import Errand, parts_of, passes_within, plan_of_all
from whence.models.model import Model

PROMPT = (
    "the food is great. the service is not bad and the food is fine! or the service is dull. "
    "so she would rather leave"
)
CONTINUATION = " the staff is not"
FEW = ["gradient-x-input", "occlusion"]
DOCUMENTS = {
    "a.txt": "the food is great. the staff is fine. so it is.",
    "b.txt": "the place is dull. she is not good. it is bad.",
}


@pytest.fixture(scope="module")
def model() -> Model:
    return build("gpt2")


def spent(result: whence.Generation | whence.ContextUse) -> int:
    """What runs of methods and evidence took: all but the first looks at the text."""
    return result.cost.forwards + 2 * result.cost.backwards


def generated(model: Model, **options: object) -> whence.Generation:
    return whence.generate(model, PROMPT, FEW, continuation=CONTINUATION, **options)  # type: ignore[arg-type]


def test_without_a_budget_units_stay_and_nothing_is_said(model: Model) -> None:
    g = generated(model, rankings=39, steps=5)
    assert g.passage.kind == "word"
    assert not [note for note in g.notes if "budget" in note]


@pytest.mark.parametrize(("budget", "kind"), [(1500, "word"), (250, "sentence")])
def test_a_budget_is_kept_by_rankings_first_and_then_by_larger_units(
    model: Model, budget: int, kind: str
) -> None:
    # would catch: a budget that each of the two runs takes for itself
    g = generated(model, budget=budget)
    assert spent(g) <= budget
    assert g.passage.kind == kind
    (said,) = [note for note in g.notes if f"the budget is {budget:,} passes" in note]
    if kind == "sentence":
        assert "sentences as units (not words)" in said
        assert g.units.texts[:2] == (
            "the food is great.",
            " the service is not bad and the food is fine!",
        )
    else:
        assert "39 random rankings (usually 100)" in said
    # rows, and what the evidence is about, have the same units
    assert g.chosen is not None
    first = g.chosen.first.units.texts
    assert g.units.texts[: len(first)] == first
    assert whence.Generation.from_dict(g.to_dict()).notes == g.notes


def test_a_word_is_found_although_units_have_become_sentences(model: Model) -> None:
    g = generated(model, budget=250, target="staff")
    assert g.passage.kind == "sentence"
    assert g.chosen is not None
    assert g.chosen.first.target.word == "staff"


def test_contrasts_of_texts_keep_a_budget_too(model: Model) -> None:
    g = generated(model, budget=300, instead_of=" the place is dull and bad")
    assert g.passage.kind == "sentence"
    assert spent(g) <= 300 + 4  # two texts, each looked at once before, and once by its game
    assert g.chosen is not None
    assert len(g.chosen.first.units) == 4


def test_the_dearest_method_goes_where_larger_units_do_not_help(model: Model) -> None:
    methods = {"gradient-x-input": {}, "lime": {"samples": 400, "exact": 0}}
    g = whence.generate(
        model,
        "the food is great but the service is not so she would rather leave",
        methods,
        continuation=CONTINUATION,
        scored="prompt",
        evidence=False,
        budget=60,
    )
    assert g.methods == ("gradient-x-input",)
    assert "the budget is 60 passes" in g.skipped["lime"]


def test_documents_become_the_units_of_a_context(model: Model) -> None:
    asked = {"continuation": CONTINUATION, "least": 0.0, "deviations": None, "most": 2}
    full = whence.context(model, "so the food is", DOCUMENTS, **asked)
    assert full.passage.kind == "sentence"
    use = whence.context(model, "so the food is", DOCUMENTS, budget=40, **asked)
    assert use.passage.kind == "section"
    assert use.units.names == ("a.txt", "b.txt")
    assert spent(use) <= 40 + 2  # the two runs of the first step come before
    assert any("sections as units (not sentences)" in note for note in use.notes)
    assert use.place(0) == "a.txt"


def test_a_time_is_what_is_left_of_it(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    # would catch: seconds that were spent on writing, counted twice
    monkeypatch.setattr(Clock, "seconds_per_pass", lambda *_: 0.01)
    errand = Errand(Request.of("occlusion", evidence=False), [model.encode("so the food is")])
    parts = parts_of(model, [errand])
    assert passes_within(Budget.of("10s"), parts, spent=4.0) == 600
    assert passes_within(Budget.of("10s"), parts, spent=14.0) == 0


def test_too_small_a_budget_says_what_is_needed(model: Model) -> None:
    with pytest.raises(SettingsError, match="with sentences as units, the cheapest method") as told:
        generated(model, budget=9)
    assert "--no-evidence" in str(told.value)


def test_several_plans_are_told_as_one() -> None:
    reason = "the budget is 9 s"
    rows = Plan(
        settings={"lime": {"samples": 5}}, reason=reason, units="sentence", asked_units="word"
    )
    judged = Plan(39, 5, reason=reason, units="sentence", asked_units="word")
    assert plan_of_all([rows, judged]).describe() == (
        "Leaner than usual, as the budget is 9 s: 39 random rankings (usually 100), 5 steps "
        "(usually 10), fewer samples for lime and sentences as units (not words)."
    )
