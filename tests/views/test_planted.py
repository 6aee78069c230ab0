"""The planted truth as words, table and page; whatever a method is called, it can only be read."""

from __future__ import annotations

import csv
import io
import json
import random
from dataclasses import replace

import pytest

from tests.damage import damaged
from tests.views.conftest import own
from whence.core.errors import InputError, WhenceError
from whence.core.evidence import Verdict
from whence.core.planted import Example, Finding, Planted, PlantedTruth, Said
from whence.views.planted import planted_sentences

HOSTILE = "</script><img src=x onerror=alert(1)>=\x1b[31m"


def planted(name: str) -> Planted:
    return Planted(name, "one word decides", f"planted-{name}", "abc", 10, 1.0, (0.0, 3.0), 0.1)


def finding(method: str, mechanism: str, found: float, **more) -> Finding:
    is_clear = found > 3
    given = {
        "texts": 10,
        "found": found,
        "recall": found / 10,
        "fooled": 0.0,
        "interval": (0.72, 1.0) if found == 10 else (0.0, 0.4),
        "p": 0.001 if is_clear else 0.5,
        "adjusted": 0.002 if is_clear else 1.0,
        "verdict": Verdict.BETTER if is_clear else Verdict.SAME,
        **more,
    }
    return Finding(method, mechanism, **given)


def truth(**more) -> PlantedTruth:
    said = {
        "occlusion": Said((0.0, 1.0, -0.2), True, 1.0),
        "attention-mean": Said((0.1, 0.2, 0.9), False, 0.0),
    }
    units = ("the", "rain", "fell")
    example = Example("distractor", "the rain fell", units, (1,), (2,), "wet", said)
    given = {
        "mechanisms": (planted("keyword"), planted("distractor")),
        "findings": (
            finding("attention-mean", "keyword", 10.0),
            finding("attention-mean", "distractor", 0.0, fooled=9.0),
            finding("random", "keyword", 1.0),
            finding("random", "distractor", 0.5),
            finding("occlusion", "keyword", 10.0),
            finding("occlusion", "distractor", 10.0),
        ),
        "examples": (example,),
        "settings": {"occlusion": {"removal": "mask"}},
        "skipped": {"lime-exact": "no formula.", "shapley-exact": "no formula."},
        "versions": {"whence": "0.1.0"},
        **more,
    }
    return PlantedTruth(**given)


def test_the_sentences_say_who_finds_all_who_is_fooled_and_what_chance_gives():
    assert planted_sentences(truth()) == [
        "1 of 2 methods finds both mechanisms: occlusion.",
        "On distractor, attention-mean ranks a decoy first, which the output ignores, in 9 of 10 "
        "texts.",
        "The random control finds the planted words in 1.5 of 20 texts; chance gives 2.0 on "
        "average.",
        "Left out: lime-exact, shapley-exact (no formula).",
    ]


def test_too_few_texts_find_nothing_in_most():
    """The enemy: "none finds any" of a method that found it in three texts of three."""
    mechanisms = (replace(planted("keyword"), texts=3),)
    found = finding("occlusion", "keyword", 3.0, texts=3, interval=(0.44, 1.0))
    first, *_ = planted_sentences(truth(mechanisms=mechanisms, findings=(found,), examples=()))
    assert first.startswith("3 texts of each mechanism cannot show what a method finds in most")


def three(*findings: Finding) -> str:
    """The answer over three mechanisms."""
    mechanisms = tuple(map(planted, ("keyword", "pair", "distractor")))
    return planted_sentences(truth(mechanisms=mechanisms, findings=findings, examples=()))[0]


def test_the_best_of_several_that_find_as_many_are_all_named():
    """The enemy: "A finds most" beside a B that finds as many."""
    a = finding("A", "keyword", 10.0), finding("A", "pair", 0.0), finding("A", "distractor", 0.0)
    b = finding("B", "keyword", 10.0), finding("B", "pair", 1.0), finding("B", "distractor", 0.0)
    c = finding("C", "keyword", 0.0), finding("C", "pair", 10.0), finding("C", "distractor", 0.0)
    none = "None of 2 methods finds all three mechanisms. The most that one finds is 1 of 3: "
    assert three(*a, *b) == f"{none}B, A find keyword."
    assert three(*b, *c) == f"{none}B, C find one each."
    better = [*b[:2], finding("B", "distractor", 10.0)]
    assert three(*a, *better).endswith("finds is 2 of 3: B finds keyword, distractor.")
    assert three(*a[1:], *b[1:]) == "None of 2 methods surely finds any mechanism in most texts."


