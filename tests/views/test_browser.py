"""The page in a real browser with the network off."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import whence
from tests.views.conftest import compared, image, judged, made
from whence.views.answering import answer_sentences

HOSTILE = "</script><img src=x onerror=alert(1)> great <b>bold</b> 中国 👨‍👩‍👧"


@pytest.fixture
def opened(browser, tmp_path):
    """Open a result's page; every request, console error and dialog is noted."""
    contexts = []

    def open_page(result, **options):
        path = tmp_path / "page.html"
        result.to_html(path)
        context = browser.new_context(offline=True, accept_downloads=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.seen, page.wrong = [], []
        page.on("request", lambda request: page.seen.append(request.url))
        page.on(
            "console",
            lambda message: (
                page.wrong.append(message.text) if message.type in ("error", "warning") else None
            ),
        )
        page.on("pageerror", lambda error: page.wrong.append(str(error)))
        page.on("dialog", lambda dialog: (page.wrong.append(dialog.message), dialog.dismiss()))
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()


def test_no_page_keeps_anything_in_the_browser():
    """Nor could tests share a context, if one did: the next page would begin with it."""
    keeps = re.compile(r"localStorage|sessionStorage|indexedDB|\bcaches\b|\.cookie\b")
    scripts = list((Path(whence.__file__).parent / "views" / "static").glob("*.js"))
    assert len(scripts) > 5
    assert [script.name for script in scripts if keeps.search(script.read_text())] == []
    assert keeps.search("document.cookie = 'a=b'")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_hostile_text_is_shown_and_does_nothing(opened, scheme):
    page = opened(compared(HOSTILE), color_scheme=scheme)
    assert page.wrong == []
    assert [url for url in page.seen if not url.startswith("file:")] == []
    assert len(page.seen) == 1
    assert page.locator("img").count() == 0
    assert page.locator("b").count() == 0
    assert page.locator(".text").first.inner_text() == HOSTILE
    ground = page.evaluate("getComputedStyle(document.querySelector('.whence')).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 22, 26)"}[scheme]


def test_the_keyboard_reaches_every_score(opened):
    page = opened(made("so very good", scores=[0.5, -0.25, 0.125]))
    page.locator(".u").first.focus()
    assert (
        page.evaluate("getComputedStyle(document.activeElement, '::after').content") == '"so: +0.5"'
    )
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.tip") == "very: -0.25"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")  # the last one: stays
    assert page.evaluate("document.activeElement.textContent") == "good"
    assert (
        page.locator(".text .u[tabindex='0']").count() == 1
    )  # one tab stop a text, not one a word


def test_the_same_unit_lights_up_in_every_method(opened):
    page = opened(compared("so very good"))
    page.locator(".text .u[data-i='1']").first.hover()
    assert page.locator(".u.same").count() == 8


def test_the_download_is_the_whole_comparison(opened):
    c = compared("so good")
    page = opened(c)
    page.locator("summary", has_text="Settings").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download JSON").click()
    assert json.loads(download.value.path().read_text()) == json.loads(json.dumps(c.to_dict()))


