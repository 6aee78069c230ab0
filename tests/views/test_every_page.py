"""What holds for every page that whence writes: one shell, one width, and nothing over the side."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import whence
from tests.notebook.test_page import hostile as notebook
from tests.views.audits import audit_with, observed
from tests.views.conftest import PROVENANCE, compared, image, judged
from tests.views.dashboards import board
from tests.views.evaluations import whole
from tests.views.generations import generation
from tests.views.overviews import overview
from tests.views.test_attention import maps_of
from tests.views.test_card import CARD
from tests.views.test_context_page import context_use
from tests.views.test_many_html import synthetic
from tests.views.test_planted import truth
from tests.views.test_probe import maps_of as maps_of_text
from tests.views.test_templates import made as templates
from whence.cli.theory import _write as write_theory
from whence.core.attribution import Cost
from whence.core.probe import probed
from whence.core.receipt import Dose, Receipt

LONG = "the food is great but the service is not bad and " + "x" * 90
DARK, LIGHT = "rgb(20, 22, 26)", "rgb(255, 255, 255)"
PHONE = 360  # pixels, the narrowest that is sold
LONGEST_WORD = 10  # letters of a name that has room everywhere


def receipt() -> Receipt:
    def dose(direction: Any, number: int, multiple: float) -> Dose:
        value = 0.1 + 0.05 * multiple + 0.01 * number
        return Dose(direction, number, multiple, value, value, value, 20 + value, value, LONG)

    doses = [dose("feature", 0, multiple) for multiple in (0.0, 1.0, 5.0)]
    doses += [dose("random", number, 5.0) for number in range(3)]
    return Receipt(
        feature=3,
        peak=2.0,
        asked=5.0,
        prompt=LONG,
        meaning="promoted",
        about="a, b",
        plain=dose("feature", 0, 0.0),
        doses=tuple(doses),
        texts=12,
        tokens=300,
        cost=Cost(3, 0, 0.1),
        provenance=PROVENANCE,
    )


def theory(path: Path) -> None:
    write_theory([judged(compared(LONG))], [notebook()], path)


def saved(make: Callable[[], Any]) -> Callable[[Path], None]:
    return lambda path: make().to_html(path)


# a page of each kind, and the file that makes its document
PAGES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "compare": ("html", saved(lambda: judged(compared(LONG)))),
    "image": ("html", saved(lambda: compared(image()))),
    "theory": ("html", theory),
    "many": ("many_html", saved(lambda: synthetic(3, 6))),
    "run": ("overview", saved(overview)),
    "attention": ("attention", saved(lambda: maps_of(9))),
    "two texts": (
        "probe",
        saved(lambda: probed(maps_of_text(LONG, 0), maps_of_text(f"{LONG} y", 1))),
    ),
    "templates": ("templates", saved(lambda: templates(0.1, -0.4, 0.3))),
    "generation": ("generation_page", saved(lambda: generation(LONG, [" it", " fell"]))),
    "context": ("context_page", saved(context_use)),
    "evaluation": ("evaluation_page", saved(whole)),
    "audit": (
        "audit_page",
        saved(lambda: audit_with(observed(12, change=lambda: 0.4, jsd=lambda: 0.3))),
    ),
    "card": ("card_page", saved(lambda: CARD)),
    "planted": ("planted_html", saved(truth)),
    "features": ("features_page", saved(board)),
    "receipt": ("receipt_page", saved(receipt)),
    "lab": ("page", saved(notebook)),
}


def test_there_is_a_page_of_every_kind() -> None:
    source = Path(whence.__file__).parent
    files = [*(source / "views").glob("*.py"), *(source / "notebook").glob("*.py")]
    calls = re.compile(r"^    return document\(", re.MULTILINE)
    makers = {file.stem for file in files if calls.search(file.read_text(encoding="utf-8"))}
    assert makers == {maker for maker, _ in PAGES.values()}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The file of a page, made when it is first asked for."""
    folder = tmp_path_factory.mktemp("pages")

    def path_of(name: str) -> Path:
        path = folder / f"{name}.html"
        if not path.exists():
            PAGES[name][1](path)
        return path

    return path_of


def opened(browser: Any, path: Path, width: int, scheme: str = "light") -> Any:
    context = browser.new_context(
        offline=True, color_scheme=scheme, viewport={"width": width, "height": 800}
    )
    page = context.new_page()
    page.goto(path.as_uri())
    return page


def ground(page: Any) -> str:
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