def test_a_method_is_judged_by_the_mechanisms_that_it_was_tried_on():
    """The enemy: "finds all three" of a method tried on two."""
    found, missed = finding("A", "keyword", 10.0), finding("A", "pair", 0.0)
    also = finding("A", "pair", 10.0)
    assert three(found, also) == "A finds keyword, pair. It was not tried on distractor."
    assert three(found, missed) == (
        "A finds 1 of 2 mechanisms; not pair. It was not tried on distractor."
    )
    assert three(found) == "A finds keyword. It was not tried on pair, distractor."
    assert three(missed) == (
        "A does not surely find the mechanism pair in most texts. It was not tried on keyword, "
        "distractor."
    )
    none = [finding("A", name, 1.0) for name in ("keyword", "pair", "distractor")]
    assert three(*none) == (
        "A does not surely find any of keyword, pair, distractor in most texts."
    )
    # beside another it does not find all three either
    other = [finding("B", name, 0.0) for name in ("keyword", "pair", "distractor")]
    assert three(found, also, *other).startswith("None of 2 methods finds all three mechanisms.")


def test_nothing_is_found_that_is_not_separable_from_random():
    """Found in all of four texts of two words: the enemy says "finds", and then "not separable"."""
    lucky = {"texts": 4, "interval": (0.51, 1.0), "p": 0.0625, "adjusted": 0.0625}
    found = finding("A", "keyword", 4.0, **lucky, verdict=Verdict.SAME)
    short = truth(
        mechanisms=(replace(planted("keyword"), texts=4),), findings=(found,), examples=()
    )
    assert planted_sentences(short)[:2] == [
        "A does not surely find the mechanism keyword in most texts.",
        "Not separable from random on keyword: A.",
    ]


def test_one_mechanism_and_one_text_are_one():
    one = truth(
        mechanisms=(planted("keyword"),),
        findings=(finding("A", "keyword", 1.0), finding("random", "keyword", 1.0)),
        examples=(),
    )
    said = planted_sentences(one)
    assert said[0] == "A does not surely find the mechanism keyword in most texts."
    assert said[1] == "Not separable from random on keyword: A."
    assert "correction" not in str(one)
    assert "<title>whence: 1 method on" in one.to_html()
    text = replace(planted("keyword"), texts=1)
    single = truth(
        mechanisms=(text,), findings=(finding("A", "keyword", 1.0, texts=1),), examples=()
    )
    assert planted_sentences(single)[0].startswith("1 text of each mechanism cannot show")
    assert "of 1 text," in planted_sentences(single)[-2]
    assert "Of 1 text," in str(single)


def test_the_control_is_held_against_the_chance_of_what_it_was_tried_on():
    """The enemy: what it found of one mechanism beside the chance of two."""
    found = [each for each in truth().findings if (each.method, each.mechanism) != LAST]
    said = planted_sentences(truth(findings=tuple(found)))
    assert said[2].startswith("The random control finds the planted words in 1 of 10 texts; chance")
    assert said[2].endswith("gives 1.0 on average.")


LAST = ("random", "distractor")


def test_a_mechanism_of_too_few_texts_is_named():
    """The enemy: "each mechanism", or another one, where one of two has too few."""
    mechanisms = (planted("keyword"), replace(planted("pair"), texts=2))
    found = finding("A", "keyword", 10.0), finding("B", "keyword", 0.0)
    first = planted_sentences(truth(mechanisms=mechanisms, findings=found, examples=()))[0]
    assert first.startswith(
        "2 texts of pair cannot show what a method finds in most: take at least"
    )


def test_of_one_method_it_says_what_it_misses():
    alone = [f for f in truth().findings if f.method == "attention-mean"]
    assert planted_sentences(truth(findings=tuple(alone)))[0] == (
        "attention-mean finds 1 of 2 mechanisms; not distractor."
    )
    lost = (finding("toy", "keyword", 1.0), finding("toy", "distractor", 0.0))
    said = planted_sentences(truth(findings=lost))
    assert said[1] == "Not separable from random on any mechanism: toy."


def test_the_best_method_comes_first_and_the_control_last(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert truth().methods == ("occlusion", "attention-mean", "random")
    lines = str(truth()).splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("method"))
    assert [line.split()[0] for line in lines[place : place + 5]] == [
        "method",
        "occlusion",
        "attention-mean",
        "random",
        "chance,",
    ]
    assert "10 72–100" in lines[place + 1]
    assert "~0 0–40" in lines[place + 2]
    assert "1.0 0–30" in lines[place + 4]
    assert max(map(len, lines)) <= 80