@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_runs_over_the_side(opened, width):
    page = opened(
        compared(
            "the food is great and the selection on the menu is great but the service is not bad "
            + "x" * 90
        ),
        viewport={"width": width, "height": 800},
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_for_and_against_differ_in_colour(opened):
    page = opened(made("so good", scores=[1.0, -1.0]))
    colours = page.evaluate(
        "[...document.querySelectorAll('.u')].map((u) => getComputedStyle(u).backgroundColor)"
    )
    assert len(set(colours)) == 2
    assert "rgba(0, 0, 0, 0)" not in colours


@pytest.mark.slow
def test_an_image_is_drawn(opened):
    page = opened(compared(image()))
    assert page.wrong == []
    assert page.locator("img.pixels").evaluate("(i) => [i.naturalWidth, i.naturalHeight]") == [
        12,
        8,
    ]
    assert page.locator(".patches").first.locator(".u").count() == 6
    assert page.locator(".patches .u").first.bounding_box()["width"] > 10


@pytest.mark.slow
def test_it_prints_in_light_with_the_whole_table(opened):
    page = opened(compared(" ".join(f"w{i}" for i in range(80))), color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert (
        page.evaluate("getComputedStyle(document.querySelector('.whence')).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    assert (
        page.evaluate("getComputedStyle(document.querySelector('.scroll')).overflowY") == "visible"
    )


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_folded_parts_open_and_everything_can_be_read(opened, scheme):
    page = opened(
        judged(compared("the food is great but the service is not bad")), color_scheme=scheme
    )
    assert page.locator(".card").first.is_hidden()
    for summary in page.locator("details.fold > summary").all():
        summary.click()
    assert page.wrong == []
    assert page.locator(".card svg.curves").count() == 18
    assert page.locator(".card svg.curves").first.bounding_box()["width"] > 150
    contrast = page.evaluate(
        """() => {
          const rgb = (c) => c.match(/[0-9.]+/g).slice(0, 3).map((v) => v / 255);
          const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
          const light = (c) => rgb(c).map(linear)
            .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
          const root = document.querySelector(".whence");
          const ground = light(getComputedStyle(root).backgroundColor);
          return ["better", "worse", "unclear"].map((kind) => {
            const badge = root.querySelector(".badge").cloneNode();
            badge.className = `badge ${kind}`;
            root.append(badge);
            const ink = light(getComputedStyle(badge).color);
            return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
          });
        }"""
    )
    assert min(contrast) >= 4.5  # WCAG AA


@pytest.mark.slow
def test_a_print_opens_what_is_folded(opened):
    page = opened(judged(compared("so very good")))
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details.fold:not([open])").count() == 0


@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_runs_over_the_side_when_all_is_open(opened, width):
    page = opened(
        judged(compared("the food is great but the service is not bad " + "x" * 90)),
        viewport={"width": width, "height": 800},
    )
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


# ---------------------------------------------------------------------- the answer first

FIRST_SCREEN = 800  # pixels


@pytest.fixture(scope="module")
def real():
    text = "the food is great but the service is not bad and the prices are fine"
    methods = ["occlusion", "gradient-x-input", "gradient-l2", "attention-mean", "random"]
    # the fewest rankings: the page is drawn alike, for a tenth of the passes
    return whence.compare(whence.load("sentiment"), text, methods, rankings=39, steps=2)


@pytest.mark.parametrize("width", [1400, 390])
def test_the_first_screen_holds_the_answer(opened, real, width):
    for result in (real, real["occlusion"]):
        page = opened(result, viewport={"width": width, "height": FIRST_SCREEN})
        assert page.wrong == []
        answer = page.locator(".answer")
        box = answer.bounding_box()
        assert box["y"] + box["height"] <= FIRST_SCREEN
        assert box["x"] + box["width"] <= width
        said = " ".join(answer_sentences(result.answer)[:2])
        assert answer.inner_text().replace("\xa0", " ") == said


def test_on_a_wide_screen_the_text_is_there_at_once_too(opened, real):
    page = opened(real, viewport={"width": 1400, "height": FIRST_SCREEN})
    box = page.locator(".strip:visible .text").bounding_box()
    assert box["y"] + box["height"] <= FIRST_SCREEN


def test_the_text_is_coloured_by_the_best_method_and_by_any_that_is_chosen(opened, real):
    page = opened(real)
    assert page.locator(".strip:visible").count() == 1
    assert real.answer.shown in page.locator(".strip:visible .text").get_attribute("aria-label")
    menu = page.locator("select.method")
    menu.select_option(label="~ random: not separable")
    assert "random" in page.locator(".strip:visible .text").get_attribute("aria-label")
    menu.select_option("all")
    assert page.locator(".strip:visible").count() == len(real.attributions)


def test_reading_order_is_answer_cautions_text_verdicts_folds(opened, real):
    page = opened(real)
    order = page.evaluate(
        """() => ['.answer', '.choice', '.strip .text', '.costs', '.fold']
            .map((s) => document.querySelector(s))
            .every((e, i, all) => i === 0
                || (all[i - 1].compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING))"""
    )
    assert order
    stops = page.evaluate(
        """() => [...document.querySelectorAll('select, [tabindex="0"], summary, button')]
            .filter((e) => e.checkVisibility()).map((e) => e.className || e.tagName)"""
    )
    assert stops[:2] == ["BUTTON", "method"]  # light or dark, the menu, the words of the text
    assert stops[2].startswith("u ")


def test_orange_and_blue_mean_for_and_against_only(opened, real):
    page = opened(real, color_scheme="light")
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    for_it, against = "rgb(245, 133, 24)", "rgb(76, 155, 232)"
    strokes = page.evaluate(
        """() => [...document.querySelectorAll('.curves .line, .curves .middle')]
            .map((e) => getComputedStyle(e).stroke)"""
    )
    assert strokes
    assert for_it not in strokes
    assert against not in strokes
