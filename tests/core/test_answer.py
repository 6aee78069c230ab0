"""The answer never claims what the evidence does not carry: synthetic comparisons, and real ones.

All random, all agreeing, two camps, signed and unsigned, ties.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import whence
from tests.families import build
from whence.core.answer import (
    MOST_NAMED,
    Answer,
    Naming,
    answer,
    best_supported,
    binomial_tail,
)
from whence.core.attribution import Attribution, Cost, Error
from whence.core.comparison import Comparison
from whence.core.evidence import CURVES, NOTHING_RANKED, Evidence, Trial, Verdict
from whence.core.provenance import Provenance
from whence.core.target import Target
from whence.core.units import Units
from whence.metrics.evidence import control
from whence.metrics.evidence import evidence as metrics_evidence
from whence.models.load import load
from whence.views import wording
from whence.views.answering import answer_cautions, answer_sentences, in_short
from whence.views.verdicts import short_p
from whence.views.wording import p_value

WORDS = ("the ", "plot ", "is ", "not ", "bad ", "but ", "the ", "end ", "is ", "fine")
NOT, BAD, BUT, FINE = 3, 4, 5, 9
NOWHERE = Provenance(
    model="toy",
    architecture="Toy",
    fingerprint="",
    revision="",
    dtype="float32",
    device="cpu",
    attention="",
    versions={},
)


def evidence(
    verdict: Verdict | None, p: float = 0.5, by: tuple[Verdict, ...] = (), rankings: int = 100
) -> Evidence:
    trials = tuple(
        Trial(removal, one, statistic=0.0, random_low=0.0, random_high=0.0, beaten=1 - p, p=p)
        for removal, one in zip(("mask", "delete"), by, strict=False)
    )
    return Evidence(
        CURVES, verdict, value=1 - p, p=p, rankings=rankings, trials=trials, question="support"
    )


BETTER = evidence(Verdict.BETTER, 0.01)
SAME = evidence(Verdict.SAME)
WORSE = evidence(Verdict.WORSE, 0.99)


def scored(method: str, scores: dict[int, float], judged: Evidence | None, **facts) -> Attribution:
    units = Units("word", facts.pop("words", WORDS))
    values = np.zeros(len(units))
    for unit, score in scores.items():
        values[unit] = score
    known = {
        "passage": None,
        "units": units,
        "scores": values,
        "target": Target("positive", index=1),
        "value": 1.0,
        "method": method,
        "version": 1,
        "settings": {},
        "seed": 0,
        "signed": True,
        "cost": Cost(),
        "provenance": NOWHERE,
        "evidence": judged,
        "prediction": {"positive": 0.9, "negative": 0.1},
    }
    return Attribution(**(known | facts))


def compared(*attributions: Attribution) -> Comparison:
    return Comparison({a.method: a for a in attributions}, Cost())


def words(comparison: Comparison) -> str:
    return " ".join(answer_sentences(comparison.answer))


def cautions(comparison: Comparison) -> str:
    return " ".join(answer_cautions(comparison.answer))


# ---------------------------------------------------------------------- all agreeing


def agreeing(judged: Evidence = BETTER, count: int = 4) -> list[Attribution]:
    return [
        scored(f"m{i}", {NOT: 2.0, FINE: 1.0 + i / 10, BUT: -1.0}, judged) for i in range(count)
    ]


def test_methods_that_hold_and_agree_name_their_words():
    c = compared(*agreeing())
    assert c.answer.names(c.answer.speaks_for) == ["not", "fine"]
    assert c.answer.names(c.answer.speaks_against) == ["but"]
    assert "“not” and “fine” speak for positive; “but” speaks against it." in words(c)
    assert (
        "All 4 methods tested beat random rankings; all 4 name all of these; they agree" in words(c)
    )
    assert "All 4 methods put “not” first." in words(c)
    assert "The model says positive (90.0 %)." in words(c)


def test_the_same_scores_without_evidence_name_nothing():
    for judged in (SAME, WORSE, None):
        c = compared(*(scored(a.method, {NOT: 2.0}, judged) for a in agreeing()))
        assert not c.answer.speaks_for
        assert "speak" not in words(c)
        assert c.answer.contested == ()
        if judged is not None:  # a fact, whatever the test says
            assert "All 4 methods put “not” first; that it is the reason is not shown" in words(c)


def test_only_the_methods_that_hold_have_a_voice():
    wrong = [scored(f"w{i}", {BAD: 5.0}, SAME) for i in range(5)]
    c = compared(*agreeing(), *wrong)
    assert c.answer.names(c.answer.speaks_for) == ["not", "fine"]
    assert "4 of the 9 methods tested beat random rankings; all 4 name all of these" in words(c)


def test_a_weak_or_uncertain_score_is_not_named():
    unsure = Error(np.where(np.arange(len(WORDS)) == FINE, 0.9, 0.01))
    c = compared(
        *(scored(f"m{i}", {NOT: 2.0, FINE: 1.0, BUT: -0.1}, BETTER, error=unsure) for i in range(3))
    )
    assert c.answer.names(c.answer.speaks_for) == ["not"]
    assert not c.answer.speaks_against


def test_a_repeated_word_says_which_one_it_is():
    c = compared(*(scored(f"m{i}", {6: 2.0}, BETTER) for i in range(3)))
    assert "“the (2)” speaks for positive" in words(c)


# ---------------------------------------------------------------------- all random


def test_one_of_twenty_is_what_chance_gives_and_names_nothing():
    others = [scored(f"r{i}", {i % 10: 1.0}, SAME) for i in range(19)]
    c = compared(scored("lucky", {NOT: 2.0}, evidence(Verdict.BETTER, 0.01)), *others)
    assert not c.answer.is_carried
    assert "No words can be named as the reason: taken together, the 20 methods" in words(c)
    alone = "1 of the 20 methods tested beats random rankings by itself, which chance can give"
    assert alone in words(c)
    assert in_short(c.answer) == "no more than chance"


def test_one_of_two_holds_if_it_is_good_enough_for_both():
    lone = scored("lime", {NOT: 2.0}, evidence(Verdict.BETTER, 0.01))
    assert compared(lone, scored("other", {BAD: 1.0}, SAME)).answer.is_carried
    barely = scored("lime", {NOT: 2.0}, evidence(Verdict.BETTER, 0.04))
    assert not compared(barely, scored("other", {BAD: 1.0}, SAME)).answer.is_carried


def test_two_methods_that_hold_by_themselves_hold_together():
    good = evidence(Verdict.BETTER, 0.03)
    c = compared(scored("one", {NOT: 2.0, BAD: 1.0}, good), scored("two", {BAD: 2.0}, good))
    assert c.answer.is_carried
    assert c.answer.names(c.answer.speaks_for) == ["bad"]


def test_methods_that_are_better_only_together_let_the_best_third_speak():
    almost = evidence(Verdict.SAME, 0.06)
    one = scored("one", {NOT: 2.0, 0: 0.3, 1: 0.2, 7: -0.3, 9: -0.2}, almost)
    two = scored("two", {NOT: 2.0, 7: 0.3, 9: 0.2, 0: -0.3, 1: -0.2}, almost)
    c = compared(one, two, scored("other", {FINE: 2.0, 2: 1.0}, SAME))
    assert c.answer.is_carried
    assert c.answer.holding == ()
    assert c.answer.voices == ("one", "two")
    assert c.answer.names(c.answer.speaks_for) == ["not"]
    assert "None of the 3 methods tested beats random rankings by itself, but together" in words(c)
    assert "of the best 2, both name it" in words(c)


@pytest.mark.slow
def test_of_independent_random_methods_at_most_one_text_in_twenty_names_a_word():
    rng = np.random.default_rng(0)
    texts, methods, named = 400, 21, 0
    for _ in range(texts):
        p_values = rng.integers(1, 102, methods) / 101
        every = []
        for i, p in enumerate(p_values):
            verdict = Verdict.BETTER if p <= 0.05 else Verdict.SAME
            scores = dict(enumerate(rng.normal(size=len(WORDS))))
            every.append(scored(f"r{i}", scores, evidence(verdict, float(p))))
        found = answer({a.method: a for a in every})
        named += bool(found.speaks_for or found.speaks_against or found.matters)
    assert named / texts <= 0.05


def test_the_binomial_tail_is_scipy_s():
    from scipy.stats import binom

    for tries in (1, 5, 21):
        for successes in range(tries + 1):
            expected = binom.sf(successes - 1, tries, 0.05)
            assert binomial_tail(tries, successes, 0.05) == pytest.approx(expected, abs=1e-12)


# ---------------------------------------------------------------------- two camps


def test_two_camps_name_no_contested_word_and_a_caution_says_so():
    one = [scored(f"a{i}", {NOT: 2.0, BAD: 1.5}, BETTER) for i in range(3)]
    other = [scored(f"b{i}", {NOT: 2.0, BAD: -1.5}, BETTER) for i in range(3)]
    c = compared(*one, *other)
    assert c.answer.names(c.answer.speaks_for) == ["not"]
    assert not c.answer.speaks_against
    assert [c.answer.units[contest.unit] for contest in c.answer.contested] == ["bad"]
    assert "contradict each other on “bad”: it speaks for positive by a0, a1, a2" in cautions(c)


def test_one_dissenter_among_six_contests_nothing():
    many = [scored(f"a{i}", {NOT: 2.0, BAD: 1.5}, BETTER) for i in range(5)]
    c = compared(*many, scored("b", {NOT: 2.0, BAD: -1.5}, BETTER))
    assert c.answer.names(c.answer.speaks_for) == ["not", "bad"]
    assert not c.answer.contested


def test_methods_that_hold_and_share_no_word_name_none():
    c = compared(*(scored(f"m{i}", {i: 2.0}, BETTER) for i in range(5)))
    assert not c.answer.speaks_for
    assert "do not name the same words" in words(c)
    assert "hardly agree" in words(c)
    assert "rank the words differently" in cautions(c)


def test_one_of_five_against_it_is_not_called_the_same_words_for_opposite_sides():
    """Four methods name nothing that the fifth is against: they do not say the opposite of it."""
    every = [scored(f"m{i}", {i: 2.0}, BETTER) for i in range(3)]
    every += [scored("for", {NOT: 2.0}, BETTER), scored("against", {NOT: -2.0, 0: 0.1}, BETTER)]
    said = words(compared(*every))
    assert "opposite sides" not in said
    assert "contradict each other on “not”: 1 has it on one side and 1 on the other" in said


def test_a_list_of_which_no_method_names_all_is_not_what_most_say():
    pairs = ({NOT: 2.0, FINE: 1.9}, {NOT: 2.0, BUT: 1.9}, {FINE: 2.0, BUT: 1.9})
    c = compared(*(scored(f"m{i}", scores, BETTER) for i, scores in enumerate(pairs)))
    assert len(c.answer.speaks_for) == 3
    said = words(c)
    assert "each of the 3 words is named by at least 2 of the 3, and none names them all" in said


def test_of_ten_that_hold_two_with_signs_say_what_they_name():
    unsigned = [scored(f"u{i}", {NOT: 2.0, 1: 0.1 * i}, BETTER, signed=False) for i in range(8)]
    signed = [scored(f"s{i}", {NOT: 2.0, BAD: 1.0 + i}, BETTER) for i in range(2)]
    said = words(compared(*unsigned, *signed))
    assert "All 10 methods tested beat random rankings; 2 of these tell for from against" in said
    assert "both name all of these" in said
    assert "10 of the 10" not in said


def test_the_agreement_that_is_told_is_of_those_who_are_said_to_agree():
    """Two with signs agree fully, and the ten that hold do not: the number is that of the ten."""
    scores = [{NOT: 2.0, BAD: 1.0}, {NOT: 2.0, BAD: 1.0}]
    signed = [scored(f"s{i}", each, BETTER) for i, each in enumerate(scores)]
    unsigned = [scored(f"u{i}", {i: 2.0, NOT: 1.0}, BETTER, signed=False) for i in range(8)]
    c = compared(*signed, *unsigned)
    of_all, of_two = c.agreement().pairs, compared(*signed).agreement().pairs
    assert c.answer.agreement == pytest.approx(np.mean([r for _, _, r in of_all]))
    assert c.answer.agreement < 0.7 < np.mean([r for _, _, r in of_two])
    assert "; all 10 " in words(c)
    assert "they" not in words(c)


def test_where_they_hold_only_together_the_voices_are_counted_among_the_best_third():
    """Who tells for from against is no part of all that were tested."""
    almost = evidence(Verdict.SAME, 0.06)
    one = scored("one", {NOT: 2.0, 0: 0.3, 1: 0.2, 7: -0.3, 9: -0.2}, almost)
    two = scored("two", {NOT: 2.0, 7: 0.3, 9: 0.2, 0: 0.1, 1: 0.1}, almost, signed=False)
    c = compared(one, two, scored("other", {FINE: 2.0, 2: 1.0}, SAME))
    assert (c.answer.is_carried, c.answer.holding, c.answer.voices) == (True, (), ("one",))
    said = "; the one of the best 2 that tells for from against says so; the best 2 "
    assert said in words(c)

    three = replace(c.answer, voices=("one", "x"), speaking=3, naming=Naming(every=2, fewest=2))
    said = " ".join(answer_sentences(three))
    assert "; 2 of the best 3 tell for from against: both name it; the best 3 " in said


def test_a_word_that_voices_cancel_is_not_named():
    """Two of three name it by a fifth of their largest, and the third is against it, unnamed."""
    two = [scored(f"m{i}", {NOT: 2.0, BAD: 0.41}, BETTER) for i in range(2)]
    third = scored("m2", {NOT: 2.0, BAD: -0.39}, BETTER)
    c = compared(*two, third)
    assert c.answer.names(c.answer.speaks_for) == ["not"]


# ---------------------------------------------------------------------- what the test can see

SHORT = ("a ", "dull ", "and ", "tired ", "film")


def short(method: str, p: float, scores: tuple[float, ...], **facts) -> Attribution:
    verdict = Verdict.BETTER if p <= 0.05 else Verdict.SAME
    return scored(method, dict(enumerate(scores)), evidence(verdict, p, **facts), words=SHORT)


def test_on_five_words_nine_methods_that_put_the_same_word_first_are_not_told_nothing():
    p_values = (0.04, 0.05, 0.04, 0.3, 0.3, 0.4, 0.2, 0.3, 0.2)
    rng = np.random.default_rng(1)
    every = []
    for i, p in enumerate(p_values):
        scores = rng.normal(size=5)
        scores[1] = -9.0
        every.append(short(f"m{i}", p, tuple(scores)))
    said = words(compared(*every))
    assert "All 9 methods put “dull” first" in said
    assert "No words can be named" not in said


def test_a_test_that_could_see_nothing_says_so():
    """Of six orders none is rare."""
    few = ("not ", "bad ", "really")
    for judged in (evidence(Verdict.SAME, 0.5, rankings=6), evidence(Verdict.SAME, 1 / 6)):
        scores = {0: 3.0, 1: 2.0, 2: 1.0}
        six = Evidence(CURVES, Verdict.SAME, value=0.9, p=judged.p, rankings=6, question="support")
        c = compared(*(scored(f"m{i}", scores, six, words=few) for i in range(9)))
        assert not c.answer.could_see
        assert c.answer.outcome == "cannot be seen"
        assert "All 9 methods put “not” first" in words(c)
        assert "this text is too short to test it" in words(c)
        assert "random rankings by themselves" not in words(c)
        assert in_short(c.answer) == "cannot be tested; 9 of 9 put “not” first"


def test_a_test_that_could_see_it_says_that():
    every = [scored(f"m{i}", {i: 2.0, i + 1: 1.0}, SAME) for i in range(6)]
    c = compared(*every)
    assert c.answer.could_see
    assert c.answer.outcome == "no more than chance"
    assert "cannot be told from random rankings (p =" in words(c)
    assert "The test could have seen more: the best rankings would have p" in words(c)
    stored = c.answer.to_dict()
    assert stored["outcome"] == "no more than chance"
    assert stored["smallest_p_together"] < 0.05 < stored["p_together"]


def test_what_most_methods_put_first_is_told_with_what_is_named():
    for first in (NOT, BAD):
        c = compared(*(scored(f"m{i}", {first: 2.0, FINE: 1.0}, BETTER) for i in range(3)))
        assert c.answer.agreed is not None
        assert c.answer.units[c.answer.agreed.unit] == WORDS[first].strip()
        assert (c.answer.agreed.methods, c.answer.agreed.those_for) == (3, 3)
        assert c.answer.to_dict()["put_first"]["unit"] == WORDS[first].strip()
        assert f"All 3 methods put “{WORDS[first].strip()}” first" in words(c)


# ---------------------------------------------------------------------- signed and unsigned


def test_methods_without_signs_say_what_matters_and_nothing_of_for_and_against():
    every = [scored(f"u{i}", {BUT: 2.0, NOT: 1.0}, BETTER, signed=False) for i in range(3)]
    c = compared(*every)
    assert c.answer.names(c.answer.matters) == ["but", "not"]
    assert "“but” and “not” matter most for positive." in words(c)
    assert "speak" not in words(c)


def test_where_some_have_signs_those_alone_say_for_and_against():
    unsigned = [scored(f"u{i}", {BUT: 2.0}, BETTER, signed=False) for i in range(3)]
    c = compared(*unsigned, scored("s", {NOT: 2.0}, BETTER))
    assert c.answer.names(c.answer.speaks_for) == ["not"]
    assert not c.answer.matters


# ---------------------------------------------------------------------- ties


def test_tied_scores_name_nothing():
    flat = [scored(f"m{i}", dict.fromkeys(range(10), 1.0), BETTER) for i in range(3)]
    assert not compared(*flat).answer.speaks_for


@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0]), min_size=10, max_size=10),
            st.sampled_from([BETTER, SAME, WORSE, None]),
            st.booleans(),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_whatever_comes_in_the_rules_hold(given_methods):
    every = [
        scored(f"m{i}", dict(enumerate(scores)), judged, signed=signed)
        for i, (scores, judged, signed) in enumerate(given_methods)
    ]
    found = compared(*every).answer
    holding = [a for a in every if a.evidence is BETTER]
    assert list(found.holding) == [a.method for a in holding]
    assert set(found.speaks_for).isdisjoint(found.speaks_against)
    assert len(found.speaks_for) <= MOST_NAMED

    contested = {contest.unit for contest in found.contested}
    for unit in found.speaks_for + found.speaks_against + found.matters:
        assert unit not in contested
    if len(every) > 1:
        for unit in found.speaks_for:
            in_favour = [a for a in holding if a.signed and a.scores[unit] > 0]
            assert len(in_favour) > len([a for a in holding if a.signed]) / 2
        for unit in found.speaks_against:
            opposed = [a for a in holding if a.signed and a.scores[unit] < 0]
            assert len(opposed) > len([a for a in holding if a.signed]) / 2
        if not found.is_carried:
            assert found.speaks_for == found.speaks_against == found.matters == ()
    json.dumps(found.to_dict())


@settings(max_examples=30)
@given(st.text(min_size=1, max_size=8))
def test_any_text_can_be_a_word_of_the_answer(word):
    names = (word, *WORDS[1:])
    c = compared(*(scored(f"m{i}", {0: 2.0}, BETTER, words=names) for i in range(3)))
    sentence = " ".join(answer_sentences(c.answer))
    assert "\x1b" not in sentence
    assert "\n" not in sentence


# ---------------------------------------------------------------------- what else it says


def test_attention_is_told_with_its_verdict():
    attention = {"attention-mean": {BAD: 3.0, 1: 2.0, 7: 1.0}}
    for judged, said in (
        (SAME, "cannot be told from random rankings, so do not rely on it"),
        (WORSE, "that is worse than random: do not believe it"),
        (BETTER, "beats random rankings, and the answer names none of these"),
        (None, "that was not tested"),
    ):
        ((name, scores),) = attention.items()
        c = compared(*agreeing(), scored(name, scores, judged, signed=False))
        assert "would have named “bad”, “plot” and “end”" in words(c)
        assert said in words(c)


def test_a_removal_that_decides_is_a_caution():
    by = (Verdict.BETTER, Verdict.SAME)
    c = compared(*agreeing(), scored("occlusion", {NOT: 1.0}, evidence(Verdict.SAME, 0.08, by)))
    assert "occlusion (better than random by mask, not by delete)" in cautions(c)


def test_a_short_text_is_a_caution():
    three = [scored(f"m{i}", {0: 1.0}, SAME, words=("not ", "bad ", "really")) for i in range(2)]
    assert "3 words have only 6 orders, too few to test a ranking." in words(compared(*three))
    assert cautions(compared(*three)) == ""
    four = [scored(f"m{i}", {0: 1.0}, SAME, words=("not ", "bad ", "at ", "all")) for i in range(2)]
    assert "4 words have only 24 orders, so the test is coarse" in cautions(compared(*four))


def test_fewer_rankings_than_usual_are_said():
    few = evidence(Verdict.BETTER, 0.025, rankings=39)
    untied = {unit: unit / 100 for unit in range(10)} | {NOT: 2.0}
    c = compared(*(scored(f"m{i}", untied, few) for i in range(3)))
    assert "there were 39 random rankings, not 100 as usual" in cautions(c)


def test_a_control_that_is_called_better_is_a_caution_and_never_a_method():
    c = compared(*agreeing(), scored("random", {1: 1.0}, BETTER, signed=False))
    assert c.answer.methods == 4
    assert "even random scores were called better than random" in cautions(c)


def test_another_label_and_a_near_second_one_are_said():
    near = {"positive": 0.51, "negative": 0.49}
    asked = Target("negative", index=0)
    c = compared(
        *(scored(f"m{i}", {NOT: 2.0}, BETTER, target=asked, prediction=near) for i in range(3))
    )
    assert "says positive (51 %), hardly more than negative (49 %)" in words(c)
    assert "Explained is another label, negative." in words(c)
    assert "“not” speaks for negative" in words(c)


def test_the_word_that_is_tagged_is_named():
    tag = Target("B-LOC", index=1, at=3, word="Paris")
    said = {"B-LOC": 0.9, "O": 0.1}
    c = compared(*(scored(f"m{i}", {1: 2.0}, BETTER, target=tag, prediction=said) for i in (0, 1)))
    assert words(c).startswith("The model says B-LOC of the word “Paris” (90.0 %).")


def test_a_regression_has_no_prediction_to_tell():
    c = compared(*(scored(f"m{i}", {NOT: 2.0}, BETTER, prediction={}) for i in range(3)))
    assert words(c).startswith("The model gives 1 for positive.")


# ---------------------------------------------------------------------- one method


def test_one_method_tells_its_words_and_then_its_verdict():
    a = scored("lime", {NOT: 2.0, BUT: -1.0}, evidence(Verdict.BETTER, 0.01))
    said = answer_sentences(a.answer)
    assert said[1] == "By lime, “not” speaks for positive; “but” speaks against it."
    assert said[2].startswith("The ranking by lime is better than random: it beats 99 % of")
    untested = " ".join(answer_sentences(scored("lime", {NOT: 2.0}, None).answer))
    assert "It was not tested against random rankings" in untested


def test_one_method_that_does_not_hold_says_so_before_it_names_a_word():
    for verdict in (Verdict.SAME, Verdict.WORSE):
        a = scored("lime", {NOT: 2.0, BUT: -1.0}, evidence(verdict, 0.5))
        said = answer_sentences(a.answer)
        assert said[1].startswith(f"The ranking by lime is {verdict}")
        assert said[2].startswith("It would say that “not” speaks for positive")
        assert not a.answer.is_carried


def test_methods_without_signs_have_no_voice_on_for_and_against():
    unsigned = [scored(f"u{i}", {NOT: 2.0, BUT: 1.0}, BETTER, signed=False) for i in range(4)]
    c = compared(*unsigned, scored("s", {NOT: 2.0, BUT: 1.0}, BETTER))
    assert c.answer.voices == ("s",)
    assert "All 5 methods tested beat random rankings; the one of these that tells" in words(c)


def test_an_anchor_is_rounded_down_and_names_its_removal():
    detail = {"anchor": [NOT], "holds": True, "precision": 1.0, "interval": [0.957, 1.0]}
    facts = {"detail": detail, "settings": {"removal": "mask"}, "signed": False}
    a = scored("anchors", {NOT: 1.0}, SAME, **facts)
    said = answer_sentences(a.answer)[1]
    assert said == (
        "If “not” stays, while other words are masked at random, "
        "the model says positive in at least 95 % of trials."
    )


def anchored(units: list[int], **facts) -> Attribution:
    detail = {"anchor": units, "holds": True, "precision": 1.0, "interval": [1.0, 1.0]}
    given = {"detail": detail | {"exact": True}, "settings": {"removal": "mask"}, "signed": False}
    return scored("anchors", dict.fromkeys(units, 1.0), SAME, **(given | facts))


def test_an_anchor_of_several_labels_keeps_the_highest_which_the_model_may_not_say():
    """None of the labels reaches one half: the model says none, with or without the anchor."""
    several = {"prediction": {"positive": 0.2, "negative": 0.1}, "several_labels": True}
    for units, begins in (([NOT], "If “not” stays, w"), ([], "W")):
        a = anchored(units, **several)
        other = "other " if units else ""
        what = f"hichever {other}words are masked, positive stays the highest label."
        said = answer_sentences(compared(a, scored("m", {NOT: 1.0}, SAME, **several)).answer)
        assert said[0] == "The model says none of its labels; highest is positive (20 %)."
        assert begins + what in said
        assert begins + what in answer_sentences(a.answer)
        assert not any("the model says" in sentence for sentence in said)
        assert "THEN the highest label is positive" in wording.anchor(a)


def test_an_anchor_of_all_words_has_no_other_words_beside_it():
    whole = anchored([0], words=("dull",))
    said = answer_sentences(whole.answer)
    assert "Nothing less than the whole text was found to keep positive." in said
    together = compared(whole, scored("m", {0: 1.0}, None, words=("dull",)))
    for sentence in (*said, *answer_sentences(together.answer)):
        assert "other words" not in sentence


def test_attention_never_singles_out_all_words_of_a_text():
    """Of one word there is nothing to say, of three it may name two."""
    for count, named in ((1, None), (2, ["a"]), (3, ["a", "b"]), (5, ["a", "b", "c"])):
        given = tuple("abcde"[:count])
        scores = {i: 9.0 - i for i in range(count)}
        facts = {"words": given, "signed": False}
        c = compared(
            scored("attention-mean", scores, SAME, **facts), scored("other", scores, SAME, **facts)
        )
        says = c.answer.attention
        assert (None if says is None else c.answer.names(says.units)) == named
        assert ("Attention alone" in words(c)) == (named is not None)


def test_a_control_alone_explains_nothing():
    a = scored("random", {NOT: 1.0}, SAME, signed=False)
    assert "Random scores are a control and explain nothing." in answer_sentences(a.answer)


# ---------------------------------------------------------------------- the best-supported method


def test_the_text_is_coloured_by_the_best_evidence():
    weak = scored("weak", {NOT: 1.0}, evidence(Verdict.BETTER, 0.05))
    strong = scored("strong", {NOT: 1.0}, evidence(Verdict.BETTER, 0.01), signed=False)
    signed = scored("signed", {NOT: 1.0}, evidence(Verdict.BETTER, 0.01))
    unclear = scored("unclear", {NOT: 1.0}, evidence(Verdict.SAME, 0.06))
    every = {a.method: a for a in (unclear, weak, strong, signed)}
    assert best_supported(every) == "signed"
    assert best_supported({k: every[k] for k in ("unclear", "weak", "strong")}) == "strong"
    assert best_supported({k: every[k] for k in ("unclear", "weak")}) == "weak"


# ---------------------------------------------------------------------- on a real model


@pytest.fixture(scope="module")
def real() -> Comparison:
    # nine words have 512 masks, whatever asks for them; three methods hold, and two words are named
    text = "a dull and lifeless film with a wonderful cast"
    methods = ["occlusion", "gradient-x-input", "gradient-l2", "attention-mean", "random"]
    return whence.compare(whence.load("sentiment"), text, methods)


def test_the_answer_is_first_in_json_and_drawn_anew_on_reading(real, tmp_path):
    stored = json.loads(real.save(tmp_path / "c.json").read_text(encoding="utf-8"))
    assert list(stored)[2] == "answer"
    assert stored["answer"]["sentences"] == answer_sentences(real.answer)
    again = whence.read(tmp_path / "c.json")
    assert isinstance(again, Comparison)
    assert again.answer == real.answer


def test_every_named_word_is_named_by_most_methods_that_hold(real):
    found: Answer = real.answer
    holding = [real[name] for name in found.holding]
    assert all(a.evidence is not None and a.evidence.verdict == Verdict.BETTER for a in holding)
    assert found.speaks_for
    for unit in found.speaks_for:
        assert sum(a.scores[unit] > 0 for a in holding) > len(holding) / 2


# ---------------------------------------------------------------------- several labels, or none


LOW = {"threat": 0.27, "toxic": 0.2, "insult": 0.1}


def of_labels(prediction: dict[str, float], told: bool = True, **facts) -> Comparison:
    facts = {"target": Target(next(iter(prediction)), index=0)} | facts
    return compared(
        *(
            scored(f"m{i}", {NOT: 2.0}, BETTER, prediction=prediction, several_labels=told, **facts)
            for i in range(3)
        )
    )


def test_a_model_of_several_labels_none_of_which_holds_says_none():
    """Would catch "says threat (27 %)": the model says no to threat as well."""
    c = of_labels(LOW)
    assert "The model says none of its labels; highest is threat (27 %)." in words(c)
    assert "says threat" not in words(c)
    assert "speaks for threat" in words(c)
    other = of_labels(LOW, target=Target("toxic", index=1))
    assert "highest is threat (27 %). Explained is toxic." in words(other)


@pytest.mark.parametrize("most", [0.4999, 0.5, 0.51, 0.99])
def test_a_label_holds_from_one_half_on(most):
    c = of_labels({"toxic": most, "threat": 0.001})
    assert ("none of its labels" in words(c)) == (most < 0.5)
    assert c.first.labels_that_hold == (("toxic",) if most >= 0.5 else ())


def test_sums_decide_only_where_the_file_does_not_tell():
    """Three labels of 0.3 are no distribution, and of 0.4 neither: the task knows, the sum not."""
    high = {"toxic": 0.9, "insult": 0.7}
    assert "and also insult (70 %)" in words(of_labels(high, told=False))  # as before
    assert "The model says threat (27 %)" in words(of_labels(LOW, told=False))
    assert "none of its labels" in words(of_labels(LOW))
    one = of_labels({"a": 0.4, "b": 0.35, "c": 0.2505}, told=False)
    assert one.first.labels_that_hold is None  # rounding is no second label


def test_that_several_labels_may_hold_is_stored_and_files_of_before_are_read():
    a = of_labels(LOW).first
    stored = a.to_dict()
    assert stored["several_labels"] is True
    assert Attribution.from_dict(json.loads(json.dumps(stored))).labels_that_hold == ()
    del stored["several_labels"]
    assert Attribution.from_dict(stored).labels_that_hold is None
    assert "several_labels" not in of_labels(LOW, told=False).first.to_dict()


def test_the_task_is_asked():
    hf = build("bert").hf
    hf.config.problem_type = "multi_label_classification"
    with torch.no_grad():
        hf.classifier.weight.zero_()
        hf.classifier.bias.copy_(torch.tensor([-1.0, -2.0, -3.0]))  # .27, .12, .05
    model = load(hf, tokenizer=build("bert").tokenizer)
    a = whence.explain(model, "not bad at all", "gradient-l2", evidence=False)
    assert a.several_labels
    assert a.labels_that_hold == ()
    assert "The model says none of its labels; highest is bad (27 %)." in str(a.answer)


# ---------------------------------------------------------------------- counts and their words

UNRANKED = Evidence(CURVES, None, question="support", rankings=100, note=NOTHING_RANKED[1])
RANKED = {NOT: 2.0, BUT: -1.0}


def test_one_method_tested_beside_one_that_ranks_nothing_is_not_all_1_methods():
    """Would catch "All 1 methods tested beat" and "None of the 1 methods tested beats"."""
    flat = scored("flat", {}, UNRANKED)
    said = words(compared(scored("lime", RANKED, BETTER), flat))
    assert "The one method tested beats random rankings; it says so: lime." in said
    said = words(compared(scored("lime", RANKED, SAME), flat))
    assert "The one method tested does not beat random rankings." in said
    assert "the one method that ranks them cannot be told from random rankings (p =" in said


def test_of_two_methods_neither_is_tested_or_better():
    pair = [scored(name, RANKED, None) for name in ("lime", "occlusion")]
    assert "Neither of the 2 methods was tested" in words(compared(*pair))
    pair = [scored(name, RANKED, SAME) for name in ("lime", "occlusion")]
    assert "Neither of the 2 methods tested beats random rankings by itself" in words(
        compared(*pair)
    )


def test_methods_that_put_a_word_first_for_opposite_sides_do_not_just_agree():
    one, other = scored("one", {BAD: 2.0}, SAME), scored("other", {BAD: -2.0}, SAME)
    said = words(compared(one, other))
    first = "Both methods put “bad” first, though 1 says that it speaks for positive and 1 that it"
    assert f"{first} speaks against it; that it is the reason is not shown" in said


def test_methods_that_were_not_tested_are_not_among_all_that_put_it_first():
    untested = scored("untested", {FINE: 1.0}, None)
    assert "All 4 methods tested put “not” first." in words(compared(*agreeing(), untested))


def test_methods_that_are_worse_can_be_told_from_random_rankings():
    every = [scored(f"m{i}", {NOT: 2.0, i: 0.5}, WORSE) for i in range(3)]
    said = words(compared(*every))
    assert "cannot be told from random rankings" not in said
    assert "taken together, the 3 methods are not better than random rankings (p =" in said


def test_who_agrees_is_who_was_compared():
    """The correlation is of all whose votes were counted, and "they" would be the last named."""
    unsigned = [scored(f"u{i}", {NOT: 2.0, BUT: 1.0}, BETTER, signed=False) for i in range(3)]
    signed = [scored(f"s{i}", {NOT: 2.0, BUT: 1.0}, BETTER) for i in range(2)]
    said = words(compared(*unsigned, *signed))
    assert "2 of these tell for from against: both name all of these; all 5 agree closely" in said


def test_signs_of_an_entropy_do_not_tell_for_from_against():
    target = Target("positive", index=1, read="entropy")
    unsigned = [scored(f"u{i}", {NOT: 2.0}, BETTER, signed=False, target=target) for i in range(2)]
    said = words(compared(*unsigned, scored("s", {NOT: 2.0}, BETTER, target=target)))
    assert "the one of these that tells less sure from more sure says so" in said
    assert "for from against" not in said


def test_an_answer_with_more_words_does_not_name_the_same_as_attention():
    attention = scored("attention-mean", {NOT: 2.0}, BETTER, signed=False)
    said = words(compared(*agreeing(), attention))
    assert "would have named “not”; that beats random rankings, and the answer names it too" in said


def test_methods_that_name_nothing_do_not_name_different_words():
    unsure = Error(np.full(len(WORDS), 9.0))
    every = [scored(f"m{i}", {NOT: 2.0, i: 0.5}, BETTER, error=unsure) for i in range(3)]
    said = words(compared(*every))
    assert "The methods that beat random rankings let no words stand out." in said
    assert in_short(compared(*every).answer) == "no words stand out"


def test_equal_probabilities_are_as_likely_and_a_label_that_holds_too_is_no_other_one():
    even = {"positive": 0.5, "negative": 0.5}
    said = words(compared(*(scored(f"m{i}", RANKED, BETTER, prediction=even) for i in range(2))))
    assert "says positive (50 %); as likely is negative (50 %)." in said
    both = of_labels({"toxic": 0.9, "insult": 0.7}, target=Target("insult", index=1))
    assert "and also insult (70 %). Explained is insult." in words(both)


def test_a_ranking_of_tokens_is_not_one_of_words():
    detail = {"anchor": [0], "holds": True, "precision": 1.0, "interval": [0.96, 1.0]}
    a = scored("anchors", RANKED, SAME, units=Units("token", WORDS), detail=detail)
    assert "As a ranking of all tokens it is not separable" in " ".join(answer_sentences(a.answer))


@pytest.mark.parametrize("p", [0.0501, 0.0504, 0.05000001, 0.05, 5 / 99.5])
def test_a_p_beside_the_level_is_shown_on_its_side(p):
    """p = 0.0502 was shown as 0.05, beside a verdict that 0.05 would not have."""
    for shown in (p_value(p).removeprefix("p = "), short_p(p)):
        is_small = not shown.startswith(("p >", ">")) and float(shown) <= 0.05
        assert is_small == (p <= 0.05)


# ---------------------------------------------------------------------- the p that is told


def test_the_p_of_a_ranking_that_is_worse_is_that_of_worse():
    """Beside "worse" stood p = 0.99: that a random ranking does as well is no news then."""
    judged = replace(evidence(Verdict.WORSE, 0.99), value=0.01, p_worse=0.0099)
    said = " ".join(answer_sentences(answer({"m0": scored("m0", {NOT: 2.0}, judged)})))
    assert "worse than random: it beats 1 % of random rankings, p = 0.0099 of worse." in said
    assert "0.99 " not in said
    before = replace(judged, p_worse=None)  # a file of before: no p is better than the wrong one
    said = " ".join(answer_sentences(answer({"m0": scored("m0", {NOT: 2.0}, before)})))
    assert "it beats 1 % of random rankings." in said
    assert "p =" not in said


def test_a_ranking_has_both_p_values():
    game = whence.game(whence.load("sentiment"), "a truly wonderful and moving film")
    good = np.array([game.full - game(1 - np.eye(6))[i] for i in range(6)])
    judged = metrics_evidence(good, True, [control(game)])
    mirrored = metrics_evidence(-good, True, [control(game)])
    assert (judged.verdict, mirrored.verdict) == (Verdict.BETTER, Verdict.WORSE)
    assert judged.p is not None
    assert mirrored.p is not None
    assert mirrored.p_worse is not None
    assert judged.p_of_verdict == judged.p <= 0.05
    assert mirrored.p_of_verdict == mirrored.p_worse <= 0.05 < mirrored.p
    assert Evidence.from_dict(mirrored.to_dict()) == mirrored


# ---------------------------------------------------------------------- nothing ranked


@pytest.mark.parametrize("note", NOTHING_RANKED)
def test_where_nothing_is_ranked_no_share_is_told(note):
    nothing = Evidence(CURVES, None, question="support", rankings=100, steps=5, note=note)
    a = scored("m0", {}, nothing)
    said = " ".join(answer_sentences(answer({"m0": a})))
    assert f"Nothing could be tested: {note}." in said
    for shown in (said, a.to_text(full=True), a.to_html()):
        assert "beats 50 %" not in shown
        assert "p = 1" not in shown
    assert a.to_dict()["evidence"]["value"] is None


def test_files_of_before_do_not_say_fifty_per_cent_either():
    stored = scored("m0", {}, BETTER).to_dict()
    stored["evidence"] |= {
        "verdict": "not separable from random",
        "value": 0.5,
        "interval": [0.0, 1.0],
        "p": 1.0,
        "removals": {},
        "note": "all units have the same score, so nothing is ranked",
    }
    read = Attribution.from_dict(stored)
    assert read.evidence is not None
    assert read.evidence.ranks_nothing
    assert (read.evidence.verdict, read.evidence.value, read.evidence.p) == (None, None, None)
    assert "50 %" not in str(read.answer)


# ---------------------------------------------------------------------- tokens as labels


@pytest.mark.parametrize(
    ("name", "text", "at"),
    [
        ("writer", "The president spoke to the American", None),
        ("filler", "the film was great", "great"),
        ("translator", "they push the cow .", None),
    ],
)
def test_a_token_is_told_as_words_in_quotes(name, text, at):
    """``The model says . (6.4 %)``, and ``speaks for ' people'``: a token is no name of a class."""
    target = None if at is None else Target(at=at)
    a = whence.explain(whence.load(name), text, "occlusion", target=target)
    words = [f"“{label.strip()}”" for label in a.prediction]
    assert f"The model says {words[0]} (" in str(a.answer)
    assert f" {words[0]}" in a.to_text(full=True).split("prediction ")[1]
    listed = re.findall(r"<dt[^>]*>([^<]*)</dt>", a.to_html())
    assert set(words) <= set(listed)
    for shown in (str(a.answer), a.to_text(full=True), a.to_html()):
        for label in a.prediction:
            assert f"'{label}'" not in shown
    assert Attribution.from_dict(a.to_dict()).says_tokens


def test_a_class_is_a_name_and_no_words():
    a = whence.explain(whence.load("sentiment"), "not bad", "occlusion")
    assert str(a.answer).startswith("The model says positive (")
    assert "says_tokens" not in a.to_dict()


def test_two_tokens_that_are_alike_but_for_their_blank_are_told_apart():
    a = whence.explain(whence.load("writer"), "The capital of", "occlusion", evidence=False)
    a = replace(a, prediction={" the": 0.4, "the": 0.35}, target=replace(a.target, label=" the"))
    assert "The model says “␣the” (40 %)" in str(a.answer)
    assert "next is “the” (35 %)" in str(a.answer)
    assert "“␣the”" in a.to_html()
