"""The page of an autoencoder's features: its size, its numbers, and what it does in a browser."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace

import numpy as np
import pytest

import whence
from tests.views.dashboards import board
from whence.core.dashboard import Dashboard, Weighed
from whence.core.errors import InputError
from whence.views.features_data import STEPS, TYPES

HOSTILE = [
    "</script><img",
    "<b>bold</b>",
    "onerror=alert(1)",
    "\x1b[31m",
    "\u202e",
    "שלום",
    "👨‍👩‍👧",
    "&amp;",
    "\n",
]


def columns(page: str) -> dict[str, np.ndarray | dict]:
    """What a page has packed, by name."""
    found = re.findall(r'data-blob="(\w+)" data-type="(\w+)">(.*?)</script>', page)
    read: dict[str, np.ndarray | dict] = {}
    for name, kind, content in found:
        raw = zlib.decompress(base64.b64decode(content))
        read[name] = json.loads(raw) if kind == "json" else np.frombuffer(raw, TYPES[kind])
    return read


def test_a_thousand_features_with_twenty_passages_each_take_less_than_five_megabytes():
    rng = np.random.default_rng(0)
    letters = list("abcdefghijklmnopqrstuvwxyz")
    # drawn at random, no two passages alike: nothing that deflate could use
    words = ["".join(rng.choice(letters, size=int(n))) for n in rng.integers(2, 9, size=4000)]
    page = board(1000, 20, words, shared=False).to_html()
    # would catch: a text for each feature, numbers as JSON
    assert len(page.encode()) < 5_000_000


def test_activations_are_off_by_at_most_half_a_step_and_stand_at_their_tokens():
    b = board(12, 5)
    packed = columns(b.to_html())
    pieces, at = packed["about"]["pieces"], 0
    starts = np.concatenate([[0], np.cumsum(packed["lengths"].astype(int))])
    top_number = 0
    for card in b.features:
        for top in card.tops:
            values = packed["values"][at : at + len(top.values)] * card.peak / STEPS
            at += len(top.values)
            # half a step; what is not zero is never shown as zero, so the first step is whole
            assert np.abs(values - top.values).max() <= card.peak / STEPS
            assert ((values > 0) == (top.values > 0)).all()
            first = starts[packed["excerpt"][top_number]] + packed["start"][top_number]
            ids = packed["ids"][first : first + len(top.values)]
            # would catch: excerpts that are taken for windows
            assert "".join(pieces[i] for i in ids) == b.text(top)
            top_number += 1
    assert at == len(packed["values"])


def test_nothing_in_it_comes_from_elsewhere_or_acts():
    page = board(8, 3, HOSTILE).to_html()
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    assert "<img" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page


def test_it_is_the_same_after_a_file(tmp_path):
    b = board(5, 3)
    back = whence.read(b.save(tmp_path / "b.json"))
    assert isinstance(back, Dashboard)
    assert back.to_dict() == b.to_dict()
    assert back.to_html() == b.to_html()


def test_what_points_to_nothing_is_refused():
    b = board(3, 2)
    with pytest.raises(InputError, match="outside the 10 features"):
        b[10]
    with pytest.raises(InputError, match="never active"):
        b[7]
    card = b.features[0]
    gone = replace(card, tops=(replace(card.tops[0], excerpt=999),))
    with pytest.raises(InputError, match="excerpt 999"):
        replace(b, features=(gone,))
    with pytest.raises(InputError, match="bins"):
        replace(b, features=(replace(card, histogram=card.histogram[:-1]),))


def test_a_word_finds_features_that_fire_on_it_first():
    b = board(20, 6)
    word = b.fires_on(b.features[4])[0]
    found = b.find(word)
    fires = [sum(word in name for name in b.fires_on(card, 99)) for card in found]
    assert fires[0] > 0
    assert fires == sorted(fires, reverse=True)
    assert b.find("zebra") == []


def test_in_a_terminal():
    b = replace(board(20, 6, HOSTILE), notes=("Nothing was left out.",))
    assert "Nothing was left out." in str(b)
    shown = str(b) + b.to_text(feature=3)
    assert "Feature 3" in shown
    assert "and 8 more" in shown
    assert "\x1b" not in shown.replace("\x1b[", "") or "\x1b[31m" not in shown


def test_tokens_are_told_apart_from_the_marks_between_them(monkeypatch):
    """Would catch: “,, ., ' to', ;”, and “promotes , +0.1, . +0.099, ' to' +0.095, '\\x0a'”."""
    monkeypatch.setenv("COLUMNS", "80")
    b = board(3, 2, words=[",", ".", "--"])
    promoted = tuple(Weighed(name, 0.1) for name in (",", ".", " to", "to", "\n"))
    b = replace(b, features=tuple(replace(card, promotes=promoted) for card in b.features))
    (line,) = [line for line in b.to_text(feature=1).splitlines() if line.startswith("promotes")]
    assert line.startswith("promotes     “,” +0.1, “.” +0.1, “␣to” +0.1, “to” +0.1, “⏎” +0.1")
    for shown in (str(b), b.to_html().split("As a table")[1]):
        assert "“,”" in shown
        assert "“␣to”" in shown
        assert ",, " not in shown
    heads = next(line for line in str(b).splitlines() if "fires on" in line)
    assert heads.split() == ["feature", "of", "tokens", "largest", "fires", "on", "promotes"]


def test_a_class_that_is_promoted_is_a_name_and_no_words():
    b = board(3, 2, effects="clamped")
    promoted = (Weighed("positive", 0.1),)
    b = replace(b, features=tuple(replace(card, promotes=promoted) for card in b.features))
    assert "promotes     positive +0.1" in b.to_text(feature=1)


def test_what_is_left_out_is_not_told_as_never_active():
    whole = replace(board(20, 2), dense=9)
    some = replace(whole, features=whole.features[:5])
    # would catch: the five that are shown, counted as all
    shown = " ".join(str(some).split())
    assert "20 of 27 features fire at least once" in shown
    assert "9 fire on more than 10 % of all tokens; all features together" in shown
    assert shown.startswith("5 of 20 live features of writer")
    assert some.to_dict()["dense"] == 9
    with pytest.raises(InputError, match="left out, or never active"):
        some[12]
    with pytest.raises(InputError, match="there are 20, not 21"):
        replace(whole, features=(*whole.features, replace(whole.features[0], number=25)))


@pytest.mark.parametrize(
    ("effects", "unit"), [("lens", "logits for an activation of 1"), ("clamped", "logits lost")]
)
def test_effects_have_a_unit(effects, unit):
    b = board(3, 2, effects=effects)
    assert unit in b.to_text(feature=1)
    assert unit in columns(b.to_html())["about"]["unit"]


# ---------------------------------------------------------------------- in a browser


@pytest.fixture
def opened(browser, tmp_path):
    """Open a dashboard, the network off; complaints fail the test."""
    contexts = []

    def open_page(b: Dashboard, at: str = "", **options):
        path = tmp_path / "page.html"
        b.to_html(path)
        context = browser.new_context(offline=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.seen, page.dialogs = [], []
        page.on("request", lambda request: page.seen.append(request.url))
        page.on("dialog", lambda dialog: (page.dialogs.append(dialog.message), dialog.dismiss()))
        page.goto(path.as_uri() + at)
        page.locator("[data-ready]").last.wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()


def shown_number(page) -> int:
    return int(page.locator(".big").inner_text())


def test_the_card_says_what_the_dashboard_says(opened):
    b = board(30, 6)
    page = opened(b, "#3")
    assert len(page.seen) == 1
    card = b[3]
    assert shown_number(page) == 3
    rows = page.locator(".passages li")
    assert rows.count() == len(card.tops)
    for i, top in enumerate(card.tops):
        assert rows.nth(i).locator(".running").text_content() == b.text(top)
        strongest = rows.nth(i).locator(".strongest")
        assert strongest.text_content() == b.pieces(top)[top.place]
        level = float(strongest.evaluate("(e) => e.style.getPropertyValue('--v')"))
        assert level == pytest.approx(top.largest / card.peak, abs=1 / STEPS)
    promoted = page.locator(".effects > div").first.locator("th")
    assert promoted.all_inner_texts() == [one.name.strip() for one in card.promotes]
    near = page.locator(".similar .go").all_inner_texts()
    assert [int(number) for number in near] == [one.number for one in card.similar]
    page.locator(".similar .go").first.click()
    assert shown_number(page) == card.similar[0].number


def test_a_neighbour_that_was_left_out_is_not_called_inactive(opened):
    whole = board(9, 2)
    assert opened(whole, "#4").get_by_text("not on this page").count() == 0
    page = opened(replace(whole, features=whole.features[:6]), "#4")
    # of the five nearest, 5 is on the page, and 6, 7 and 8 are not
    assert page.get_by_text("not on this page").count() == 3
    assert page.get_by_text("not active here").count() == 0
    assert (
        page.get_by_text("In logits for an activation of 1, above the vocabulary's mean.").count()
        == 1
    )
    page.set_viewport_size({"width": 380, "height": 800})
    order = page.locator("select[name=order]")
    drawn = order.evaluate(
        "(e) => { const pen = document.createElement('canvas').getContext('2d');"
        " pen.font = getComputedStyle(e).font;"
        " return pen.measureText(e.selectedOptions[0].text).width }"
    )
    assert order.bounding_box()["width"] > drawn + 40  # the arrow and the padding


def test_only_the_rows_in_sight_are_drawn_and_all_can_be_reached(opened):
    b = board(600, 2)
    page = opened(b)
    assert page.locator(".row").count() < 40  # would catch: 600 rows at once
    by_frequency = sorted(b.features, key=lambda card: -np.float32(card.frequency))
    assert shown_number(page) == by_frequency[0].number
    page.locator(".rows").focus()
    page.keyboard.press("End")
    assert shown_number(page) == by_frequency[-1].number
    assert page.locator('.row[aria-selected="true"]').is_visible()
    page.keyboard.press("k")
    assert shown_number(page) == by_frequency[-2].number
    page.locator("select[name=order]").select_option("number")
    page.locator(".rows").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    assert shown_number(page) == 1


def test_search_finds_what_the_dashboard_finds(opened):
    b = board(60, 4)
    page = opened(b)
    page.keyboard.press("/")
    page.keyboard.type("captain")
    # Python's find looks at passages and fired tokens; the page also at what is promoted
    page.locator("select[name=where]").select_option("passages")
    wanted = {card.number for card in b.find("captain")}
    page.locator(".count", has_text=f"{len(wanted)} of 60").wait_for()
    page.locator("select[name=where]").select_option("fires")
    fired = {c.number for c in b.features if "captain" in b.fires_on(c, 99)}
    page.locator(".count", has_text=f"{len(fired)} of 60").wait_for()
    assert shown_number(page) in fired
    assert page.locator(".hit").count() > 0
    page.keyboard.press("Escape")
    page.locator(".count", has_text="60 features").wait_for()


def test_hostile_text_stays_text_in_both_themes_and_on_a_narrow_screen(opened):
    b = board(10, 3, HOSTILE)
    for scheme in ("light", "dark"):
        page = opened(b, "#2", color_scheme=scheme, viewport={"width": 390, "height": 800})
        assert page.dialogs == []
        assert page.locator("main b, main img").count() == 0
        running = page.locator(".running").first.text_content()
        assert "<b>bold</b>" in "".join(page.locator(".running").all_text_contents())
        assert "\u202e" not in running
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390  # nothing is pushed out of a narrow screen


def test_that_the_vocabularys_mean_is_taken_off_is_said_where_the_numbers_stand() -> None:
    b = board(3, 2, effects="lens")
    shown = " ".join(b.to_text(feature=b.features[0].number).split())
    assert "above the vocabulary's mean" in shown
    page = " ".join(b.to_html().replace("&#39;", "'").split())
    assert "above the mean of the whole vocabulary" in page
    assert "raised less than that mean" in page
    clamped = board(3, 2, effects="clamped").to_html()
    assert "the mean over them is taken off" in " ".join(clamped.split())
    assert "vocabulary" not in clamped.partition("<script")[0].partition("What a feature")[2]