@pytest.mark.parametrize("name", PAGES)
def test_nothing_runs_over_the_side(name: str, browser: Any, written: Any) -> None:
    """Nor when all is open: what is wide scrolls inside itself."""
    page = opened(browser, written(name), PHONE)
    for is_open in (False, True):
        page.evaluate(f"document.querySelectorAll('details').forEach((d) => d.open = {is_open:d})")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE
        # what stands beyond the side and cannot be scrolled to is cut off
        beyond = page.evaluate(
            """(width) => [...document.querySelectorAll('body *')]
                .filter((e) => e.checkVisibility() && !e.closest('.scroll, pre'))
                .filter((e) => e.getBoundingClientRect().right > width + 1)
                .map((e) => e.outerHTML.slice(0, 80))""",
            PHONE,
        )
        assert beyond == []
    page.close()


# Of the letters in a text node those of one word lie on one line, and a menu shows what was chosen.
# A word of more letters may be broken; where text scrolls, or is drawn, it is not asked.
CUT = """() => {
    const cut = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode, holder = node.parentElement;
        if (!holder.checkVisibility() || holder.closest('svg, script, style, option')) continue;
        for (const found of node.data.matchAll(/\\p{Script=Latin}{2,8}/gu)) {
            const range = document.createRange();
            range.setStart(node, found.index);
            range.setEnd(node, found.index + found[0].length);
            const tops = [...range.getClientRects()].map((r) => Math.round(r.top));
            const beside = [found.index - 1, found.index + found[0].length];
            const is_long = beside.some((at) => /\\p{Script=Latin}/u.test(node.data[at] || ''));
            if (!is_long && Math.max(...tops) - Math.min(...tops) > 4) cut.push(found[0]);
        }
    }
    const pen = document.createElement('canvas').getContext('2d');
    for (const menu of document.querySelectorAll('select')) {
        if (!menu.checkVisibility()) continue;
        const style = getComputedStyle(menu);
        pen.font = style.font;
        const inner = menu.clientWidth - parseFloat(style.paddingLeft) - ARROW;
        const chosen = menu.selectedOptions[0].textContent;
        if (pen.measureText(chosen).width > inner) cut.push(`menu: ${chosen}`);
    }
    return cut;
}""".replace("ARROW", "20")


@pytest.mark.parametrize("name", PAGES)
def test_no_short_word_is_broken_and_no_menu_is_cut(name: str, browser: Any, written: Any) -> None:
    """Would catch: the words beside bars on a phone, a letter or two on each line."""
    page = opened(browser, written(name), 390)
    page.evaluate("document.querySelectorAll('details').forEach((d) => d.open = true)")
    page.wait_for_timeout(100)
    assert page.evaluate(CUT) == []
    page.close()


@pytest.mark.parametrize("name", PAGES)
def test_no_word_is_broken_in_the_middle_on_a_telephone(
    name: str, browser: Any, written: Any
) -> None:
    """Unless it is longer than most words are: a name stood there with one letter on each line."""
    page = opened(browser, written(name), PHONE)
    page.evaluate("document.querySelectorAll('details').forEach((d) => d.open = true)")
    broken = page.evaluate(
        """(longest) => {
            const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            const broken = [];
            while (walker.nextNode()) {
                const node = walker.currentNode, word = node.textContent.trim();
                if (!/^[\\p{L}]+$/u.test(word) || word.length > longest) continue;
                if (!node.parentElement.checkVisibility()) continue;
                const range = document.createRange();
                range.setStart(node, node.textContent.indexOf(word));
                range.setEnd(node, node.textContent.indexOf(word) + word.length);
                const lines = new Set([...range.getClientRects()].map((r) => Math.round(r.top)));
                if (lines.size > 1) broken.push(word);
            }
            return broken;
        }""",
        LONGEST_WORD,
    )
    assert broken == []
    page.close()


def test_a_card_is_read_on_a_telephone_without_moving_it_sideways(
    browser: Any, written: Any
) -> None:
    """Each answer stands below its method, with what was asked before it."""
    page = opened(browser, written("card"), PHONE)
    wide = page.evaluate("[...document.querySelectorAll('.scroll')].map((e) => e.scrollWidth)")
    assert max(wide) <= PHONE
    asked = page.locator(".asked:visible").all_inner_texts()
    assert len(asked) == page.locator(".answers td").count() > 0
    page.set_viewport_size({"width": 1200, "height": 800})
    assert page.locator(".asked:visible").count() == 0
    page.close()


