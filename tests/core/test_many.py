"""Many texts: counts beside chance, derived once more; an index; the way to a file and back."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from math import comb
from pathlib import Path
from statistics import NormalDist

import jaxtyping
import numpy as np
import pytest

import whence
from tests.views.conftest import compared, evidence_for, judged, made
from whence.core.answer import binomial_tail
from whence.core.attribution import NO_LABEL
from whence.core.errors import InputError, LoadError
from whence.core.evidence import CURVES, HELD_OUT, LEVEL, Evidence, Verdict, is_within
from whence.core.many import Many, by_chance
from whence.core.reading import read

VERDICTS = {"b": Verdict.BETTER, "s": Verdict.SAME, "w": Verdict.WORSE}


def texts(verdicts: str, shares: list[float] | None = None) -> Many:
    """One text for each letter, all by one method; a dot has no verdict, a dash no evidence."""
    results = []
    for place, letter in enumerate(verdicts):
        share = None if shares is None else shares[place]
        evidence = Evidence(CURVES, VERDICTS.get(letter), share)
        if letter == "-":
            evidence = None
        results.append(made(f"text number {place}", "lime", evidence=evidence))
    return Many(tuple(results))


def test_verdicts_are_counted_and_what_has_none_is_not() -> None:
    many = texts("bbswb.-")
    (tally,) = many.tallies()
    assert (tally.texts, tally.judged) == (7, 5)
    assert (tally.better, tally.same, tally.worse) == (3, 1, 1)
    assert tally.by_chance == 5 * LEVEL
    assert [row.unjudged for row in many.rows()] == [0, 0, 0, 0, 0, 1, 1]
    assert [row.better for row in many.rows()] == [1, 1, 0, 0, 1, 0, 0]


@pytest.mark.parametrize("judged", [1, 4, 7])
def test_p_is_the_share_of_all_outcomes_that_are_as_good(judged: int) -> None:
    """By listing every outcome of so many coins."""
    for better in range(judged + 1):
        chance = 0.0
        for outcome in product((True, False), repeat=judged):
            if sum(outcome) >= better:
                chance += float(np.prod([LEVEL if hit else 1 - LEVEL for hit in outcome]))
        many = texts("b" * better + "s" * (judged - better))
        assert many.tallies()[0].p == pytest.approx(chance, rel=1e-12)


def test_thousands_of_texts_are_not_too_many_for_the_binomial() -> None:
    exact = sum(comb(3000, k) * 19 ** (3000 - k) for k in range(180, 3001)) / 20**3000
    assert binomial_tail(3000, 180, 0.05) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("judged", [0, 1, 5, 20, 400])
def test_the_range_of_chance_holds_95_percent_and_no_more_than_it_must(judged: int) -> None:
    low, high = by_chance(judged)
    inside = binomial_tail(judged, low, LEVEL) - binomial_tail(judged, high + 1, LEVEL)
    assert inside >= 0.95
    assert binomial_tail(judged, high, LEVEL) > 0.025
    if low:
        assert 1 - binomial_tail(judged, low + 1, LEVEL) > 0.025


def test_the_interval_of_the_mean_share_covers_it() -> None:
    """Of samples of 12 shares around 0.6, about 95 % of the intervals hold 0.6.

    With a normal quantile in place of Student's it would be some 92 %.
    """
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(1000):
        shares = rng.normal(0.6, 0.1, 12).tolist()
        interval = texts_interval(shares)
        held += interval[0] <= 0.6 <= interval[1]
    sure = NormalDist().inv_cdf(0.999) * np.sqrt(0.95 * 0.05 / 1000)
    assert abs(held / 1000 - 0.95) < sure
    assert texts("b", [0.9]).tallies()[0].interval is None
    assert texts("bb", [1.0, 0.9]).tallies()[0].interval == (pytest.approx(0.315, abs=1e-3), 1.0)


def texts_interval(shares: list[float]) -> tuple[float, float]:
    from whence.core.many import _interval

    interval = _interval(shares)
    assert interval is not None
    return interval


def test_a_text_that_stands_there_twice_is_counted_once() -> None:
    many = texts("bs")
    twice = Many((*many, *many, many[0]))
    assert twice.tallies() == many.tallies()
    assert (twice.repeated, len(twice.rows())) == (3, 5)


def test_a_methods_own_check_is_no_verdict_against_random_rankings() -> None:
    own = made("so good", evidence=Evidence(HELD_OUT, Verdict.BETTER, 0.9))
    (tally,) = Many((own,)).tallies()
    assert (tally.judged, tally.beaten, tally.p) == (0, None, None)


def test_methods_of_comparisons_are_counted_by_name() -> None:
    first, second = judged(compared("so very good")), judged(compared("not very good"))
    many = Many((first, second))
    assert [tally.method for tally in many.tallies()] == list(first)
    assert {tally.judged for tally in many.tallies()} == {2}
    one = replace(second, attributions={"lime": made("not very good", "lime")})
    assert [t.texts for t in Many((first, one)).tallies() if t.method in ("lime", "random")] == [
        1 + ("lime" in first),
        1,
    ]


def test_it_behaves_as_the_list_that_it_was() -> None:
    many = texts("bsw")
    assert many == list(many)
    assert many != list(many)[:2]
    assert many != ["a", "b", "c"]
    assert Many(()) == []
    assert many[-1] is many.results[2]
    assert isinstance(many[1:], Many)
    assert many[1:] == list(many)[1:]
    assert [a.method for a in many] == ["lime"] * 3
    assert many.index(many[1]) == 1


def test_what_is_no_result_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # as a user meets it: outside tests nothing checks the annotations
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(InputError, match="not str"):
        Many(("lime",))  # type: ignore[arg-type]


def test_a_file_and_back(tmp_path: Path) -> None:
    attributions = texts("bs.", [0.9, 0.5, 0.4])
    comparisons = Many((judged(compared("so very good")),))
    for many in (attributions, comparisons, Many(())):
        again = read(many.save(tmp_path / "many.json"))
        assert isinstance(again, Many)
        assert again == many
        assert again.tallies() == many.tallies()


def test_lines_of_json_are_read_too_and_half_a_line_at_the_end_is_left_out(tmp_path: Path) -> None:
    many = texts("bs")
    lines = [json.dumps(result.to_dict(), ensure_ascii=False) for result in many]
    path = tmp_path / "many.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert read(path) == many
    path.write_text("\n".join(lines) + "\n" + lines[0][:50], encoding="utf-8")
    assert read(path) == many
    path.write_text("\n".join([lines[0][:50], *lines]), encoding="utf-8")
    with pytest.raises(LoadError, match="not JSON"):
        read(path)


def test_what_is_damaged_says_so() -> None:
    stored = texts("b").to_dict()
    with pytest.raises(LoadError, match="damaged"):
        Many.from_dict({"schema": 2, "kind": "many"})
    with pytest.raises(LoadError, match="no attribution but 'probe'"):
        Many.from_dict(stored | {"results": [{"kind": "probe"}]})
    with pytest.raises(LoadError, match="Update whence"):
        Many.from_dict(stored | {"schema": 99})


def test_compare_and_explain_take_a_list() -> None:
    model = whence.load("sentiment")
    several = ["a fine film", "not bad"]
    steps: list[str] = []
    many = whence.compare(
        model, several, ["gradient-l2", "occlusion"], evidence=False, progress=steps.append
    )
    assert [list(comparison) for comparison in many] == [["gradient-l2", "occlusion"]] * 2
    assert {step.split(":")[0] for step in steps} == {"text 1 of 2", "text 2 of 2"}
    alone = whence.explain(model, several, "gradient-l2", evidence=False)
    for one, comparison in zip(alone, many, strict=True):
        np.testing.assert_allclose(one.scores, comparison["gradient-l2"].scores, atol=1e-6)
    judged_ones = whence.explain(model, several, "gradient-l2")
    assert [tally.judged for tally in judged_ones.tallies()] == [2]


def test_what_is_printed_has_each_text_and_each_method() -> None:
    many = Many((judged(compared("so very good")), judged(compared("not <b> good"))))
    shown = str(many)
    for words in ("so very good", "not <b> good", *many[0]):
        assert words in shown
    assert "<b>" not in many._repr_html_().replace("&lt;b&gt;", "")
    assert "no texts" in str(Many(()))
    unjudged = str(Many((made("so good", "lime"),)))
    assert "no verdicts" in unjudged
    assert evidence_for(np.arange(3.0)).measure == CURVES


def test_one_text_with_one_verdict_is_as_often_as_chance_allows() -> None:
    """p is 0.05, of which a computer makes 0.05000000000000004: "None beats" was false."""
    (tally,) = texts("b").tallies()
    assert tally.p is not None
    assert tally.p == pytest.approx(LEVEL)
    assert tally.p > LEVEL  # or this test says nothing
    assert is_within(tally.p)
    said = texts("b").answer
    assert [held.method for held in said.holding] == ["lime"]
    assert "None of the methods" not in " ".join(said.to_dict()["sentences"])
    assert not texts("s").answer.holding


@pytest.mark.parametrize("judged", range(1, 40))
def test_p_values_on_the_level_are_within_it(judged: int) -> None:
    """1/20, 2/40 …: ranks among random rankings that are the level itself, whatever is rounded."""
    on_level = judged / (20 * judged)
    for p in (on_level, 1 - (1 - on_level), on_level * 3 / 3, on_level + 1e-16):
        assert is_within(p)
    assert not is_within((judged + 1) / (20 * judged))


def of_labels(*predictions: dict[str, float], **more: object) -> Many:
    return Many(
        tuple(
            replace(made(f"text number {place}"), prediction=prediction, **more)
            for place, prediction in enumerate(predictions)
        )
    )


def test_of_several_labels_those_that_hold_are_counted_or_none() -> None:
    """The enemy counts the highest label of each text, whether it holds or not."""
    many = of_labels(
        {"toxic": 0.9, "insult": 0.7, "threat": 0.1},
        {"toxic": 0.6, "insult": 0.2, "threat": 0.1},
        {"threat": 0.27, "toxic": 0.1, "insult": 0.05},
        several_labels=True,
    )
    assert [row.says for row in many.rows()] == [("toxic", "insult"), ("toxic",), (NO_LABEL,)]
    assert dict(many.answer.predictions) == {"toxic": 2, "insult": 1, NO_LABEL: 1}
    assert "3 texts: the model says toxic for 2" in many.answer.to_dict()["sentences"][0]
    assert "none of its labels for 1" in many.answer.to_dict()["sentences"][0]
    assert "none (threat 27 %)" in many.to_text()
    assert many.to_text().count("threat") == 1

    one = of_labels({"a": 0.4, "b": 0.35, "c": 0.25})  # one of which always holds
    assert dict(one.answer.predictions) == {"a": 1}
    assert [row.holding for row in one.rows()] == [None]


def test_each_sentence_of_the_answer_is_printed_once() -> None:
    many = Many((judged(compared("so very good")), judged(compared("not very good"))))
    shown = " ".join(str(many).split())
    for sentence in many.to_dict()["answer"]["sentences"]:
        assert shown.count(" ".join(sentence.split())) == 1
