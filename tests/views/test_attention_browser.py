"""The page of attention maps in a real browser with the network off."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.views.test_attention import HOSTILE, axis, maps_of, softmax, two_sided, vision
from whence.core.maps import Axis
from whence.views.attention import maps_fragment

PAIR = ["[CLS]", "who", "wrote", "[SEP]", "he", "did", "so", "[SEP]"]
PAIR_PARTS = [-1, 0, 0, -1, 1, 1, 1, -1]
ODD = ["[CLS]", "שלום", "👨‍👩‍👧", "中国", "x" * 90, "[SEP]"]


@pytest.fixture
def opened(browser, tmp_path):
    """Open the page of maps (or any HTML); every request, console error and dialog is noted.

    All heads of layer 0 are switched on and no word is chosen, unless ``as_it_opens``.
    """
    contexts = []

    def open_page(maps, permissions=(), as_it_opens=False, **options):
        path = tmp_path / "page.html"
        if isinstance(maps, str):
            path.write_text(maps)
        else:
            maps.to_html(path)
        context = browser.new_context(
            offline=True, accept_downloads=True, permissions=list(permissions), **options
        )
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
        settled(page)
        if not as_it_opens:
            with_everything(page)
        return page

    yield open_page
    for context in contexts:
        context.close()


TWO_FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def settled(page: Any) -> None:
    # a redraw begins in the next frame, however long that takes on a busy machine
    page.evaluate(TWO_FRAMES)
    page.wait_for_selector(
        "[aria-busy=true]", state="detached"
    )  # wait_for_function would need a wider policy


def with_everything(page: Any) -> None:
    if page.locator("select[data-control=kind]").first.is_visible():
        choose(page, "kind", "0")
    choose(page, "layer", "0")
    page.locator(".every").first.click()
    let_go(page)
    special = page.locator("select[data-control=special]").first
    if special.is_visible():
        special.select_option("shown")
    settled(page)


def let_go(page: Any) -> None:
    """No word stays chosen."""
    if page.locator(".place.pinned").count():
        page.locator(".place.pinned").first.click()
    page.mouse.move(0, 0)
    settled(page)


def percents(texts: list[str]) -> list[float]:
    """Shares; "< 0.2 %" is what a byte holds as nothing."""
    return [0.0 if t[0] == "<" else float(t.removesuffix(" %")) / 100 for t in texts]


def show(page: Any, view: str) -> None:
    page.locator(f"[role=tab][data-view={view}]").click()
    settled(page)
    if view == "model":
        # the small maps are drawn when they come into sight, which is later than the page settles
        page.wait_for_selector(".map[data-drawn]", state="attached")


def choose(page: Any, name: str, value: str) -> None:
    page.locator(f"select[data-control={name}]").first.select_option(value)
    settled(page)


def threshold(page: Any, value: int) -> float:
    page.locator("[data-control=threshold]").fill(str(value))
    settled(page)
    return (value / 100) ** 2.5


def lines(page: Any) -> int:
    return int(page.locator("canvas.lines").get_attribute("data-count"))


def inked(page: Any, selector: str) -> float:
    """The share of a canvas that differs from its upper left pixel."""
    return page.locator(selector).first.evaluate(
        """(c) => {
          const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
          let n = 0;
          for (let i = 4; i < d.length; i += 4) {
            if ([0, 1, 2, 3].some((k) => d[i + k] !== d[k])) n++;
          }
          return n / (d.length / 4);
        }"""
    )


def alone(page: Any, head: int) -> None:
    page.locator(f".chip[data-head='{head}']").click()
    settled(page)


def exported(page: Any, how: str) -> bytes:
    with page.expect_download() as download:
        page.locator(f"[data-export={how}]").click()
    return Path(download.value.path()).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_is_drawn_from_one_request(opened, scheme):
    page = opened(maps_of(7, neurons=8), color_scheme=scheme)
    assert inked(page, "canvas.lines") > 0.05
    show(page, "model")
    assert page.locator(".map").count() == 6
    assert inked(page, ".map canvas") > 0.3
    show(page, "neuron")
    for strip in ("query", "keys", "products"):
        assert inked(page, f"canvas.{strip}") > 0.3
    assert page.wrong == []
    assert len(page.seen) == 1
    ground = page.evaluate(
        "getComputedStyle(document.querySelector('.whence-maps')).backgroundColor"
    )
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 22, 26)"}[scheme]


@pytest.mark.slow
def test_the_theme_can_be_turned_and_the_maps_follow(opened):
    page = opened(maps_of(6), color_scheme="light")
    show(page, "model")
    pixel = """(c) => {
      const data = [...c.getContext("2d").getImageData(0, 0, 6, 6).data];
      return data.filter((_, i) => i % 4 < 3).reduce((a, b) => a + b) / 108;
    }"""
    bright = page.locator(".map canvas").first.evaluate(pixel)
    page.locator(".shell button").click()
    settled(page)
    assert page.locator(".map canvas").first.evaluate(pixel) < bright - 60
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 22, 26)"
    page.locator(".shell button").click()
    settled(page)
    assert page.locator(".map canvas").first.evaluate(pixel) == bright


@pytest.mark.slow
def test_pointing_at_a_place_shows_its_weights_and_no_others(opened):
    maps = maps_of(7)
    page = opened(maps)
    choose(page, "layer", "1")
    assert lines(page) > 7 * 3
    alone(page, 2)
    page.locator(".places.from .place").nth(3).hover()
    settled(page)
    shown = percents(page.locator(".places.to .number").all_inner_texts())
    w = maps.weights["encoder"][
        1, 2, 3
    ]  # the transposed map, or another layer or head, would differ
    np.testing.assert_allclose(
        shown, w, atol=w.max() / 510 + maps.weights["encoder"][1, 2].max() / 510 + 0.0005
    )
    assert lines(page) <= 7
    page.locator(".places.to .place").nth(5).hover()
    settled(page)
    shown = percents(page.locator(".places.from .number").all_inner_texts())
    np.testing.assert_allclose(shown, maps.weights["encoder"][1, 2, :, 5], atol=0.0035)
    assert page.locator(".places.to .number").all_inner_texts() == [""] * 7


@pytest.mark.slow
def test_a_clicked_place_stays_and_goes_into_the_figure(opened):
    maps = maps_of(7)
    page = opened(maps)
    alone(page, 1)
    page.locator(".places.from .place").nth(2).click()
    figure = exported(page, "save-svg").decode()
    numbers = percents(re.findall(r">([\d.]+ %)</text>", figure))
    np.testing.assert_allclose(numbers, maps.weights["encoder"][0, 1, 2], atol=0.0025)
    page.locator(".places.from .place").nth(2).click()
    page.mouse.move(0, 0)
    assert page.locator(".place.chosen").count() == 0


@pytest.mark.slow
def test_greyed_special_tokens_do_not_dim_the_others(opened):
    maps = maps_of(6, heads=1)
    maps.weights["encoder"][:] = 0.01
    maps.weights["encoder"][..., 0] = 0.95
    page = opened(maps)
    show(page, "model")
    pixel = "(c) => [...c.getContext('2d').getImageData(2, 2, 1, 1).data].slice(0, 3)"
    faint = page.locator(".map canvas").first.evaluate(pixel)
    choose(page, "special", "greyed")
    strong = page.locator(".map canvas").first.evaluate(pixel)
    assert (
        strong == [60, 26, 120] != faint
    )  # the end of the ramp: 0.01 is now the largest in colour


# ---------------------------------------------------------------------- the first ten seconds


def linked(causal: bool = False) -> Any:
    """Of six heads only 1-2 links a word to one further away: w4 to w1, with 0.6."""
    maps = maps_of(["[CLS]", "a", "b", "c", "b", "e", "[SEP]"], spread=0.0, causal=causal)
    row = maps.weights[maps.kinds[0]][1, 2, 5]
    row[:] = 0.0
    row[[0, 1, 2, 3]] = 0.3, 0.02, 0.6, 0.08
    return maps


def answer(page: Any, part: str) -> str:
    # a number is not parted from its sign at the end of a line
    return page.locator(f".answer .{part}").inner_text().replace("\xa0", " ")


def test_the_page_opens_on_the_head_and_the_word_that_are_worth_a_look(opened):
    page = opened(linked(), as_it_opens=True)
    assert answer(page, "does").startswith("Layer 1, head 2 ")
    assert "no other head links distant words more strongly" in answer(page, "does")
    row = re.sub(r"[\d.]+ %", "#", answer(page, "row"))
    assert row == (
        "“e” looks most at “b” (#), “c” (#) and “a” (#). [CLS] and [SEP] take # of this row."
    )
    shares = percents(re.findall(r"[\d.]+ %", answer(page, "row")))
    np.testing.assert_allclose(shares, [0.6, 0.08, 0.02, 0.3], atol=0.0025)
    assert page.locator(".chip[aria-pressed=true]").all_inner_texts() == ["2"]
    assert page.locator("select[data-control=layer]").input_value() == "1"
    assert page.locator(".place.pinned .label").all_inner_texts() == ["e"]
    assert page.locator(".word.chosen").all_inner_texts() == ["e"]


@pytest.mark.slow
def test_an_encoder_decoder_opens_on_what_the_answer_reads(opened):
    page = opened(two_sided(), as_it_opens=True)
    kind = page.locator("select[data-control=kind]")
    assert kind.input_value() == "2"
    assert "cross" in kind.evaluate("(s) => s.selectedOptions[0].textContent")
    written, read = page.locator(".words").all_inner_texts()
    assert written.split() == ["written:", "<s>", "das", "Essen", "ist"]
    assert read.split() == ["read:", "the", "food", "</s>"]
    choose(page, "kind", "1")  # each kind opens on a head and a word of its own
    assert page.locator(".place.pinned").count() == 1


def shade(page: Any, word: int) -> str:
    colour = "(e) => getComputedStyle(e).backgroundColor"
    return page.locator(".words .word").nth(word).evaluate(colour)


@pytest.mark.slow
def test_colours_are_those_of_the_row_and_leave_special_tokens_out(opened):
    maps = linked()
    maps.weights["encoder"][1, 2, 3, 1:4] = 0.95, 0.03, 0.02  # another row, far stronger
    maps.weights["encoder"][1, 2, 5, [0, 2]] = 0.88, 0.02  # and [CLS] takes most of this one
    page = opened(maps, as_it_opens=True)
    page.locator(".places.from .place").nth(5).hover()
    settled(page)
    darkest, none = "rgb(60, 26, 120)", "rgba(0, 0, 0, 0)"
    assert shade(page, 3) == darkest  # 0.08, here rounded, is the most that a word of this row gets
    assert shade(page, 0) == none
    assert "7.8 %: the most that one token of this row gets" in answer(page, "legend")
    assert "[CLS] and [SEP] are grey and left out of the colours" in answer(page, "legend")
    choose(page, "special", "shown")
    page.locator(".places.from .place").nth(5).hover()
    settled(page)
    assert shade(page, 0) == darkest
    assert shade(page, 3) != darkest


@pytest.mark.slow
def test_the_first_token_of_a_causal_model_is_set_apart(opened):
    labels = [f"w{i}" for i in range(7)]
    maps = maps_of(labels, part=[0] * 7, causal=True)
    maps.weights["decoder"][..., 1:] *= 0.001
    maps.weights["decoder"][..., 0] = 1 - maps.weights["decoder"][..., 1:].sum(-1)
    page = opened(maps, as_it_opens=True)
    assert "The first token “w0” takes 100 % of this row" in answer(page, "row")
    shades = {shade(page, i) for i in range(7)}
    assert "rgb(60, 26, 120)" in shades  # a weight under 0.001, beside one of 1
    control = page.locator(".control.special span")
    assert control.inner_text() == "The first token"


@pytest.mark.slow
def test_generated_text_shows_where_the_prompt_ends(opened):
    maps = maps_of(["once", "there", "was", "a", "dog"], part=[0, 0, 0, 2, 2], causal=True)
    page = opened(maps, as_it_opens=True)
    shown = page.locator(".words").inner_text().split()
    assert " ".join(shown) == "once there was written by the model: a dog"
    begins = page.locator(".places.from .place.begins .label").all_inner_texts()
    assert begins == ["a"]


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height"), [(1400, 800), (390, 800)])
@pytest.mark.parametrize("kind", ["encoder", "causal", "two-sided"])
def test_the_first_screen_holds_the_answer_and_the_text(opened, width, height, kind):
    maps = {"encoder": linked(), "causal": linked(causal=True), "two-sided": two_sided()}[kind]
    page = opened(maps, as_it_opens=True, viewport={"width": width, "height": height})
    for part in ("does", "row", "running", "legend"):
        box = page.locator(f".answer .{part}").bounding_box()
        assert box["height"] > 0
        assert box["y"] + box["height"] <= height
    shown = page.locator(".words .word").all_inner_texts()
    assert set(shown) >= set(maps.tokens)


@pytest.mark.slow
def test_the_tab_key_follows_the_reading_order(opened):
    page = opened(replace(linked(), units="word"), as_it_opens=True)
    order = []
    page.keyboard.press("Tab")
    while page.evaluate("document.activeElement !== document.body") and len(order) < 60:
        order.append(page.evaluate("document.activeElement.getBoundingClientRect().y + scrollY"))
        page.keyboard.press("Tab")
    assert len(order) > 10
    # lists beside each other begin at their own chosen word, so a few pixels up are no jump back
    backwards = [a - b for a, b in pairwise(order) if a - b > 7 * 22]
    assert backwards == []
    reading = page.evaluate(
        """[...document.querySelectorAll(".does, .row, .running, .tabs, .controls, .panels")]
          .map((e) => e.className.split(" ")[0])"""
    )
    assert reading == ["does", "row", "running", "tabs", "controls", "panels"]


def test_heads_are_averaged_and_switched(opened):
    maps = maps_of(6, heads=3)
    page = opened(maps)
    page.locator(".chip[data-head='1']").click(modifiers=["Shift"])
    settled(page)
    page.locator(".places.from .place").nth(2).hover()
    settled(page)
    shown = percents(page.locator(".places.to .number").all_inner_texts())
    np.testing.assert_allclose(shown, maps.weights["encoder"][0, [0, 2], 2].mean(0), atol=0.0025)
    assert page.locator(".chip[aria-pressed=true]").count() == 2
    page.locator(".every").click()
    assert page.locator(".chip[aria-pressed=true]").count() == 3


@pytest.mark.slow
@pytest.mark.parametrize("heads", [[0], [1, 2], [0, 1, 2]])
def test_the_share_of_special_tokens_is_that_of_the_maps(opened, heads):
    maps = maps_of(6)
    page = opened(maps)
    choose(page, "layer", "1")
    alone(page, heads[0])
    for head in heads[1:]:
        page.locator(f".chip[data-head='{head}']").click(modifiers=["Shift"])
    printed = re.search(r"hold ([\d.]+) %", page.locator(".share").inner_text())
    assert printed
    assert float(printed[1]) == pytest.approx(
        100 * maps.special_share()[1, heads].mean(), abs=0.051
    )


@pytest.mark.slow
def test_special_tokens_are_hidden_or_greyed(opened):
    page = opened(maps_of(6))
    assert page.locator(".places.from .place").count() == 6
    before = lines(page)
    choose(page, "special", "greyed")
    colour = "(e) => getComputedStyle(e).color"
    labels = page.locator(".places.from .label")
    assert labels.first.evaluate(colour) == "rgb(169, 175, 186)" != labels.nth(1).evaluate(colour)
    choose(page, "special", "hidden")
    assert page.locator(".places.to .place").all_inner_texts() == ["w0", "w1", "w2", "w3"]
    assert 0 < lines(page) < before
    show(page, "model")
    assert page.locator(".map canvas").first.evaluate("(c) => [c.width, c.height]") == [4, 4]


@pytest.mark.slow
def test_weights_below_the_threshold_are_not_drawn(opened):
    maps = maps_of(8, heads=2)
    page = opened(maps)
    w = maps.weights["encoder"][0]
    least = threshold(page, 50)
    # a weight within half a step of the threshold may fall on either side
    assert (w > least + 0.002).sum() <= lines(page) <= (w > least - 0.002).sum() < w.size
    page.locator(".places.from .place").nth(1).hover()
    settled(page)
    shown = page.locator(".places.to .number").all_inner_texts()
    assert [bool(s) for s in shown] == [bool(x) for x in w[:, 1].mean(0) >= least]
    threshold(page, 100)
    page.mouse.move(0, 0)
    settled(page)
    assert lines(page) == 0


@pytest.mark.slow
def test_of_too_many_equal_lines_no_place_is_favoured(opened):
    page = opened(maps_of(60, heads=1, spread=0.0))
    assert lines(page) == 3000
    starts = re.findall(r"<path d=\"M\d+ ([\d.]+)L", exported(page, "save-svg").decode())
    counts = [starts.count(y) for y in set(starts)]
    assert len(counts) == 60
    assert max(counts) - min(counts) <= 1  # the first 3000 of 3600 would leave out ten places


@pytest.mark.slow
def test_a_pair_can_be_looked_at_text_by_text(opened):
    page = opened(maps_of(PAIR, part=PAIR_PARTS))
    options = page.locator("select[data-control=filter] option").all_inner_texts()
    assert options == [
        "all",
        "first text → first text",
        "first text → second text",
        "second text → first text",
        "second text → second text",
    ]
    choose(page, "filter", "0>1")
    assert page.locator(".places.from .place").all_inner_texts() == ["who", "wrote"]
    assert page.locator(".places.to .place").all_inner_texts() == ["he", "did", "so"]
    show(page, "model")
    assert page.locator(".map canvas").first.evaluate("(c) => [c.width, c.height]") == [3, 2]


@pytest.mark.slow
def test_generated_text_does_not_look_ahead(opened):
    page = opened(maps_of(["a", "b", "c", "d"], part=[0, 0, 2, 2], causal=True))
    assert page.locator("select[data-control=filter] option").all_inner_texts() == [
        "all",
        "text → text",
        "written → text",
        "written → written",
    ]
    assert lines(page) <= 3 * 10  # the half of 16, with the diagonal
    assert opened(maps_of(6)).locator("select[data-control=filter]").is_visible() is False


@pytest.mark.slow
def test_the_tooltip_gives_the_weight_within_the_error_that_it_states(opened):
    maps = maps_of(7, spread=2.5)
    page = opened(maps)
    show(page, "model")
    page.locator(".map[data-layer='1'][data-head='2']").click()
    settled(page)
    page.keyboard.press("ArrowDown")  # the first arrow enters the map at its first cell
    w = maps.weights["encoder"][1, 2]
    seen = []
    for row in range(7):
        for column in range(7):
            text = page.locator(".tip").inner_text()
            labels, weight, error = re.fullmatch(r"(\S+ → \S+) ([\d.]+) ± ([\d.]+)", text).groups()
            assert labels == f"{maps.tokens[row]} → {maps.tokens[column]}"
            assert w.max() / 510 <= float(error) <= w.max() / 510 + 1.5e-4
            assert abs(float(weight) - w[row, column]) <= float(error) + 1e-7
            seen.append(float(weight))
            page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        for _ in range(7):
            page.keyboard.press("ArrowLeft")
    assert len(set(seen)) > 20
    share = re.search(r"hold ([\d.]+) %", page.locator(".share").inner_text())
    assert float(share[1]) == pytest.approx(100 * maps.special_share()[1, 2], abs=0.051)


@pytest.mark.slow
def test_a_map_is_pointed_at_with_the_mouse_and_opened_in_the_head_view(opened):
    maps = maps_of(7)
    page = opened(maps)
    show(page, "model")
    page.locator(".map[data-layer='1'][data-head='1']").click()
    settled(page)
    box = page.locator("canvas.matrix").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 12, box["y"] + box["height"] - 12)
    assert page.locator(".tip").inner_text().startswith("[SEP] → [SEP]")
    page.mouse.move(box["x"] + 4, box["y"] + 4)
    assert page.locator(".tip").is_hidden()
    page.locator(".jump").click()
    settled(page)
    assert page.locator("[role=tab][aria-selected=true]").inner_text() == "Head view"
    assert page.locator("select[data-control=layer]").input_value() == "1"
    assert page.locator(".chip[aria-pressed=true]").all_inner_texts() == ["1"]


@pytest.mark.slow
def test_maps_out_of_sight_are_not_drawn(opened):
    page = opened(maps_of(6, layers=40, heads=2), viewport={"width": 1000, "height": 600})
    show(page, "model")
    drawn = page.locator(".map[data-drawn]").count()
    assert 0 < drawn < 40
    page.locator(".map").last.scroll_into_view_if_needed()
    page.wait_for_selector(".map[data-layer='39'][data-drawn]")


def test_neurons_add_up_to_the_weights(opened):
    maps = maps_of(6, neurons=16)
    page = opened(maps)
    show(page, "neuron")
    choose(page, "layer", "1")
    choose(page, "head", "2")
    page.locator(".token").nth(3).click()
    settled(page)
    n = maps.neurons["encoder"]
    scores = [float(s.replace("−", "-")) for s in page.locator(".score").all_inner_texts()]
    exact = n.scale * n.key[1, 2] @ n.query[1, 2, 3]
    np.testing.assert_allclose(scores, exact, atol=0.05)
    weights = percents(page.locator(".weight").all_inner_texts())
    np.testing.assert_allclose(weights, maps.weights["encoder"][1, 2, 3], atol=0.003)
    np.testing.assert_allclose(softmax(np.array(scores)), weights, atol=0.02)
    error = float(re.search(r"off by up to ([\d.]+)\.", page.locator(".note").inner_text())[1])
    assert (
        np.abs(np.array(scores) - exact).max() <= error + 0.005
    )  # half of the last digit that is printed
    choose(page, "special", "hidden")
    assert page.locator(".neurons .score").count() == 4


@pytest.mark.slow
def test_the_neuron_view_shows_whole_words_with_their_weights(opened):
    maps = maps_of(["[CLS]", "un", "kind", "the", "the", "[SEP]"], neurons=4)
    n, places = maps.neurons["encoder"], np.array([0, 1, 1, 2, 3, 4])
    own = axis(["[CLS]", "unkind", "the", "the", "[SEP]"])
    member = (np.arange(5)[:, None] == places[None]).astype(np.float32)
    mean = member / member.sum(-1, keepdims=True)
    words = np.einsum("fq,lhqk,tk->lhft", mean, maps.weights["encoder"], member)
    maps = replace(
        maps,
        weights={"encoder": words.astype(np.float32)},
        from_axis={"encoder": own},
        to_axis={"encoder": own},
        units="word",
        neurons={"encoder": replace(n, from_places=places, to_places=places)},
    )
    page = opened(maps)
    show(page, "neuron")
    names = ["[CLS]", "unkind", "the", "the (2)", "[SEP]"]  # repeated words say which they are
    assert page.locator(".token").all_inner_texts() == names
    choose(page, "head", "0")
    page.locator(".token").nth(1).click()
    settled(page)
    scores = [float(s.replace("−", "-")) for s in page.locator(".score").all_inner_texts()]
    by_token = 0.5 * np.einsum("qd,kd->qk", n.query[0, 0], n.key[0, 0])
    np.testing.assert_allclose(scores[2], by_token[1:3, 3].mean(), atol=0.03)
    weights = percents(page.locator(".weight").all_inner_texts())
    np.testing.assert_allclose(weights, words[0, 0, 1], atol=0.003)
    assert "several tokens" in page.locator(".note").inner_text()
    assert page.locator("[role=tab]").count() == 3
    assert opened(maps_of(6)).locator("[role=tab]").count() == 2


@pytest.mark.slow
def test_the_future_is_masked_in_a_causal_neuron_view(opened):
    maps = maps_of(5, neurons=4, causal=True)
    page = opened(maps)
    show(page, "neuron")
    page.locator(".token").nth(2).click()
    settled(page)
    assert [s == "masked" for s in page.locator(".score").all_inner_texts()] == [
        False,
        False,
        False,
        True,
        True,
    ]
    show(page, "head")
    page.locator(".places.from .place").nth(2).hover()
    settled(page)
    shown = page.locator(".places.to .number").all_inner_texts()
    assert shown[3:] == ["", ""]
    np.testing.assert_allclose(
        percents(shown[:3]), maps.weights["decoder"][0, :, 2, :3].mean(0), atol=0.0025
    )


def test_kinds_of_an_encoder_decoder(opened):
    maps = two_sided()
    page = opened(maps)
    choose(page, "kind", "2")
    choose(page, "layer", "2")
    let_go(page)
    assert page.locator(".places.from .place").all_inner_texts() == ["<s>", "das", "Essen", "ist"]
    assert page.locator(".places.to .place").all_inner_texts() == ["the", "food", "</s>"]
    alone(page, 1)
    page.locator(".places.from .place").nth(2).hover()
    settled(page)
    shown = percents(page.locator(".places.to .number").all_inner_texts())
    np.testing.assert_allclose(shown, maps.weights["cross"][2, 1, 2], atol=0.0025)
    choose(page, "kind", "0")  # two layers only: the third cannot stay chosen
    opening = maps.opening("encoder")
    assert page.locator("select[data-control=layer]").input_value() == str(opening.layer)
    show(page, "model")
    assert page.locator(".map").count() == 4
    assert page.wrong == []


@pytest.mark.slow
def test_the_figures_hold_the_tokens_as_text(opened):
    page = opened(maps_of(ODD, neurons=4))
    for view in ("head", "model", "neuron"):
        show(page, view)
        if view == "model":
            page.locator(".map").first.click()
            settled(page)
        figure = exported(page, "save-svg").decode()
        assert page.evaluate(
            """(source) => {
              const drawn = new DOMParser().parseFromString(source, "image/svg+xml");
              return drawn.querySelector("parsererror") === null;
            }""",
            figure,
        )
        texts = re.findall(r"<text[^>]*>([^<]*)</text>", figure)
        assert {"[CLS]", "שלום", "👨‍👩‍👧", "中国"} <= set(texts)
        assert figure.count("<path") > 3 if view == "head" else "data:image/png;base64," in figure
        picture = exported(page, "save-png")
        assert picture[:8] == b"\x89PNG\r\n\x1a\n"
        width, height = (int.from_bytes(picture[i : i + 4], "big") for i in (16, 20))
        size = re.search(r'width="(\d+)" height="(\d+)"', figure)
        assert (width, height) == (2 * int(size[1]), 2 * int(size[2]))
        assert len(picture) > 4000  # a blank one is smaller


@pytest.mark.slow
def test_all_maps_are_exported_together(opened):
    page = opened(maps_of(6))
    show(page, "model")
    figure = exported(page, "save-svg").decode()
    assert figure.count("<image") == 6
    assert len(set(re.findall(r'href="([^"]+)"', figure))) == 6


@pytest.mark.slow
def test_copying_uses_the_clipboard_or_else_downloads(opened):
    page = opened(maps_of(5), permissions=["clipboard-read", "clipboard-write"])
    page.locator("[data-export=copy-svg]").click()
    page.wait_for_selector(".status:text('Copied as SVG.')")
    assert page.evaluate("navigator.clipboard.readText()").startswith("<svg")
    page.locator("[data-export=copy-png]").click()
    page.wait_for_selector(".status:text('Copied as PNG.')")
    page.evaluate(
        """() => {
          const refuse = () => Promise.reject(new Error("no"));
          navigator.clipboard.write = navigator.clipboard.writeText = refuse;
        }"""
    )
    assert exported(page, "copy-svg").startswith(b"<svg")
    assert exported(page, "copy-png")[:4] == b"\x89PNG"
    assert "refused" in page.locator(".status").inner_text()


def test_hostile_tokens_are_shown_and_do_nothing(opened):
    maps = replace(
        maps_of(["[CLS]", HOSTILE, "<b>&amp;</b>", "\x1b\u202e", "[SEP]"], neurons=4),
        model="<i>toy</i>",
    )
    page = opened(maps)
    assert page.locator(".places.from .label").all_inner_texts() == [
        "[CLS]",
        HOSTILE,
        "<b>&amp;</b>",
        "\\x1b\\u202e",
        "[SEP]",
    ]
    for view in ("head", "model", "neuron"):
        show(page, view)
        if view == "model":
            page.locator(".map").first.click()
            settled(page)
            for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
                page.keyboard.press(key)
            assert HOSTILE[:20] in page.locator(".tip").inner_text()
        figure = exported(page, "save-svg").decode()
        assert "<img" not in figure
        assert "<b>" not in figure
    assert page.locator("img, i:text('toy'), .label b").count() == 0
    assert page.wrong == []
    assert len(page.seen) == 1


@pytest.mark.slow
def test_every_script_looks_right_and_long_tokens_are_cut(opened):
    page = opened(maps_of(ODD))
    labels = page.locator(".places.from .label")
    assert labels.all_inner_texts() == ODD
    assert [labels.nth(i).evaluate("(e) => getComputedStyle(e).direction") for i in (1, 3)] == [
        "rtl",
        "ltr",
    ]
    long = page.locator(".places.from .place").nth(4)
    assert long.get_attribute("title") == "x" * 90
    assert labels.nth(4).evaluate("(e) => e.scrollWidth > e.clientWidth")
    heights = {
        round(page.locator(".places.from .place").nth(i).bounding_box()["height"]) for i in range(6)
    }
    assert heights == {22}  # or lines would miss their places


@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_runs_over_the_side(opened, width):
    page = opened(
        maps_of([*ODD[:-1], *(f"word{i}" for i in range(30)), "[SEP]"], heads=12, neurons=16),
        viewport={"width": width, "height": 800},
    )
    for view in ("head", "model", "neuron"):
        show(page, view)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    show(page, "model")
    page.locator(".map").first.click()
    settled(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
def test_the_keyboard_is_enough(opened):
    maps = maps_of(6, neurons=4)
    page = opened(maps)
    page.locator(".places.from .place").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.title") == "w1"
    assert page.locator(".places.from .place[tabindex='0']").count() == 1  # one tab stop a side
    settled(page)
    shown = percents(page.locator(".places.to .number").all_inner_texts())
    np.testing.assert_allclose(shown, maps.weights["encoder"][0, :, 2].mean(0), atol=0.0025)
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.side") == "to"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("]")
    settled(page)
    assert page.locator("select[data-control=layer]").input_value() == "1"
    page.keyboard.press("]")  # the last one: stays
    assert page.locator("select[data-control=layer]").input_value() == "1"
    page.locator("[role=tab]").first.focus()
    page.keyboard.press("ArrowRight")
    settled(page)
    assert page.locator(".panel.model").is_visible()
    page.locator(".map").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    settled(page)
    assert page.locator(".title").inner_text() == "Layer 1, head 1"
    page.keyboard.press("Escape")
    settled(page)
    assert page.locator(".grid").is_visible()
    assert page.evaluate(
        "[document.activeElement.dataset.layer, document.activeElement.dataset.head]"
    ) == ["1", "1"]


@pytest.mark.slow
def test_an_image_gets_the_heat_of_the_row_pointed_at(opened):
    maps = vision()
    page = opened(maps)
    assert page.locator(".picture img").evaluate("(i) => [i.naturalWidth, i.naturalHeight]") == [
        12,
        8,
    ]
    alone(page, 1)
    page.locator(".places.from .place").nth(4).hover()
    settled(page)
    alpha = page.locator(".picture canvas").evaluate(
        "(c) => [...c.getContext('2d').getImageData(0, 0, 3, 2).data].filter((_, i) => i % 4 === 3)"
    )
    row = maps.weights["encoder"][0, 1, 4]
    np.testing.assert_allclose(np.array(alpha) / 255, 0.75 * row[1:] / row.max(), atol=0.01)
    assert "attention from 1,0;" in page.locator(".picture figcaption").inner_text()


@pytest.mark.slow
def test_two_fragments_on_one_page_do_not_meet(opened):
    first, second = maps_of(5), maps_of(["[CLS]", "other", "[SEP]"], heads=2)
    both = maps_fragment(first) + maps_fragment(second)
    page = opened(f"<!doctype html><body>{both}<p class='place'>mine</p></body>")
    roots = page.locator(".whence-maps")
    assert roots.nth(1).locator(".places.from .place").all_inner_texts() == [
        "[CLS]",
        "other",
        "[SEP]",
    ]
    roots.nth(1).locator("[role=tab][data-view=model]").click()
    settled(page)
    assert roots.nth(0).locator(".panel.head").is_visible()
    assert roots.nth(1).locator(".map").count() == 4
    assert roots.nth(0).locator(".map").count() == 0
    assert (
        page.evaluate("[typeof app, typeof state, typeof headView, typeof ROW]")
        == ["undefined"] * 4
    )
    assert page.locator("p.place").evaluate("(e) => getComputedStyle(e).display") == "block"
    assert page.wrong == []


UNPACKED = """<script>
const Original = DecompressionStream;
window.unpacked = 0;
window.DecompressionStream = function (...how) {
  window.unpacked += 1;
  return new Original(...how);
};
</script>"""


@pytest.mark.slow
def test_a_large_page_does_no_more_than_is_looked_at(opened):
    """Would catch a page that unpacks twelve layers, or draws 196,608 lines, to be painted."""
    maps = maps_of(128, layers=12, heads=12)
    html = f"<!doctype html><body>{UNPACKED}{maps_fragment(maps)}</body>"
    page = opened(html, as_it_opens=True)
    assert page.evaluate("unpacked") == 1
    page.locator(".every").click()
    let_go(page)
    assert lines(page) == 3000  # the page says so
    assert "the 3,000 strongest are drawn" in page.locator(".status").inner_text()
    show(page, "model")
    assert page.evaluate("unpacked") <= 12
    assert page.wrong == []


@pytest.mark.slow
def test_a_layer_is_unpacked_when_it_is_first_wanted(opened):
    """A broken blob of a layer that nobody looks at does no harm; looked at, it is reported."""
    maps = maps_of(5, layers=3)
    html = maps_fragment(maps)
    broken = re.sub(r'(data-blob="weights-0-2">)[^<]*', r"\1AAAA", html)
    page = opened(f"<!doctype html><body>{broken}</body>")
    assert page.locator(".status").inner_text() == ""
    assert inked(page, "canvas.lines") > 0.02
    choose(page, "layer", "2")
    assert "could not be drawn" in page.locator(".status").inner_text()


@pytest.mark.slow
def test_a_head_that_looks_nowhere_and_special_tokens_only(opened):
    maps = maps_of(3)
    only = Axis(("[CLS]", "[PAD]", "[SEP]"), np.ones(3, dtype=bool), np.full(3, -1))
    maps.weights["encoder"][:, 0] = 0
    page = opened(replace(maps, from_axis={"encoder": only}, to_axis={"encoder": only}))
    alone(page, 0)
    assert lines(page) == 0
    choose(page, "special", "hidden")  # nothing is left
    for view in ("head", "model"):
        show(page, view)
    page.locator(".map").first.click()
    settled(page)
    assert page.wrong == []


@pytest.mark.slow
def test_a_button_that_is_pressed_twice_leads_once(opened):
    page = opened(maps_of(["[CLS]", "so", "good", "[SEP]"]))
    page.locator("[role=tab][data-view=model]").click()
    page.locator(".map").first.click()
    settled(page)
    # Enter held down, or a second click before the page has drawn
    page.evaluate("() => { const b = document.querySelector('.jump'); b.click(); b.click(); }")
    settled(page)
    assert page.wrong == []
    assert page.locator(".panel.head").is_visible()


@pytest.mark.slow
def test_a_map_that_is_closed_while_it_is_exported_does_no_harm(opened):
    page = opened(maps_of(["[CLS]", "so", "good", "[SEP]"]))
    page.locator("[role=tab][data-view=model]").click()
    page.locator(".map").first.click()
    settled(page)
    with page.expect_download():
        page.evaluate(
            """() => {
              document.querySelector("[data-export=save-svg]").click();
              document.querySelector(".back").click();
            }"""
        )
    settled(page)
    assert page.wrong == []
