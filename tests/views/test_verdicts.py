"""Evidence in words: a verdict never stands without its share and its p, and what has none says so."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.views.conftest import ANCHOR, OWN, SAMPLED, evidence_for, made
from whence.core.attribution import Cost, Error
from whence.views import verdicts, wording

TEXT = "the food is great but the service is not bad"
NONE = {
    "measure": "deletion and insertion curves",
    "verdict": "",
    "note": "too few units for a verdict",
}


def judged(**more):
    scores = np.linspace(1, -1, 10)
    return made(TEXT, scores=scores, evidence={**evidence_for(scores), **more})


def test_a_verdict_is_told_with_share_interval_and_p():
    a = judged(verdict="better than random", value=0.98, interval=[0.92, 1.0], p=0.0099)
    first, mask, delete = verdicts.lines(a)
    assert first == "better than random: beats 98 % of random rankings (92 to 100 %), p = 0.0099"
    of = a.evidence["removals"]["mask"]
    low, high = (f"{100 * end:.0f}" for end in of["interval"])
    assert re.match(
        rf"mask: [✓~✗] {of['verdict']}, {of['value']:.0%}".replace("%", " %")
        + rf" \({low} to {high} %\), p = 0\.\d+$",
        mask,
    )
    assert delete.startswith("delete: ")
    assert [v.removal for v in verdicts.by_removal(a)] == ["mask", "delete"]
    assert f"{a.evidence['removals']['mask']['area']:.3g}" not in " ".join(
        verdicts.lines(a)
    )  # never a bare area


@pytest.mark.parametrize(
    ("verdict", "mark", "kind"),
    [
        ("better than random", "✓", "better"),
        ("not separable from random", "~", "unclear"),
        ("worse than random", "✗", "worse"),
        ("", "–", "none"),
        ("<b>\x1b[31m", "–", "none"),
    ],
)
def test_marks_are_read_without_colour(verdict, mark, kind):
    found = verdicts.overall(judged(verdict=verdict, value=0.5, p=0.0004))
    assert (found.mark, found.kind) == (mark, kind)
    assert found.cell() == f"{mark}  50 % <.001"
    assert "\x1b" not in found.sentence()


def test_the_arbiters_own_evidence_is_no_share_of_rankings():
    a = made(TEXT, evidence=OWN)
    assert verdicts.by_removal(a) == []  # it has a number under "removals"
    assert verdicts.overall(a).mark == "~"
    assert verdicts.overall(a).beaten is None
    assert verdicts.lines(a) == [
        "correlation with held-out removals 0.22 (random: -0.41 to 0.40): not separable from random"
    ]
    both = judged(own=OWN)
    assert verdicts.lines(both)[-1].startswith("its own: correlation with held-out removals 0.22")
    assert len(verdicts.lines(both)) == 4


def test_without_a_verdict_the_reason_is_told_and_without_evidence_nothing():
    assert verdicts.lines(made(TEXT, evidence=NONE)) == ["too few units for a verdict"]
    assert verdicts.lines(made(TEXT)) == []
    assert verdicts.overall(made(TEXT)) is None


def test_the_best_evidence_comes_first_and_the_rest_keeps_its_order():
    def a(name, **evidence):
        return made(TEXT, name, evidence={"removals": {}, **evidence} if evidence else None)

    every = [
        a("none"),
        a("worse", verdict="worse than random", value=0.01),
        a("low", verdict="not separable from random", value=0.4),
        a("high", verdict="not separable from random", value=0.9),
        a("also-none"),
        a("better", verdict="better than random", value=0.97),
    ]
    assert [x.method for x in verdicts.by_evidence(every)] == [
        "better",
        "high",
        "low",
        "worse",
        "none",
        "also-none",
    ]


def test_an_anchor_is_a_rule_with_precision_and_coverage():
    a = made("not so bad", detail=ANCHOR)
    assert wording.anchor(a) == (
        "IF “not” and “bad” stay THEN the prediction is good: "
        "precision 98 % (96 to 99 %), at least 95 % asked; coverage 12 %; 1,200 samples"
    )
    assert wording.anchored(a) == [0, 2]
    assert wording.detail(a) == ""
    exact = made("not so bad", detail={**ANCHOR, "anchor": [1], "exact": True, "samples": None})
    assert wording.anchor(exact).startswith(
        "IF “so” stays THEN the prediction is good: precision 98 % exactly"
    )
    assert "anything at all stays" in wording.anchor(
        made("not so bad", detail={**ANCHOR, "anchor": []})
    )
    assert (
        wording.anchored(made("bad", detail={"anchor": [7]})) == []
    )  # of another text: nothing is marked


def test_what_else_a_method_tells():
    assert (
        wording.detail(made("a b", detail=SAMPLED))
        == "1,000 samples, 812 of them distinct; estimator surrogate; R² 0.934"
    )
    assert wording.detail(made("a b", detail={"windows": 3, "curve": [1, 2]})) == "windows 3"
    assert wording.detail(made("a b")) == ""


def test_costs_name_what_the_memory_saved():
    assert (
        wording.cost(Cost(1000, 0, 0.5, saved=212))
        == "1,000 forward (212 more from memory), 0 backward, 500 ms"
    )
    assert "memory" not in wording.cost(Cost(1, 1, 0.5))


def test_standard_errors_have_one_format():
    a = made("a b c", scores=[1.0, 2.0, 3.0], error=Error(np.array([0.12, 0.003, np.nan])))
    assert wording.spread(a) == ["± 0.120", "± 0.003", "± ?"]
    assert wording.spread(made("a b")) is None
