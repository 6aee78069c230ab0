"""Two texts compared, as a page and in a terminal."""

from __future__ import annotations

import re

import numpy as np

from tests.views.conftest import passage_of
from whence.core.heads import HeadTable, measured
from whence.core.maps import AttentionMaps, Axis
from whence.core.probe import probed
from whence.views.heads import heads_view
from whence.views.probe import probe_fragment, probe_page, probe_view
from whence.views.terminal import to_text

HOSTILE = "<img/src=x/onerror=alert(1)>"


def maps_of(text: str, seed: int) -> AttentionMaps:
    words = tuple(text.split())
    weights = (
        np.random.default_rng(seed)
        .dirichlet(np.ones(len(words)), (2, 3, len(words)))
        .astype(np.float32)
    )
    axis = Axis(words, np.zeros(len(words), dtype=bool), np.zeros(len(words), dtype=np.int64))
    return AttentionMaps(
        passage_of(text),
        {"encoder": weights},
        {"encoder": axis},
        {"encoder": axis},
        {"encoder": ("a", "b")},
    )


def test_the_page_is_escaped_and_needs_nothing(browser, tmp_path) -> None:
    p = probed(maps_of(f"so {HOSTILE} good", 0), maps_of(f"so {HOSTILE} bad", 1))
    path = tmp_path / "probe.html"
    p.to_html(path)
    page = browser.new_context(offline=True).new_page()
    wrong = []
    page.on("dialog", lambda d: (wrong.append(d.message), d.dismiss()))
    page.on("pageerror", lambda e: wrong.append(str(e)))
    page.goto(path.as_uri())
    assert wrong == []
    assert page.locator("img").count() == 0
    assert page.locator(".map tbody th.changed").inner_text() == "good → bad"
    tips = page.locator(".map tbody td").evaluate_all("(cells) => cells.map((c) => c.title)")
    assert len(tips) == 9
    assert float(tips[-1].split(": ")[-1]) == np.float64(f"{p.mean()[2, 2]:+.4f}")
    assert page.locator("body").evaluate("(b) => b.scrollWidth <= window.innerWidth")


def test_fragments_do_not_clash() -> None:
    p = probed(maps_of("a b", 0), maps_of("a c", 1))
    one, two = probe_fragment(p), probe_fragment(p)
    assert one.split('id="')[1][:19] != two.split('id="')[1][:19]
    assert "<!doctype html>" in probe_page(p)
    assert p._repr_html_().startswith("<section")


def test_the_terminal_shows_the_strongest() -> None:
    p = probed(maps_of("a b c", 0), maps_of("a x c d", 1))
    shown = to_text(lambda _: probe_view(p), width=100)
    top = p.strongest(1)[0]
    assert f"{top.change:+.3f}" in shown
    assert "they differ in: b → x" in shown
    assert "without a counterpart: d" in shown


def test_one_kind_of_attention_needs_no_column() -> None:
    """It took the room of “change” on a phone."""
    p = probed(maps_of("so good", 0), maps_of("so bad", 1))
    head, *_ = [h for h in to_text(lambda _: probe_view(p)).splitlines() if "layer-head" in h]
    assert head.split() == ["layer-head", "from", "to", "first", "second", "change"]
    listed = p.to_html().split("head by head")[1]
    heads = re.findall(r"<th scope=\"col\">([^<]*)</th>", listed)
    assert heads == head.split()
    first = re.findall(r"<t[hd]>(.*?)</t[hd]>", listed.split("<tbody>")[-1].split("</tr>")[0])
    assert len(first) == len(heads)


def test_heads_in_a_terminal(terminal) -> None:
    terminal(80)
    weights = np.stack([np.eye(4), np.full((4, 4), 0.25)])[None].astype(np.float32)
    columns = measured(weights, list("abcd"), np.zeros(4, dtype=bool))
    columns["output_change"] = np.array([[0.2, 0.1]])
    t = HeadTable("encoder", ("0",), ("0", "1"), columns, weights)
    assert "layer 0, head 0: self; entropy 0.000" in t._repr_html_()
    shown = to_text(lambda _: heads_view(t))
    assert "o self" in shown
    assert "~ broad" in shown
    assert shown.index("0-0") < shown.index("0-1")  # by what is lost without it
    assert "0.2" in shown