def test_all_six_mechanisms_fit_eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    names = ("keyword", "pair", "negation", "position", "leak", "distractor")
    every = tuple(finding("transformer-attribution", name, 10.0) for name in names)
    wide = truth(mechanisms=tuple(map(planted, names)), findings=every, examples=())
    row = next(
        line for line in str(wide).splitlines() if line.startswith("transformer") and "72" in line
    )
    assert row.count("10 72–100") == 6
    assert len(row) <= 80


def test_csv_latex_and_markdown_have_every_method_and_mechanism():
    rows = list(csv.DictReader(io.StringIO(truth().to_csv())))
    assert len(rows) == 6
    assert rows[0]["method"] == "occlusion"
    assert float(rows[0]["share"]) == 1.0
    assert {row["finds"] for row in rows} == {"True", "False"}
    latex = truth().to_latex()
    assert r"occlusion & 10 72–100 & 10 72–100 \\" in latex
    assert "% occlusion: removal=mask" in latex
    assert "| occlusion | 10 72–100 | 10 72–100 |" in truth().to_markdown()


def test_a_name_can_only_be_read():
    hostile = replace(truth().findings[4], method=HOSTILE)
    said = {HOSTILE: Said((0.0, 1.0, 0.0), True, 1.0)}
    example = Example("keyword", HOSTILE, (HOSTILE, "so", "good"), (1,), (), HOSTILE, said)
    one = truth(findings=(hostile,), examples=(example,), skipped={HOSTILE: HOSTILE})
    page = one.to_html()
    assert "<img" not in page
    assert "\x1b" not in page
    assert "\x1b" not in str(one) + repr(one)
    assert "http" not in page.replace("http-equiv", "")
    assert own(page).count("<script") == 1  # the data
    assert one._repr_html_().count("<img") == 0


def test_the_page_shows_planted_words_and_what_each_method_says_of_them():
    page = truth().to_html()
    assert '<th scope="col" class="gold">rain</th>' in page
    assert '<th scope="col" class="decoy">fell</th>' in page
    assert 'class="p gold" style="--v:1.000"' in page
    assert "✓" in page
    assert "✗" in page
    body = page.split('<script type="application/json">')[1].split("</script>")[0]
    assert PlantedTruth.from_dict(json.loads(body)) == truth()


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(InputError, match="at least one mechanism"):
        truth(findings=())
    with pytest.raises(InputError, match="twice"):
        truth(findings=(finding("a", "keyword", 1.0), finding("a", "keyword", 1.0)))
    with pytest.raises(KeyError, match="no mechanism here"):
        truth(findings=(finding("a", "other", 1.0),))
    with pytest.raises(InputError, match="outside"):
        truth(examples=(replace(truth().examples[0], gold=(3,)),))


def test_a_damaged_truth_is_refused_or_shown():
    rng = random.Random(0)
    counts = {"refused": 0, "shown": 0}
    in_lines: list[str] = []
    stored = json.loads(json.dumps(truth().to_dict()))
    for what, made in damaged(stored):
        if rng.randrange(12):
            continue
        try:
            result = PlantedTruth.from_dict(made())
        except WhenceError as problem:
            counts["refused"] += 1
            in_lines += [what] if "\n" in str(problem) else []
            continue
        for view in (str, repr, PlantedTruth.to_html, PlantedTruth.to_csv, PlantedTruth.to_latex):
            view(result)
        counts["shown"] += 1
    assert min(counts.values()) > 10
    assert in_lines == []


def test_the_fewest_texts_are_those_of_the_mechanism_that_is_named():
    """The enemy: the smallest number of texts beside the first mechanism that has too few."""
    mechanisms = (
        replace(planted("keyword"), texts=3),
        replace(planted("pair"), texts=2),
        planted("negation"),
    )
    found = finding("A", "keyword", 3.0, texts=3), finding("B", "negation", 0.0)
    first = planted_sentences(truth(mechanisms=mechanisms, findings=found, examples=()))[0]
    assert first.startswith("2 texts of pair cannot show")


def test_a_tie_is_no_whole_number_of_texts():
    """The enemy: "30 of 30 texts", of 29 and of one that is found in 24 of 25 ties."""
    found = finding("random", "keyword", 9.96)
    said = planted_sentences(truth(mechanisms=(planted("keyword"),), findings=(found,)))
    assert "in 9.96 of 10 texts" in said[1]
