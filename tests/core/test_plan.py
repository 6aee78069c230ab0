"""The plan: what it changes in the wishes, what it says, and that JSON gives it back."""

from __future__ import annotations

import json

from whence.core.plan import Plan
from whence.core.request import Wish

ASKED = (Wish("lime", {"samples": 90}), Wish("anchors"), Wish("random"))


def test_the_full_plan_changes_nothing_and_says_nothing() -> None:
    plan = Plan()
    assert plan.is_full
    assert plan.describe() == ""
    assert plan.wishes(ASKED) == ASKED


def test_a_lowered_setting_never_replaces_one_that_was_given() -> None:
    plan = Plan(settings={"lime": {"samples": 10, "budget": 200}, "anchors": {"budget": 256}})
    assert plan.wishes(ASKED) == (
        Wish("lime", {"samples": 90, "budget": 200}),
        Wish("anchors", {"budget": 256}),
        Wish("random"),
    )


def test_a_method_that_is_left_out_is_no_wish_any_more() -> None:
    plan = Plan(left_out={"anchors": "too dear"})
    assert [wish.method for wish in plan.wishes(ASKED)] == ["lime", "random"]


def test_the_words_name_all_that_was_made_smaller() -> None:
    plan = Plan(39, 5, {"lime": {"budget": 200}}, {"anchors": "…"}, "the budget is 30 s")
    assert plan.describe() == (
        "Leaner than usual, as the budget is 30 s: 39 random rankings (usually 100), "
        "5 steps (usually 10), fewer samples for lime and no anchors."
    )


def test_json_gives_it_back() -> None:
    plan = Plan(39, 5, {"lime": {"budget": 200}}, {"anchors": "too dear"}, "the budget is 30 s")
    assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    assert "units" not in plan.to_dict()
    larger = Plan(reason="the budget is 30 s", units="sentence", asked_units="word")
    assert Plan.from_dict(json.loads(json.dumps(larger.to_dict()))) == larger
    assert larger.describe() == (
        "Leaner than usual, as the budget is 30 s: sentences as units (not words)."
    )
