"""Many texts on one page: the answer over all, links that open, each text folded."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

import whence
from tests.core.test_answer import SAME, compared, evidence, scored
from whence.core.answer_of_many import answer_of_counts
from whence.core.evidence import Verdict
from whence.core.many import Many, Tally, tally_of
from whence.views.answering_of_many import many_sentences
from whence.views.many import notes

TEXTS = ["not bad at all, a fine film", "dull <b>and</b> lifeless from the first scene on"]
METHODS = ["gradient-l2", "attention-mean", "random"]


@pytest.fixture(scope="module")
def many() -> Many:
    # the fewest rankings: what is shown is of the same kind, for a tenth of the passes
    return whence.compare(whence.load("sentiment"), TEXTS, METHODS, rankings=39, steps=2)


def synthetic(better: int, texts: int) -> Many:
    """A method that holds on the first so many texts, beside a control that never does."""
    results = []
    for i in range(texts):
        judged = evidence(Verdict.BETTER, 0.01) if i < better else SAME
        words = (f"text{i} ", "is ", "not ", "bad ", "at ", "all")
        m = scored("lime", {2: 1.0}, judged, words=words)
        control = scored("random", {1: 1.0}, SAME, words=words, signed=False)
        results.append(compared(m, control))
    return Many(tuple(results))


def test_a_method_that_holds_more_often_than_chance_is_named():
    said = " ".join(many_sentences(synthetic(8, 10).answer))
    assert "lime (8 of 10 texts)" in said
    assert "The control, random scores, beats random rankings on 0 of 10 texts." in said
    assert "chance gives at most 0.5 of 10, on average" in said


def test_one_text_of_ten_is_what_chance_gives():
    answer = synthetic(1, 10).answer
    assert answer.holding == ()
    assert "The method that was tested does not beat random rankings on more texts" in " ".join(
        many_sentences(answer)
    )


def tally(method: str, better: int, texts: int = 40) -> Tally:
    counted = {Verdict.BETTER: better, Verdict.SAME: texts - better, Verdict.WORSE: 0}
    return tally_of(method, texts, counted, [])


def said_of(*tallies: Tally, texts: int = 40, explained: int = 0) -> list[str]:
    return many_sentences(answer_of_counts(texts, Counter(), tallies, texts, explained))


def test_attention_that_holds_alone_does_not_contradict_that_none_holds():
    """5 of 40 is p = .048 alone, and ten methods cannot afford it: both are said."""
    others = [tally(f"m{i}", 2) for i in range(9)]
    said = said_of(tally("attention-mean", 5), *others)
    assert said[2] == (
        "None of the 10 methods tested beats random rankings on more texts than chance allows, "
        "corrected for 10 methods."
    )
    assert said[3] == (
        "Attention alone (attention-mean) beats random rankings on 5 of 40 texts: more than chance "
        "allows if it had been the only one asked about, but not corrected for 10 methods."
    )
    # where it holds with them, or holds not at all, there is nothing to explain
    assert said_of(tally("attention-mean", 20), *others)[3].endswith(": more than chance allows.")
    assert said_of(tally("attention-mean", 4), *others)[3].endswith(": no more than chance allows.")
    alone = said_of(tally("attention-mean", 5))
    assert alone[2].startswith("Better than chance over the texts: attention-mean (5 of 40 texts)")
    assert alone[3].endswith(": more than chance allows.")


def test_attention_is_held_to_a_level_of_five_percent():
    """The enemy: twice the level. 2 of 10 is p = .086, and 3 of 10 is .012."""
    assert said_of(tally("attention-mean", 2, 10), texts=10)[-1].endswith(
        "2 of 10 texts: no more than chance allows."
    )
    assert said_of(tally("attention-mean", 3, 10), texts=10)[-1].endswith(
        "3 of 10 texts: more than chance allows."
    )


def test_what_chance_gives_is_of_the_methods_that_are_named():
    """The enemy: 2 of 40, of a method that was judged on 80."""
    said = said_of(tally("lime", 30), tally("rollout", 35, 80))[2]
    assert said.endswith("chance gives at most 5 % of the texts, on average.")


def test_the_best_three_are_named_and_the_others_counted():
    best = [tally(f"m{i}", 30 - i) for i in range(5)]
    three = "m0 (30 of 40 texts), m1 (29 of 40 texts) and m2 (28 of 40 texts)"
    assert said_of(*best[:3])[2].startswith(f"Better than chance over the texts: {three}; chance")
    more = three.replace(" and m2", ", m2")
    assert f": {more} and 1 more; chance" in said_of(*best[:4])[2]
    assert f": {more} and 2 more; chance" in said_of(*reversed(best))[2]


def test_what_columns_mean_is_said_of_the_methods_that_are_there():
    """The control is no method, of which one may be lucky; and nothing is said of no repetition."""
    two = [tally("lime", 1), tally("rollout", 1), tally("random", 1)]
    assert any("Of 2 methods, one may have a small p" in line for line in notes(two, 0))
    assert not any("small p by chance" in line for line in notes(two[1:], 0))
    assert notes(two, 1)[-1] == "1 text that stood there before: not counted again."
    assert notes(two, 12)[-1] == "12 texts that stood there before: not counted again."
    assert len(notes(two, 0)) == len(notes(two, 1)) - 1


def test_one_text_is_one_text():
    one = said_of(tally("lime", 0, 1), texts=1)
    assert one[0] == "1 text was explained."
    assert said_of(tally("attention-mean", 0, 1), texts=1)[-1].endswith(
        "0 of 1 text: no more than chance allows."
    )
    labels = Counter({f"l{i}": 9 - i for i in range(6)})
    five = Counter(dict(labels.most_common(5)))
    assert "other" not in many_sentences(answer_of_counts(35, five, (), 35, 0))[0]
    six = many_sentences(answer_of_counts(39, labels, (), 39, 0))[0]
    assert six.endswith("l3 for 6 and 2 other labels for the rest.")


def test_each_method_pays_for_the_number_of_methods():
    """Two of ten is p = 0.086 alone; three is 0.012, which ten methods cannot afford."""
    alone = synthetic(3, 10)
    assert [tally.method for tally in alone.answer.holding] == ["lime"]
    crowd = []
    for result in alone:
        every = dict(result.attributions)
        for i in range(9):
            every[f"m{i}"] = replace(every["random"], method=f"m{i}")
        crowd.append(replace(result, attributions=every))
    assert Many(tuple(crowd)).answer.holding == ()


def test_without_evidence_nothing_is_claimed():
    untested = Many((compared(scored("lime", {0: 1.0}, None)),))
    assert "No method was tested" in " ".join(many_sentences(untested.answer))


def test_the_same_answer_in_json_and_terminal(many, tmp_path):
    said = many_sentences(many.answer)
    assert many.to_dict()["answer"]["sentences"] == said
    shown = " ".join(str(many).split())
    for sentence in said:
        assert " ".join(sentence.split()) in shown
    assert whence.read(many.save(tmp_path / "many.json")) == many


def test_the_index_links_to_each_text_which_opens(many, browser, tmp_path):
    path = tmp_path / "many.html"
    many.to_html(path)
    context = browser.new_context(offline=True, viewport={"width": 1400, "height": 800})
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(path.as_uri())
    box = page.locator(".answer").first.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 800
    assert page.locator("details.one-text[open]").count() == 0
    assert page.locator(".index a").all_inner_texts() == TEXTS
    assert page.locator("b").count() == 0  # a text is data
    page.locator(".index a").nth(1).click()
    assert page.locator("details.one-text[open]").count() == 1
    second = page.locator("details.one-text[open] .answer")
    assert second.is_visible()
    assert page.title().startswith("whence: 2 texts, the first: not bad")
    assert wrong == []
    context.close()


def test_a_page_of_many_texts_is_short_until_one_opens_it(many, browser, tmp_path):
    path = tmp_path / "many.html"
    Many(many.results * 10).to_html(path)
    for width in (1400, 390):
        context = browser.new_context(offline=True, viewport={"width": width, "height": 800})
        page = context.new_page()
        page.goto(path.as_uri())
        size = page.evaluate(
            "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
        )
        assert size[0] <= width
        assert size[1] < 6000  # 65,644 pixels without a link, before there was an index
        context.close()


def test_chance_counts_as_many_methods_as_there_are_not_the_control():
    row = synthetic(1, 1).rows()[0]
    assert (row.better, row.same, row.worse) == (1, 0, 0)


def test_a_page_takes_as_long_for_each_text_however_many_there_are(monkeypatch):
    # would catch: all rows of the index made anew for each text
    calls = []
    real = Many.rows

    def rows(self):
        calls.append(len(self))
        return real(self)

    monkeypatch.setattr(Many, "rows", rows)
    synthetic(1, 2).to_html()
    few = len(calls)
    calls.clear()
    page = synthetic(1, 12).to_html()
    assert len(calls) == few
    assert page.count("What the words mean") == 1
