"""Evidence in words: a verdict has its share and its p beside it, and what has none says so."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import whence.views
from tests.views.conftest import ANCHOR, NO_VERDICT, OWN, SAMPLED, evidence_for, made
from whence.core.answer import answer
from whence.core.attribution import Cost, Error
from whence.core.evidence import CURVES, Evidence, Verdict
from whence.views import verdicts, wording
from whence.views.answering import answer_sentences

TEXT = "the food is great but the service is not bad"


def single(a):
    return answer({"occlusion": a})


def judged(**more):
    scores = np.linspace(1, -1, 10)
    return made(TEXT, scores=scores, evidence=replace(evidence_for(scores), **more))


def test_the_words_of_a_verdict_are_spelt_in_core_only():
    folder = Path(whence.views.__file__).parent
    sources = [*folder.rglob("*.py"), *folder.rglob("*.js"), *folder.rglob("*.css")]
    assert len(sources) > 20
    for path in sources:
        code = re.sub(r'"""(.*?)"""', "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for verdict in Verdict:
            assert str(verdict) not in code, path


def test_a_verdict_is_told_with_share_interval_and_p():
    a = judged(verdict=Verdict.BETTER, value=0.98, interval=(0.92, 1.0), p=0.0099)
    first, mask, delete = verdicts.lines(a)
    beats = "beats 98 % of random rankings on average (92 to 100 %), p = 0.0099"
    assert first == f"better than random: {beats}"
    trial = a.evidence.trial("mask")
    low, high = (f"{100 * end:.0f}" for end in trial.interval)
    beaten = f"{trial.beaten:.0%}".replace("%", " %")
    expected = rf"mask: [✓~✗] {trial.verdict}, {beaten} \({low} to {high} %\), p = 0\.\d+$"
    assert re.match(expected, mask)
    assert delete.startswith("delete: ")
    assert [v.removal for v in verdicts.by_removal(a)] == ["mask", "delete"]
    assert f"{trial.statistic:.3g}" not in " ".join(verdicts.lines(a))  # never a bare area


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_mean_over_removals_is_called_one_and_p_has_its_removal(verdict):
    """93 % stood beside p = 0.12, which is that of 90 %: the one is a mean, the other a maximum."""
    one, other = evidence_for(np.linspace(1, -1, 10)).trials
    of_both = {"p": 0.1188, "p_worse": 0.1188}
    one = replace(one, removal="delete", beaten=0.896, p=0.1188, p_worse=0.1188)
    other = replace(other, removal="pad", beaten=0.961, p=0.0693, p_worse=0.0693)
    a = judged(verdict=verdict, value=0.9285, trials=(one, other), **of_both)
    told = "beats 93 % of random rankings on average, p = 0.12"
    worse = " of worse" if verdict == Verdict.WORSE else ""
    assert verdicts.overall(a).without_interval() == f"{told}{worse} by delete"
    assert f"{told}{worse} by delete." in " ".join(answer_sentences(single(a)))
    same = replace(other, beaten=0.896, p=0.1188, p_worse=0.1188)
    a = judged(verdict=verdict, value=0.896, trials=(one, same), **of_both)
    told = f"beats 90 % of random rankings, p = 0.12{worse}"
    assert verdicts.overall(a).without_interval() == told
    assert f"{told}." in " ".join(answer_sentences(single(a)))


@pytest.mark.parametrize(
    ("verdict", "mark", "kind"),
    [
        (Verdict.BETTER, "✓", "better"),
        (Verdict.SAME, "~", "unclear"),
        (Verdict.WORSE, "✗", "worse"),
        (None, "–", "none"),
    ],
)
def test_marks_are_read_without_colour(verdict, mark, kind):
    ruling = verdicts.overall(judged(verdict=verdict, value=0.5, p=0.0004, p_worse=0.0004))
    assert (ruling.mark, ruling.kind) == (mark, kind)
    assert ruling.cell() == f"{mark}  50 % <.001"
    assert ruling.sentence().startswith(f"{verdict or 'no verdict'}: beats 50 %")


def test_short_words_are_the_verdict_without_random():
    words = [verdicts.overall(judged(verdict=verdict)).few_words for verdict in (*Verdict, None)]
    assert words == ["better", "not separable", "worse", "no verdict"]


def test_words_that_a_file_may_hold_cannot_act():
    bad = "<b>\x1b[31m"
    evidence = evidence_for(np.linspace(1, -1, 10))
    trial = replace(evidence.trials[0], removal=bad)
    own = replace(OWN, measure=bad)
    a = judged(trials=(trial,), note=bad, own=own)
    assert len(verdicts.lines(a)) == 4
    assert "\x1b" not in "".join(verdicts.lines(a))
    assert "\x1b" not in "".join(verdicts.removal_names([a]))


def test_the_arbiters_own_evidence_is_no_share_of_rankings():
    a = made(TEXT, evidence=OWN)
    assert verdicts.by_removal(a) == []  # its trial is none against rankings
    assert verdicts.overall(a).mark == "~"
    assert verdicts.overall(a).beaten is None
    assert verdicts.lines(a) == [
        "correlation with held-out removals 0.22 (random: -0.41 to 0.40): not separable from random"
    ]
    both = judged(own=OWN)
    assert verdicts.lines(both)[-1].startswith("its own: correlation with held-out removals 0.22")
    assert len(verdicts.lines(both)) == 4


def test_without_a_verdict_the_reason_is_told_and_without_evidence_nothing():
    assert verdicts.lines(made(TEXT, evidence=NO_VERDICT)) == ["too few units for a verdict"]
    assert verdicts.lines(made(TEXT)) == []
    assert verdicts.overall(made(TEXT)) is None


def test_the_best_evidence_comes_first_and_the_rest_keeps_its_order():
    def a(name, verdict, value):
        return made(TEXT, name, evidence=Evidence(CURVES, verdict, value))

    every = [
        made(TEXT, "none"),
        a("worse", Verdict.WORSE, 0.01),
        a("low", Verdict.SAME, 0.4),
        a("high", Verdict.SAME, 0.9),
        made(TEXT, "also-none"),
        a("better", Verdict.BETTER, 0.97),
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
        == "1,000 forward (212 more from memory), 0 backward, under a second"
    )
    assert "memory" not in wording.cost(Cost(1, 1, 0.5))


def test_standard_errors_have_one_format():
    a = made("a b c", scores=[1.0, 2.0, 3.0], error=Error(np.array([0.12, 0.003, np.nan])))
    assert wording.spread(a) == ["± 0.120", "± 0.003", "± ?"]
    assert wording.spread(made("a b")) is None
