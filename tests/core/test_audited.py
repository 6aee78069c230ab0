"""Verdicts on attention: the rules, and what is stored."""

from __future__ import annotations

import json
from dataclasses import replace
from math import log
from pathlib import Path

import numpy as np
import pytest

import whence
from bench.audit_coverage import rare_and_large
from tests.views.audits import audit_with, observed
from whence.core.audit import Effect, Observation, Place, effects_of
from whence.core.audited import (
    ANOTHER,
    AT_LEAST,
    FEWEST_TO_RULE_OUT,
    MATTERS,
    READS,
    Audit,
    May,
    Why,
    may_be_read,
    reading_may_be_read,
)

LN_2 = log(2)


def effect(low: float, high: float, texts: int = 100) -> Effect:
    return Effect("permutation", "change", Place(), "", (low + high) / 2, (low, high), texts)


LARGE, SMALL, UNSURE = effect(0.2, 0.3), effect(0.0, 0.01), effect(0.01, 0.2)
NEAR, FAR = effect(0.0, 0.1), effect(0.5, 0.6)
BETWEEN = effect(0.2, 0.5)
TOO_FEW = effect(0.0, 0.01, texts=FEWEST_TO_RULE_OUT - 1)

RULES = [
    ((LARGE, LARGE, NEAR), (May.YES, Why.TIED)),
    ((SMALL, LARGE, NEAR), (May.NO, Why.IDLE)),
    ((LARGE, SMALL, NEAR), (May.NO, Why.EVEN)),
    ((LARGE, LARGE, FAR), (May.SEVERAL, Why.ANOTHER)),
    ((SMALL, LARGE, FAR), (May.NO, Why.IDLE)),
    ((LARGE, SMALL, FAR), (May.NO, Why.EVEN)),
    ((UNSURE, LARGE, FAR), (May.OPEN, Why.UNSURE)),
    ((UNSURE, LARGE, NEAR), (May.OPEN, Why.UNSURE)),
    ((LARGE, UNSURE, NEAR), (May.OPEN, Why.UNSURE)),
    ((LARGE, LARGE, BETWEEN), (May.OPEN, Why.UNSURE)),
    ((LARGE, LARGE, None), (May.OPEN, Why.NOT_SEARCHED)),
    ((None, LARGE, NEAR), (May.OPEN, Why.NOT_SHUFFLED)),
    ((None, None, FAR), (May.OPEN, Why.NOT_SHUFFLED)),
    ((LARGE, None, FAR), (May.OPEN, Why.NOT_EVENED)),
    ((None, SMALL, None), (May.NO, Why.EVEN)),
    ((TOO_FEW, None, None), (May.OPEN, Why.FEW)),
    ((TOO_FEW, LARGE, NEAR), (May.OPEN, Why.FEW)),
    ((LARGE, TOO_FEW, NEAR), (May.OPEN, Why.FEW)),
    ((TOO_FEW, SMALL, NEAR), (May.NO, Why.EVEN)),
]


# the last is the bound over all texts, with 0 where a search found nothing
BOUNDS = [
    ((LARGE, LARGE, FAR, FAR), (May.SEVERAL, Why.ANOTHER)),
    ((LARGE, LARGE, FAR, BETWEEN), (May.OPEN, Why.UNSURE)),
    ((LARGE, LARGE, FAR, NEAR), (May.OPEN, Why.UNSURE)),
    ((LARGE, LARGE, None, NEAR), (May.OPEN, Why.UNSURE)),
    ((LARGE, LARGE, NEAR, NEAR), (May.YES, Why.TIED)),
    ((SMALL, LARGE, FAR, FAR), (May.NO, Why.IDLE)),
]


@pytest.mark.parametrize(("given", "expected"), BOUNDS)
def test_texts_on_which_a_search_found_nothing_speak_against_another_attention_only(
    given: tuple[Effect | None, Effect | None, Effect | None, Effect | None],
    expected: tuple[May, Why],
) -> None:
    """Would catch: "one of several" from the few texts on which the search came back."""
    assert may_be_read(*given) == expected


@pytest.mark.parametrize(("given", "expected"), RULES)
def test_the_rules_of_a_place(
    given: tuple[Effect | None, Effect | None, Effect | None], expected: tuple[May, Why]
) -> None:
    assert may_be_read(*given) == expected


def test_the_rules_of_a_reading() -> None:
    assert reading_may_be_read(effect(READS + 0.01, 0.9)) == (May.YES, Why.READS)
    assert reading_may_be_read(effect(0.4, READS - 0.01)) == (May.NO, Why.WEAK)
    assert reading_may_be_read(effect(0.5, 0.7)) == (May.OPEN, Why.UNSURE)
    assert reading_may_be_read(effect(0.7, 0.9, texts=5)) == (May.YES, Why.READS)
    assert reading_may_be_read(effect(0.4, 0.5, texts=39)) == (May.OPEN, Why.FEW)
    assert reading_may_be_read(effect(0.4, 0.5, texts=40)) == (May.NO, Why.WEAK)
    assert reading_may_be_read(None) == (May.OPEN, Why.UNSURE)


