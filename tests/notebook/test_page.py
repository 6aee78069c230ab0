"""A lab's page: nothing in it is more than text, and it needs no network."""

from __future__ import annotations

import re

import pytest

from tests.views.conftest import own
from whence.notebook.book import Notebook
from whence.notebook.page import notebook_fragment, notebook_page, pages

HOSTILE = (
    "</style></section><script>alert(1)</script><img src=x onerror=alert(1)> \x1b[31m &amp; 中国"
)


def drawn(values=(3, 1)):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    fig, ax = pyplot.subplots(figsize=(3, 2))
    ax.plot([1, 2], values, label="clipped")
    ax.legend()
    return fig


def hostile() -> Notebook:
    book = Notebook(HOSTILE, quick=True)
    book.say(HOSTILE)
    book.head(HOSTILE)
    book.say(HOSTILE + "\nsecond line", code=True)
    book.figure("first", drawn(), HOSTILE + '" onload="alert(1)')
    book.head("two")
    book.figure("second", drawn(), "the same drawing under another name")
    book.table("table", (HOSTILE, "b"), [(HOSTILE, 0.123456), ("x", True)], HOSTILE)
    book.claim(HOSTILE, HOSTILE, False)
    return book


def ids(page: str) -> list[str]:
    return re.findall(r'\sid="([^"]*)"', page)


def test_every_text_is_escaped():
    page = own(notebook_page(hostile()))
    assert "<script" not in page
    assert "<img" not in page
    assert "\x1b" not in page
    assert 'onload="' not in page
    # title 2, text 3, outline 1, figure 2, table 4, claim 2, tally 1
    assert page.count("&lt;script&gt;") == 15


def test_ids_do_not_collide():
    # figures of one page, of two labs in one page, and of two notebooks in one Jupyter
    one, other = hostile(), Notebook("other")
    other.figure("first", drawn((1, 2)), "same name, another drawing")
    for page in (
        notebook_page(one),
        pages([one, other], "both"),
        notebook_fragment(one) + notebook_fragment(other),
    ):
        found = ids(page)
        assert len(found) > 20
        assert len(found) == len(set(found))
        used = set(re.findall(r"url\(#([^)]*)\)", page)) | set(re.findall(r'href="#([^"]*)"', page))
        assert used
        assert used <= set(found)


def test_a_fragment_changes_nothing_around_it():
    # rules for body or :root would restyle the whole of Jupyter
    style = re.search(r"<style>(.*?)</style>", notebook_fragment(hostile()), re.S)
    assert style is not None
    bare = re.sub(r"/\*.*?\*/", "", style[1], flags=re.S)
    bare = re.sub(r"@media[^{]*\{((?:[^{}]*\{[^{}]*\})*)[^{}]*\}", r"\1", bare)
    selectors = [s.strip() for rule in re.findall(r"([^{}]+)\{", bare) for s in rule.split(",")]
    assert len(selectors) > 20
    assert all(s.startswith((".lab", ".labs")) for s in selectors)
    assert 'class="labs"' not in notebook_fragment(hostile())


def test_several_labs_have_links_and_one_has_none():
    one = Notebook("first")
    assert "<nav" not in pages([one], "one")
    assert re.findall(r'<a href="#(lab-\d)">', pages([one, Notebook("second")], "two")) == [
        "lab-0",
        "lab-1",
    ]


def test_numbers_and_failed_claims_are_told():
    page, shown = notebook_page(hostile()), str(hostile())
    assert ">0.1235<" in page
    assert ">yes<" in page
    assert '<td class="poor">not borne out</td>' in page
    assert "not borne out" in shown
    assert "0.123" in shown  # three digits in a terminal
    assert "\x1b[31m" not in shown


@pytest.mark.parametrize("room", [60, 80, 120])
def test_a_wide_table_shows_every_column_and_nothing_is_cut(room, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(room))
    book = Notebook("wide")
    columns = ("model", "talk, factor 3/2", "the same, factor 1", "first order, corrected", "n")
    name = "the same, [UNK] with a value of its own"
    book.table("errors", columns, [(name, 0.509, 5.52e-05, 0.00957, 1500)], "Errors.")
    lines = str(book).splitlines()
    assert max(map(len, lines)) <= room
    words = " ".join(lines).split()
    for word in (*" ".join(columns).split(), *name.split(), "0.509", "5.52e-05", "0.00957", "1500"):
        assert word in words


def test_the_text_of_a_lab_is_printed_in_its_order():
    book = Notebook("a lab")
    book.head("First")
    book.say("Why it is done.")
    book.table("numbers", ("n",), [(1,)], "One number.")
    book.claim("One is one", "1", True)
    shown = str(book)
    places = [shown.index(part) for part in ("First", "Why it", "One number.", "1 of 1 claims")]
    assert places == sorted(places)


def test_the_first_slide_tells_what_holds_and_leads_to_the_others(browser, tmp_path):
    book = Notebook("a lab")
    book.head("First")
    book.head("Second")
    book.claim("One is one", "1", True)
    book.claim("One is two.", "1", False)
    path = tmp_path / "page.html"
    book.to_html(path)
    page = browser.new_page(viewport={"width": 1300, "height": 800})
    page.goto(path.as_uri())
    first = page.locator("#slide-0-0")
    assert "1 of 2 claims holds; not borne out: One is two." in first.inner_text()
    assert first.locator("ol a").all_inner_texts() == ["First", "Second", "Claims"]
    for link in first.locator("ol a").all():
        wanted = page.locator(link.get_attribute("href")).locator("h2").inner_text()
        assert wanted == link.inner_text()
    page.close()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_offline_and_its_slides_can_be_stepped_through(browser, tmp_path, scheme):
    path = tmp_path / "page.html"
    hostile().to_html(path)
    context = browser.new_context(
        offline=True, color_scheme=scheme, viewport={"width": 1300, "height": 800}
    )
    page, seen, wrong = context.new_page(), [], []
    page.on("request", lambda request: seen.append(request.url))
    page.on(
        "console",
        lambda message: (
            wrong.append(message.text) if message.type in ("error", "warning") else None
        ),
    )
    page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    page.goto(path.as_uri())
    assert wrong == []
    assert seen == [path.as_uri()]
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 1  # the button of every page
    assert page.locator("svg").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    heights = page.evaluate(
        "[...document.querySelectorAll('section')].map(s => s.getBoundingClientRect().height)"
    )
    assert len(heights) == 4
    assert min(heights) >= 800
    page.locator("#slide-0-0").get_by_label("the next slide").click()
    assert (
        abs(page.evaluate("document.querySelector('#slide-0-1').getBoundingClientRect().top")) < 2
    )
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 22, 26)"}[scheme]
    context.close()


@pytest.mark.slow
def test_a_narrow_screen_scrolls_no_page_sideways(browser, tmp_path):
    path = tmp_path / "page.html"
    hostile().to_html(path)
    context = browser.new_context(offline=True, viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()