@pytest.mark.parametrize("name", PAGES)
def test_the_button_says_what_it_will_do_and_does_it(name: str, browser: Any, written: Any) -> None:
    for scheme, first in (("light", "Dark"), ("dark", "Light")):
        page = opened(browser, written(name), 1000, scheme)
        button = page.locator(".shell button")
        colours = {"Dark": LIGHT, "Light": DARK}
        other = {"Dark": "Light", "Light": "Dark"}[first]
        assert (button.inner_text(), ground(page)) == (first, colours[first])
        before = inks(page)
        button.click()
        assert (button.inner_text(), ground(page)) == (other, colours[other])
        assert inks(page) != before
        button.click()
        assert (button.inner_text(), ground(page)) == (first, colours[first])
        page.close()


@pytest.mark.parametrize("name", PAGES)
def test_paper_is_white_and_has_no_button(name: str, browser: Any, written: Any) -> None:
    """Also when the reader has chosen the dark."""
    page = opened(browser, written(name), 1000, "light")
    in_light = inks(page)
    page.locator(".shell button").click()
    assert inks(page) != in_light
    page.emulate_media(media="print")
    assert ground(page) == LIGHT
    assert page.locator(".shell").is_hidden()
    assert inks(page) <= in_light
    page.close()


def inks(page: Any) -> set[str]:
    """The colours of all headings and paragraphs, and of what they stand on."""
    return set(
        page.evaluate(
            """() => [...document.querySelectorAll('h1, h2, h3, p, th')]
            .filter((e) => !e.closest('svg')).map((e) => getComputedStyle(e))
            .map((s) => s.color + s.backgroundColor)"""
        )
    )


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_as_wide_as_the_others(name: str, browser: Any, written: Any) -> None:
    page = opened(browser, written(name), 1920)
    widths = page.evaluate(
        """() => ['.shell', '.whence', '.whence-maps', '.wp', '.lab']
            .map((s) => document.querySelector(s)).filter(Boolean)
            .map((e) => Math.round(e.getBoundingClientRect().width))"""
    )
    assert len(widths) >= 2
    assert set(widths) == {1248}  # 78rem
    page.close()


def test_a_bar_of_the_head_view_is_as_long_as_its_number(browser: Any, written: Any) -> None:
    page = opened(browser, written("attention"), 1280)
    page.locator(".place .number:not(:empty)").first.wait_for()
    for heads in (1, "all"):
        if heads == "all":
            page.locator(".every").click()
        bars = page.locator(".places.to .place").evaluate_all(
            """(places) => places.map((p) => [
                p.querySelector('.number').textContent,
                p.querySelector('.strip').style.background])"""
        )
        shown = [(float(n.split()[0]), ends(b)) for n, b in bars if b and n[0] != "<"]
        assert len(shown) > 3
        numbers, lengths = np.array([(n, lengths[-1]) for n, lengths in shown]).T
        assert numbers.max() > 1.5 * numbers.min()
        assert np.allclose(lengths, 100 * numbers / numbers.max(), atol=1)
    page.close()


def ends(gradient: str) -> list[float]:
    """Where the parts of a bar end, in percent of the width."""
    return [float(end) for end in re.findall(r"([\d.e-]+)%(?=[,)])", gradient)]


def test_the_words_of_the_head_view_are_whole_on_a_phone(browser: Any, tmp_path: Path) -> None:
    """Would catch: “mom…” beside half an empty screen."""
    path = tmp_path / "page.html"
    maps_of(["[CLS]", "not", "a", "single", "dull", "moment", "surprises", "[SEP]"]).to_html(path)
    page = opened(browser, path, 390)
    page.locator(".place .number:not(:empty)").first.wait_for()
    cut = page.locator(".place .label").evaluate_all(
        "(all) => all.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.textContent)"
    )
    assert cut == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()


def test_a_weight_that_is_stored_as_nothing_is_not_said_to_be_nothing(
    browser: Any, tmp_path: Path
) -> None:
    """Would catch: 0.0 % for 0.06 %, which a byte cannot hold beside 93 %."""
    maps = maps_of(["[CLS]", "not", "dull", "at", "all", "[SEP]"], 1, 1)
    weights = np.full((1, 1, 6, 6), 0.05, dtype=np.float32)
    weights[..., 0] = 0.9 - 0.15
    weights[..., 5] = 0.0006
    path = tmp_path / "page.html"
    replace(maps, weights={"encoder": weights}).to_html(path)
    page = opened(browser, path, 1280)
    page.locator(".place .number:not(:empty)").first.wait_for()
    page.locator(".places.from .place").nth(1).hover()
    shown = page.locator(".places.to .number").all_inner_texts()
    assert "0.0 %" not in shown
    *_, last = [one for one in shown if one]
    assert last.startswith("< ")
    assert 0.06 < float(last.split()[1]) <= 0.2
    page.close()