@pytest.mark.parametrize("texts", [40, 400])
def test_more_texts_never_make_a_small_effect_count(texts: int) -> None:
    """The enemy: a test whether the change is zero, which enough texts always deny."""
    rng = np.random.default_rng(0)
    small = observed(texts, change=lambda: abs(rng.normal(0.02, 0.005)), jsd=lambda: 0.01)
    audit = audit_with(small)
    assert audit.of_all is not None
    assert audit.of_all.permutation is not None
    assert audit.of_all.permutation.is_above(0.0)
    assert (audit.of_all.may, audit.of_all.why) == (May.NO, Why.IDLE)


@pytest.mark.parametrize("texts", [5, 12, 39, 40])
def test_a_rare_and_large_effect_is_not_ruled_out(texts: int) -> None:
    """Heads that move the output by 0.5 on 15 texts of 100: the mean is above the bar.

    The enemy says of a third of them, on five texts, that they may not be read.
    """
    wrong, audits = 0, 10
    for seed in range(audits):
        observations = rare_and_large(texts, 53, seed)
        audit = Audit("made up", "", texts, 0, 0, effects_of(observations, seed))
        wrong += sum(verdict.may is May.NO for verdict in audit.of_heads)
        if texts < FEWEST_TO_RULE_OUT:
            assert {v.why for v in audit.of_heads} <= {Why.FEW, Why.NOT_SEARCHED}
    assert wrong <= (0 if texts < FEWEST_TO_RULE_OUT else 0.01 * 53 * audits)


def test_few_texts_decide_nothing() -> None:
    audit = audit_with(observed(4, change=lambda: 0.5, jsd=lambda: 0.0))
    assert audit.of_all is not None
    assert audit.of_all.may is May.OPEN


def test_a_head_has_the_adversary_of_its_layer() -> None:
    """Layer 0 can be replaced and layer 1 cannot; the heads of both matter."""
    texts = observed(30, change=lambda: 0.4, jsd=lambda: 0.0, jsd_of_layer={0: 0.9 * LN_2, 1: 0.01})
    verdicts = {verdict.place: verdict for verdict in audit_with(texts).of_heads}
    assert verdicts[Place(0, 1)].why is Why.ANOTHER
    assert verdicts[Place(1, 0)].may is May.YES


def test_that_there_is_another_attention_counts_the_texts_without_one_as_zero() -> None:
    """Found on 20 texts of 100, where it is far away: the enemy leaves out the other 80."""
    one = Place(0)
    found = Effect("adversary", "jsd", one, "", 0.55, (0.5, 0.6), 20)
    at_least = Effect("adversary", "jsd-at-least", one, "", 0.11, (0.05, 0.17), 100)
    matters = [replace(LARGE, test=test, place=one) for test in ("permutation", "uniform")]
    audit = replace(audit_with([]), effects=(*matters, found, at_least))
    (verdict,) = audit.of_layers
    assert (verdict.may, verdict.why) == (May.OPEN, Why.UNSURE)
    assert verdict.adversary == at_least
    # an audit of before has none, and is read by what it has
    (before,) = replace(audit, effects=(*matters, found)).of_layers
    assert before.may is May.SEVERAL


def test_places_are_judged_together() -> None:
    """With many heads intervals are wider: the enemy is one interval for each by itself."""
    rng = np.random.default_rng(1)
    values = rng.normal(0.1, 0.1, size=(40, 60))
    texts = [
        [Observation("permutation", "change", float(v), Place(0, h)) for h, v in enumerate(row)]
        for row in values
    ]
    together = effects_of(texts)
    alone = effects_of([[row[0]] for row in texts])
    assert together[0].interval is not None
    assert alone[0].interval is not None
    assert np.ptp(together[0].interval) > 1.3 * np.ptp(alone[0].interval)
    assert together[0].mean == pytest.approx(values[:, 0].mean())


def test_an_effect_is_over_the_texts_that_have_it() -> None:
    texts = [[Observation("adversary", "jsd", 0.1, control=0.3)]] * 6 + [[]] * 3
    (only,) = effects_of(texts)
    assert (only.texts, only.control) == (6, pytest.approx(0.3))
    assert only.values == ()
    (kept,) = effects_of(texts, shown=lambda _: True)
    assert len(kept.values) == 6


RANGES = [
    ("permutation", "change", 0.0, 1.0),
    ("adversary", "jsd", 0.0, LN_2),
    ("readings", "beaten", 0.0, 1.0),
    ("correlation", "tau-loo", -1.0, 1.0),
    ("correlation", "significant-gradient", 0.0, 1.0),
    ("heads", "right", 0.0, 1.0),
    ("heads", "whole-right", 0.0, 1.0),
]


