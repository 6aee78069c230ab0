"""Many texts on one page: the answer over all, links that open, each text folded."""

from __future__ import annotations

from dataclasses import replace

import pytest

import whence
from tests.core.test_answer import SAME, compared, evidence, scored
from whence.core.evidence import Verdict
from whence.core.many import Many
from whence.views.answering_of_many import many_sentences

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
    assert "The control, random scores, beats them on 0 of 10." in said


def test_one_text_of_ten_is_what_chance_gives():
    answer = synthetic(1, 10).answer
    assert answer.holding == ()
    assert "None of the methods tested (1) beats random rankings on more texts" in " ".join(
        many_sentences(answer)
    )


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
