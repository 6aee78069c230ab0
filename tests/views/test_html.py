"""The page as text: self-contained, escaped, small, and no two fragments in each other's way."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from tests.views.conftest import compared, image, made
from whence.core.attribution import Attribution
from whence.views.html import page

HOSTILE = "</script><img src=x onerror=alert(1)> <!--<script>"
VOID = {"meta", "img", "br", "wbr"}


class Balanced(HTMLParser):
    """Every element that opens closes, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parsed(html: str) -> Balanced:
    parser = Balanced()
    parser.feed(html)
    assert parser.open == []
    return parser


def data_of(html: str) -> dict:
    (raw,) = re.findall(r'<script type="application/json">(.*?)</script>', html, re.DOTALL)
    return json.loads(raw)


@pytest.mark.parametrize(
    "result",
    [made("so good"), compared("so good"), made(HOSTILE), compared(HOSTILE), compared(image())],
)
def test_well_formed_and_nothing_from_elsewhere(result):
    html = result.to_html()
    parser = parsed(html)
    assert not re.search(r"https?://|//cdn|@import|url\(", html)
    assert "link" not in parser.tags
    assert "iframe" not in parser.tags
    assert "default-src 'none'" in html


def test_text_is_data():
    assert "img" not in parsed(made(HOSTILE).to_html()).tags
    assert data_of(made(HOSTILE).to_html())["passage"]["text"] == HOSTILE


def test_the_data_is_the_result():
    a = made("so good <b>")
    assert Attribution.from_dict(data_of(a.to_html())) == a
    c = compared("so good")
    data = data_of(c.to_html())
    for name, one in data["attributions"].items():
        assert Attribution.from_dict({**one, "passage": data["passage"]}) == c[name]


def test_twenty_words_by_nine_methods_stay_small():
    assert len(compared("the quick brown fox jumps over it " * 3).to_html().encode()) < 150_000


def test_fragments_do_not_clash():
    a = made("so good")
    both = a._repr_html_() + compared("so bad")._repr_html_() + a._repr_html_()
    ids = parsed(both).ids
    assert len(ids) == len(set(ids)) == 3
    for name in ids:
        assert f'getElementById("{name}")' in both
    css = re.sub(
        r"/\*.*?\*/", "", re.findall(r"<style>(.*?)</style>", both, re.DOTALL)[0], flags=re.DOTALL
    )
    selectors = [
        s.strip()
        for rule in re.findall(r"([^{}]+)\{", css)
        for s in rule.split(",")
        if "@media" not in rule
    ]
    assert all(s.startswith((".whence", "@")) for s in selectors), [
        s for s in selectors if not s.startswith(".whence")
    ]


def test_a_page_is_the_same_each_time():
    assert compared("so good").to_html() == compared("so good").to_html()


def test_one_page_for_several_results():
    ids = parsed(page([made("so good"), compared("so bad")])).ids
    assert ids == ["whence-0", "whence-1"]


def test_numbers_are_there_without_colour_and_evidence_is_not_claimed():
    html = compared("so good").to_html()
    assert re.search(r'data-tip="so: [+-]\d', html)
    assert "None of the 8 methods was tested against random rankings" in html
    assert "Which methods can be believed" not in html
    assert "gap 0.31 %" in html
    assert "zero by construction" in html


def test_an_image_is_drawn_and_its_pixels_are_not_pasted_twice():
    html = compared(image()).to_html()
    assert html.count("data:image/png;base64,") == 1
    assert html.count('class="patches"') == 9
    assert "pixels" not in data_of(html)["passage"]
