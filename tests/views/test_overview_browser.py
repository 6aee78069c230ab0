"""The page of a run in a real browser with the network off."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.views.overviews import overview, read_text, reading
from whence.core.agreement import Conflict
from whence.core.attribution import NO_LABEL
from whence.core.overview import CarryingWord, Overview

HOSTILE = "</script><img src=x onerror=alert(1)> <b>bold</b> 中国"


@pytest.fixture
def opened(browser, tmp_path):
    """Open the page of an overview; requests are noted, and complaints fail the test."""
    contexts = []

    def open_page(shown: Overview, at: str = "", **options):
        path = tmp_path / "page.html"
        shown.to_html(path)
        context = browser.new_context(offline=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.seen = []
        page.on("request", lambda request: page.seen.append(request.url))
        page.goto(path.as_uri() + at)
        page.locator("details.read").first.wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()


def listed(page) -> list[str]:
    return page.locator("details.read .words").all_inner_texts()


def test_a_text_of_several_labels_or_none_is_told_and_found_as_that(opened):
    """The highest label is no label that the model says, where it does not reach one half."""
    both = read_text(0, "so good", [0.2, 1.0], holding=(("good", 0.7), ("fine", 0.6)))
    none = read_text(1, "so so", [0.2, 1.0], probability=0.2, holding=(), label=None)
    page = opened(overview([both, none]))
    facts = page.locator("details.read .facts").all_inner_texts()
    assert any("good 70 %, fine 60 %" in told for told in facts)
    assert any("none of its labels; highest is good 20 %" in told for told in facts)
    for name, found in (("fine", ["so good"]), ("good", ["so good"]), (NO_LABEL, ["so so"])):
        page.locator("select[name=says]").select_option(name)
        assert listed(page) == found


def test_what_is_weak_is_less_than_a_tenth_in_the_page_too(opened):
    """13 of 127 steps are 10.2 %: of a method that is weak there it was 0.0997."""
    weak = Conflict(0, "so", "size", ("gradient-l2",), ("occlusion",), 1 / 3)
    one = read_text(0, "so good", [0.0997, 1.0], conflict=weak)
    one = replace(one, readings={**one.readings, "gradient-l2": reading([1.0, 0.5])})
    page = opened(overview([one]))
    page.locator("details.read summary").click()
    said = page.locator(".compared").inner_text()
    assert "“so” is strong in gradient-l2 (100 %), and weak in occlusion (< 10 %)." in said
    assert page.locator(".count").inner_text() == "1 text"


def test_texts_are_searched_by_word_and_label(opened):
    page = opened(overview())
    # those on which methods disagree most first; one that is too short to tell is last
    assert listed(page) == ["not good at all", "so good", "nothing bad"]
    words = page.get_by_label("Words")
    words.fill("not")
    assert listed(page) == ["not good at all", "nothing bad"]
    words.fill('"not"')
    assert listed(page) == ["not good at all"]
    assert page.locator("mark").all_inner_texts() == ["not"]
    assert page.locator(".count").inner_text() == "1 of 3 texts"
    words.fill("")
    page.locator("select[name=says]").select_option("bad")
    assert listed(page) == ["nothing bad"]
    page.locator("select[name=says]").select_option("")
    page.locator("select[name=right]").select_option("wrong")
    assert listed(page) == ["not good at all"]
    page.locator("select[name=right]").select_option("")
    page.locator("select[name=order]").select_option("row")
    assert listed(page) == ["so good", "not good at all", "nothing bad"]
    assert len(page.seen) == 1


def test_a_text_opens_on_its_comparison(opened):
    page = opened(overview())
    page.locator("summary", has_text="not good at all").click()
    text = page.locator("#text-1 .compared")
    text.wait_for()  # a text tells that it was opened a moment later
    assert text.locator(".strip strong").all_inner_texts() == ["occlusion", "gradient-l2", "random"]
    first = text.locator(".strip").first
    assert "not separable from random" in first.inner_text()
    assert "beats 98 % of random rankings, p = 0.020" in first.inner_text()
    assert first.locator(".text").inner_text() == "not good at all"
    # would catch: scores of another text or method, a lost sign
    tips = first.locator(".u").evaluate_all("(units) => units.map((unit) => unit.dataset.tip)")
    assert tips == ["not: −2", "good: +1", "at: 0", "all: +0.5"]
    dispute = text.locator("p", has_text="Most in dispute").inner_text()
    assert dispute == (
        "Most in dispute: “at” is strong in random (50 %), and weak in occlusion (0 %), "
        "gradient-l2 (0 %)."
    )
    kinds = first.locator(".u").evaluate_all("(units) => units.map((unit) => unit.className)")
    assert kinds[:2] == ["u n", "u p"]
    last = text.locator(".strip").last.locator(".u").first
    assert last.get_attribute("data-tip") == "not: 0.5"
    first.locator(".u").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.tip") == "good: +1"
    assert page.locator(".u.same").count() == 2


def test_a_word_leads_to_its_texts_and_a_link_to_a_text(opened):
    page = opened(overview(), at="#text-2")
    assert page.locator("#text-2").get_attribute("open") is not None
    page.get_by_role("button", name="good", exact=True).click()
    assert listed(page) == ["not good at all", "so good"]
    assert page.get_by_label("Words").input_value() == '"good"'
    page.locator("#words-by").select_option(label="gradient-l2")
    assert page.locator(".carrying button:visible").all_inner_texts() == ["the"]


@pytest.mark.parametrize(("scheme", "width"), [("light", 360), ("dark", 1200)])
def test_hostile_texts_are_shown_and_nothing_runs_over_the_side(opened, scheme, width):
    text = f"{HOSTILE} {'x' * 90}"
    hostile = read_text(0, text, [0.5] * len(text.split(" ")), label=HOSTILE, id=HOSTILE)
    page = opened(
        overview([hostile], source=HOSTILE),
        color_scheme=scheme,
        viewport={"width": width, "height": 800},
    )
    page.locator("details.read summary").click()
    assert page.locator(".compared .text").first.inner_text() == text
    assert page.locator("img, b:not(.often b)").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert len(page.seen) == 1


def test_many_texts_come_a_few_at_a_time(opened):
    texts = [read_text(row, f"text number{row}", [0.5, 1.0]) for row in range(90)]
    page = opened(overview(texts))
    assert page.locator("details.read").count() == 40
    page.get_by_role("button", name="Show 40 more").click()
    assert page.locator("details.read").count() == 80
    page.get_by_label("Words").fill("number89")
    assert listed(page) == ["text number89"]


@pytest.mark.parametrize("width", [390, 1280])
def test_bars_of_all_labels_have_one_scale(opened, width):
    """A bar of 3 % stood beside one of 21 % and was longer: each label had a scale of its own."""
    shares = {"good": (0.8, -0.4, 0.1), "bad": (0.03, 0.2, -0.05)}
    words = tuple(
        CarryingWord("occlusion", label, f"{label}{i}", 9, p, p, p, 9 * p, is_sure=False)
        for label, every in shares.items()
        for i, p in enumerate(every)
    )
    page = opened(overview(words=words), viewport={"width": width, "height": 900})
    bars = (
        page.locator(".columns")
        .first.locator("tr")
        .evaluate_all(
            """(rows) => rows.map((row) => [
            row.querySelector('button').dataset.word,
            row.querySelector('.track i').getBoundingClientRect().width,
        ])"""
        )
    )
    share_of = {word.word: abs(word.share) for word in words}
    assert len(bars) == len(words)
    pixels = np.array([length / share_of[word] for word, length in bars])
    assert np.allclose(pixels, pixels.mean(), rtol=0.05, atol=0)


def test_a_dispute_of_sign_has_its_signs(opened):
    # would catch: sizes without signs, where the sign is the matter; shares of another method
    text = read_text(0, "so not good", [2.0, -0.4, 0.1], agreement=None)
    readings = {**text.readings, "gradient-l2": reading([-0.1, 1.0, 0.3])}
    conflict = Conflict(1, "not", "sign", ("gradient-l2",), ("occlusion",), 0.5)
    made = replace(text, readings=readings, conflict=conflict)
    page = opened(overview([made], signed=(True, True, False)))
    page.locator("summary").first.click()
    dispute = page.locator("p", has_text="Most in dispute:").inner_text()
    assert "“not” is for good in gradient-l2 (+100 %), and against it in occlusion (−20 %)." in (
        dispute
    )


def test_where_none_of_the_labels_holds_the_page_does_not_say_one(opened):
    """Would catch: “threat 27 %” of a model that says yes or no to each label, and says none."""
    shown = overview()
    holds = {0: (), 1: (("good", 0.6),), 2: (("bad", 0.9),)}
    texts = [replace(text, holding=holds[text.row], is_judged=False) for text in shown.texts]
    page = opened(replace(shown, texts=tuple(texts)))
    facts = page.locator("details.read .facts").all_inner_texts()
    assert [fact.startswith("none of its labels; highest is ") for fact in facts] == [
        text.says_none for text in sorted(texts, key=lambda t: (t.agreement is None, t.agreement))
    ]