@pytest.mark.parametrize(("test", "quantity", "least", "most"), RANGES)
def test_intervals_hold_nothing_that_cannot_be(
    test: str, quantity: str, least: float, most: float
) -> None:
    """Six texts at one end and one at the other: the bootstrap's own interval goes beyond."""
    for end, other in ((least, most), (most, least)):
        texts = [[Observation(test, quantity, value)] for value in [end] * 6 + [other]]
        (clipped,) = effects_of(texts)
        assert clipped.interval is not None
        low, high = clipped.interval
        assert least <= low <= clipped.mean <= high <= most
        assert end in (low, high)  # it was beyond: the enemy returns it as it is


def test_a_change_of_a_number_and_of_a_loss_may_be_larger() -> None:
    """The enemy: the range of a probability for a regression, or of a loss for its change."""
    texts = [[Observation("uniform", "change", value)] for value in (0.1, 0.2, 0.9, 0.8, 3.0, 2.0)]
    (number,) = effects_of(texts, is_number=True)
    assert number.interval is not None
    assert number.interval[1] > 1.5
    changes = (0.1, -0.2, -0.9, -0.3, 0.1, 0.0)
    of_head = [[Observation("heads", "loss", value, Place(0, 1))] for value in changes]
    (change,) = effects_of(of_head)
    assert change.interval is not None
    assert change.interval[0] < change.mean < 0
    whole = [[Observation("heads", "whole-loss", value)] for value in (0.0, 0.0, 0.0, 0.0, 2.0)]
    (loss,) = effects_of(whole)
    assert loss.interval is not None
    assert loss.interval[0] == 0.0


def test_it_survives_json(tmp_path: Path) -> None:
    audit = audit_with(observed(12, change=lambda: 0.4, jsd=lambda: 0.1))
    back = Audit.from_dict(json.loads(json.dumps(audit.to_dict())))
    assert back.effects == audit.effects
    assert back.places == audit.places
    read = whence.read(audit.save(tmp_path / "audit.json"))
    assert isinstance(read, Audit)
    assert read.readings == audit.readings


def test_the_bars_are_those_that_the_words_name() -> None:
    """Whoever changes a bar sees the page change with it."""
    from whence.views.audit import READINGS_MEAN, how_to_read

    said = how_to_read(audit_with(observed(5, change=lambda: 0.4, jsd=lambda: 0.1)))
    assert f"{MATTERS:.2f}" in said
    assert f"{100 * ANOTHER:.0f} %" in said
    assert f"{FEWEST_TO_RULE_OUT} texts" in said
    assert f"{100 * READS:.0f} %" in READINGS_MEAN


def test_of_an_output_that_is_a_number_there_is_no_verdict(tmp_path: Path) -> None:
    """Would catch: 0.05 of whatever unit the output has, held to be large or small."""
    plain = audit_with(observed(50, change=lambda: 0.0, jsd=lambda: LN_2))
    number = replace(plain, is_number=True)
    assert {verdict.may for verdict in plain.places} == {May.NO}
    assert {(v.may, v.why) for v in number.places} == {(May.OPEN, Why.NUMBER)}
    assert number.readings == plain.readings
    back = whence.read(number.save(tmp_path / "audit.json"))
    assert isinstance(back, Audit)
    assert back.is_number
    stored = plain.to_dict()
    del stored["is_number"]  # as older files are
    assert not Audit.from_dict(stored).is_number


def test_texts_without_another_attention_count_as_none_found() -> None:
    """On 30 of 60 texts a search found one that is far, on the others none.

    Would catch: a verdict, or the number beside it, from those 30 alone.
    """
    found = observed(30, change=lambda: 0.4, jsd=lambda: 0.95 * LN_2)
    none = observed(30, change=lambda: 0.4, jsd=lambda: 0.0)
    texts = []
    for seen, is_found in [*((s, True) for s in found), *((s, False) for s in none)]:
        searched = [one for one in seen if one.test == "adversary"]
        bound = [replace(one, quantity=AT_LEAST) for one in searched]
        texts.append([one for one in seen if is_found or one.test != "adversary"] + bound)
    audit = audit_with(texts)
    for verdict in (audit.of_all, *audit.of_layers, *audit.of_heads):
        assert verdict is not None
        assert verdict.adversary is not None
        assert verdict.adversary.texts == 60
        assert verdict.adversary.mean == pytest.approx(0.475 * LN_2)
        assert (verdict.may, verdict.why) == (May.OPEN, Why.UNSURE)
    every = audit_with(found)
    assert every.of_all is not None
    assert every.of_all.why is Why.ANOTHER
