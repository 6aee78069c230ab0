"""The page of a run in a real browser with the network off."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.views.overviews import overview, read_text, reading
from whence.core.agreement import Conflict
from whence.core.overview import Overview

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
    texts = [replace(text, says_none=text.row == 0, is_judged=False) for text in shown.texts]
    page = opened(replace(shown, texts=tuple(texts)))
    facts = page.locator("details.read .facts").all_inner_texts()
    assert [fact.startswith("none of its labels; highest is ") for fact in facts] == [
        text.says_none for text in sorted(texts, key=lambda t: (t.agreement is None, t.agreement))
    ]
