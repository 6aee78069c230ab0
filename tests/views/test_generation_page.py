"""The page of a generated text: its size and numbers, and what it does in a real browser."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace

import numpy as np
import pytest

from tests.views.generations import END, METHODS, generation
from whence.core.generation import Generation
from whence.core.passage import Section
from whence.views.generation_data import rows_by_kind, sentences_of
from whence.views.overview_data import STEPS, quantised
from whence.views.wording import score_format

PROMPT = "So good. Once upon a time there was a cat."
WRITTEN = [" co", "ward", " and", " off", "\n", "then", END]
HOSTILE = "</script><img src=x onerror=alert(1)> <b>bold</b> 中国 \x1b \u202e שלום مرحبا 👨‍👩‍👧"


def large() -> Generation:
    rng = np.random.default_rng(0)
    letters = list("abcdefghijklmnop")
    words = ["".join(rng.choice(letters, size=int(n))) for n in rng.integers(2, 10, size=300)]
    prompt = " ".join(w + ("." if i % 12 == 11 else "") for i, w in enumerate(words[:200]))
    return generation(prompt, [f" {word}" for word in words[200:]])


def stored(page: str) -> tuple[dict, np.ndarray]:
    """What a page has packed: the data, and the bytes of all scores."""
    data = json.loads(re.search(r'application/json">(.*?)</script>', page)[1])
    raw = re.search(r'data-blob="scores">(.*?)</script>', page)[1]
    return data, np.frombuffer(zlib.decompress(base64.b64decode(raw)), dtype=np.int8)


def unpacked(page: str) -> dict[str, list[np.ndarray]]:
    """The rows of each method, as the script reads them."""
    data, steps = stored(page)
    rows: dict[str, list[np.ndarray]] = {}
    start = 0
    for method, scales in zip(data["methods"], data["largest"], strict=True):
        rows[method] = []
        for count, largest in zip(data["before"], scales, strict=True):
            rows[method].append(steps[start : start + count] * largest / data["steps"])
            start += count
    assert start == len(steps)  # nothing of the other triangle is stored
    return rows


def test_a_long_text_takes_less_than_a_megabyte():
    page = large().to_html()
    assert len(page.encode()) < 1_000_000


def test_packed_scores_are_off_by_less_than_a_255th_of_their_row():
    g = large()
    rows = unpacked(g.to_html())
    for method in METHODS:
        for attribution, row in zip(g[method], rows[method], strict=True):
            scale = np.abs(attribution.scores).max()
            # would catch: one scale for all rows, a lost sign, rows of another method
            assert np.abs(row - attribution.scores).max() <= scale / 253


def test_all_outputs_together_are_rounded_once():
    """Would catch: thirty rounded rows added up, +2.32 on the page where the result has +2.45."""
    g = large()
    data, _ = stored(g.to_html())
    for (largest, steps), method in zip(data["all"], METHODS, strict=True):
        exact = g.together(g.explained, method)
        shown = np.array(steps) * largest / data["steps"]
        assert np.abs(shown - exact).max() <= np.abs(exact).max() / 253


def test_units_are_grouped_by_sentence_and_texts_never_mix():
    g = generation(PROMPT, [" He", " is", ".", " Yes"])
    assert sentences_of(g) == [[0, 2], [2, 10], [10, 13], [13, 14]]
    # units that are sentences stand alone
    assert sentences_of(generation(PROMPT, [" He"], kind="sentence")) == [[0, 1], [1, 2], [2, 3]]


def test_nothing_in_it_comes_from_elsewhere_or_acts():
    page = generation(HOSTILE, [f" {HOSTILE}", "</script>"]).to_html()
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    assert "<img" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page


# ---------------------------------------------------------------------- in a browser


@pytest.fixture
def opened(browser, tmp_path):
    """Open the page of a generation, the network off; complaints fail the test."""
    contexts = []

    def open_page(content: Generation | str, **options):
        path = tmp_path / "page.html"
        path.write_text(content if isinstance(content, str) else content.to_html(), "utf-8")
        context = browser.new_context(offline=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.seen, page.dialogs = [], []
        page.on("request", lambda request: page.seen.append(request.url))
        page.on("dialog", lambda dialog: (page.dialogs.append(dialog.message), dialog.dismiss()))
        page.goto(path.as_uri())
        page.locator("[data-ready]").last.wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()


def levels(page, kind: str = "source") -> list[float]:
    """How strong each word is coloured, against ones below zero."""
    return page.locator(f".reader .{kind}").evaluate_all(
        "(all) => all.map((u) => Number(u.style.getPropertyValue('--v'))"
        " * (u.classList.contains('n') ? -1 : 1))"
    )


def tips(page, kind: str = "source") -> list[str]:
    return page.locator(f".reader .{kind}").evaluate_all("(all) => all.map((u) => u.dataset.tip)")


def as_levels(scores: np.ndarray) -> np.ndarray:
    return scores / np.abs(scores).max()


NEAR = 0.03  # a step of a byte, and what is too faint for a colour


def test_pointing_at_a_word_colours_its_sources_and_tells_their_scores(opened):
    g = generation(PROMPT, WRITTEN)
    page = opened(g)
    assert len(page.seen) == 1
    # at first: all that was written, together
    together = g.together(g.explained)
    assert levels(page) == pytest.approx(as_levels(together), abs=NEAR)
    page.locator(".reader .output", has_text="and").hover()
    scores = g.of(2).scores
    assert levels(page) == pytest.approx(as_levels(scores)[:10], abs=NEAR)
    # the word written before is a source too, and those behind are not
    assert levels(page, "output") == pytest.approx([as_levels(scores)[10], 0, 0, 0, 0], abs=NEAR)
    step = np.abs(scores).max() / 127
    for tip, name, score in zip(tips(page), g.units.distinct_names, scores, strict=False):
        shown_name, number = tip.rsplit(": ", 1)
        assert shown_name == name
        assert float(number.replace("−", "-")) == pytest.approx(score, abs=step)
    beside = page.locator(".about").inner_text()
    assert "probability 50 %; entropy 1.50 nats, as open as 4.5 equal chances" in beside
    assert "␣other" in beside


def test_a_word_of_two_tokens_or_each_of_them(opened):
    g = generation(PROMPT, WRITTEN)
    page = opened(g)
    page.locator(".reader .output").first.click()
    assert page.locator(".about .who bdi").inner_text() == "coward"
    assert levels(page) == pytest.approx(as_levels(g.together([0, 1])), abs=NEAR)
    assert "sum of the scores of its tokens" in page.locator(".together").inner_text()
    page.locator("[data-control=level]").select_option("token")
    # its first token is chosen now
    assert levels(page) == pytest.approx(as_levels(g.of(0).scores), abs=NEAR)
    page.locator(".reader .output").nth(1).click()
    assert levels(page) == pytest.approx(as_levels(g.of(1).scores)[:10], abs=NEAR)
    assert page.locator(".about th", has_text="coward").count() == 0
    assert page.locator(".reader .output").all_inner_texts()[4:] == ["⏎", "then", END]


def test_the_method_is_chosen_and_one_without_signs_has_one_colour(opened):
    g = generation(PROMPT, WRITTEN)
    page = opened(g)
    page.locator("[data-control=method]").select_option("2")
    page.locator(".reader .output").nth(1).hover()
    assert page.locator(".reader .source.m").count() == 10
    assert page.locator(".reader .p, .reader .n").count() == 0
    assert levels(page) == pytest.approx(as_levels(g.of(2, "attention-mean").scores)[:10], abs=NEAR)
    shown = page.locator(".sources").evaluate_all("(all) => all.map((one) => one.hidden)")
    assert shown == [True, True, False]


def test_the_keyboard_chooses_keeps_and_lets_go(opened):
    g = generation(PROMPT, WRITTEN)
    page = opened(g)
    all_levels = levels(page)
    assert page.locator(".reader [tabindex='0']").count() == 2  # prompt and written: a stop each
    page.locator(".reader .output").first.focus()
    page.keyboard.press("ArrowRight")
    assert levels(page) == pytest.approx(as_levels(g.of(2).scores)[:10], abs=NEAR)
    page.keyboard.press("Enter")
    page.keyboard.press("End")  # it stays chosen
    assert page.locator(".about .who bdi").inner_text() == "and"
    assert page.evaluate("document.activeElement.textContent") == END
    page.keyboard.press("Escape")
    assert levels(page) == all_levels


def test_a_click_on_a_source_shows_what_rests_on_it(opened):
    g = generation(PROMPT, WRITTEN)
    page = opened(g)
    page.locator(".reader .source").nth(3).click()
    column = np.array([g.together(outputs)[3] for outputs in g.wholes])
    assert levels(page, "output") == pytest.approx(as_levels(column), abs=NEAR)
    page.locator(".reader .source").nth(3).click()
    assert levels(page, "output") == [0] * 5


def numbers_of(rows) -> list[float]:
    return [float(n.replace("−", "-")) for n in rows.locator(".number").all_inner_texts()]


def test_sentences_have_the_sums_and_open_into_their_scored_words(opened):
    # would catch: words without a score of their own, and sums over what comes after
    g = generation(PROMPT, WRITTEN)
    page = opened(g)
    page.locator(".reader .output").nth(1).click()
    scores = g.of(2).scores
    near = np.abs(scores).max() / 127
    rows = page.locator(".row:visible")
    sums = [scores[:2].sum(), scores[2:10].sum(), scores[10]]
    assert numbers_of(rows) == pytest.approx(sums, abs=5 * near)
    rows.nth(0).locator("summary").focus()
    page.keyboard.press("Enter")
    words = rows.nth(0).locator(".scored")
    words.locator(".u").first.wait_for()  # a row tells that it was opened a moment later
    assert words.locator(".u").all_inner_texts() == ["So", "good."]
    shown = [float(n.replace("−", "-")) for n in words.locator("small").all_inner_texts()]
    assert shown == pytest.approx(scores[:2], abs=near)
    # another word is chosen, and the open row follows
    page.locator(".reader .output").nth(2).click()
    shown = [float(n.replace("−", "-")) for n in words.locator("small").all_inner_texts()]
    assert shown == pytest.approx(g.of(3).scores[:2], abs=np.abs(g.of(3).scores).max() / 127)


SECTIONS = (Section("system", 0, 8), Section("document <b>.txt", 8, 42))


def test_sections_are_the_rows_of_a_chat_and_open_into_scored_words(opened):
    g = generation(PROMPT, WRITTEN, sections=SECTIONS)
    page = opened(g)
    kinds = page.locator("[data-control=rows]")
    assert kinds.locator("option").all_inner_texts() == ["sections", "sentences", "words"]
    rows = page.locator(".row:visible")
    names = ["system", "document <b>.txt"]
    assert rows.locator(".badge").all_inner_texts() == names  # of all together: the prompt
    together = g.together(g.explained)
    sums = [together[:2].sum(), together[2:10].sum()]
    near = np.abs(together).max() / 127 * len(g.outputs)
    assert numbers_of(rows) == pytest.approx(sums, abs=5 * near)
    rows.nth(1).locator("summary").click()
    words = rows.nth(1).locator(".scored")
    words.last.wait_for()  # a row tells that it was opened a moment later
    assert words.count() == 8
    assert words.first.get_attribute("aria-label").startswith("Once: ")

    page.locator(".reader .output").nth(2).click()  # behind two written words
    assert rows.locator(".badge").all_inner_texts() == [*names, "written"]

    kinds.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")  # a row for each word, with nothing to open
    assert page.locator(".row:visible").count() == len(g.of(3).scores)
    assert page.locator("details.row").count() == 0
    assert numbers_of(page.locator(".row:visible")) == pytest.approx(
        g.of(3).scores, abs=np.abs(g.of(3).scores).max() / 127
    )


@pytest.mark.parametrize(
    ("prompt", "kind", "kinds"),
    [
        ("one sentence alone", "word", []),  # the reader shows its words
        (PROMPT, "word", ["sentences", "words"]),
        (PROMPT, "sentence", ["sentences"]),
        (PROMPT, [0, 8], ["sections"]),
    ],
)
def test_rows_are_offered_where_there_are_several(prompt, kind, kinds):
    g = generation(prompt, WRITTEN, kind=kind)
    assert [rows["kind"] for rows in rows_by_kind(g)] == kinds
    for rows in rows_by_kind(g):
        units = [unit for start, stop, *_ in rows["groups"] for unit in range(start, stop)]
        assert units == list(range(len(g.units)))  # each unit in one row


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_open_rows_of_a_narrow_page_stay_within_it(opened, scheme):
    g = generation(f"{PROMPT} {'word ' * 40}", WRITTEN, sections=SECTIONS)
    page = opened(g, color_scheme=scheme, viewport={"width": 360, "height": 800})
    for summary in page.locator(".row > summary").all():
        if summary.is_visible():
            summary.click()
            summary.locator("xpath=..").locator(".scored").last.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_matrix_is_read_by_keys_and_sentences_are_its_columns(opened):
    g = generation(PROMPT, WRITTEN)
    page = opened(g)
    page.locator("canvas").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    told = page.locator(".readout").inner_text()
    assert told.startswith("and 50 %, from good.: ")
    number = float(told.rsplit(": ", 1)[1].replace("−", "-"))
    assert number == pytest.approx(g.of(2).scores[1], abs=np.abs(g.of(2).scores).max() / 127)
    page.locator("[data-control=columns]").select_option("folded")
    page.locator("canvas").focus()
    assert "(2 words together)" in page.locator(".readout").inner_text()
    page.keyboard.press("o")  # opens this one sentence
    assert page.locator(".readout").inner_text().startswith("coward 25 %, from So: ")
    page.keyboard.press("Enter")
    assert page.locator(".about .who bdi").inner_text() == "coward"


@pytest.mark.parametrize(("scheme", "width"), [("light", 360), ("dark", 1200)])
def test_hostile_texts_are_shown_and_nothing_runs_over_the_side(opened, scheme, width):
    g = generation(HOSTILE + "x" * 90, [f" {HOSTILE}", "</script>", "y" * 90, END])
    page = opened(g, color_scheme=scheme, viewport={"width": width, "height": 800})
    page.locator(".reader .output").first.click()
    assert page.dialogs == []
    assert page.locator("img, b").count() == 0
    assert "<img" in page.locator(".reader").inner_text()
    assert "\\x1b \\u202e" in page.locator(".reader").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert len(page.seen) == 1
    painted = page.locator("canvas").evaluate(
        "(c) => new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size"
    )
    assert painted > 10


def test_several_fragments_stand_in_one_document(opened):
    one, other = generation("so good", [" it", " is"]), generation("so bad", [" he", " was"])
    page = opened(f"<meta charset=utf-8>{one._repr_html_()}{other._repr_html_()}")
    readers = page.locator(".reader")
    assert readers.all_inner_texts() == ["so good it is", "so bad he was"]
    readers.nth(1).locator(".output").nth(1).hover()
    about = page.locator(".about .who").all_inner_texts()
    assert about == ["All that was written", "was"]


def test_what_is_told_of_all_that_was_written_are_its_own_scores(opened):
    g = large()
    page = opened(g)
    told = page.locator(".about .scores tr").all_inner_texts()
    steps, largest = quantised(g.together(g.explained))
    scores = steps * largest / STEPS
    form = score_format(scores.tolist(), signed=True)
    five = np.argsort(-np.abs(scores), kind="stable")[:5]
    expected = {g.units.distinct_names[i]: form(scores[i]).replace("-", "−") for i in five}
    assert dict(line.split("\t")[:2] for line in told) == expected


@pytest.mark.parametrize(
    ("explained", "read", "told"),
    [
        ([2], "log-probability", "the sum over 1 token"),
        ([2, 3], "log-probability", "the sum over 2 tokens"),
        ([2, 3], "entropy", "the mean over 2 tokens"),
    ],
)
def test_how_many_tokens_are_taken_together_is_told(opened, explained, read, told):
    """Would catch: “the sum over 1 tokens”."""
    g = generation(PROMPT, WRITTEN, {"occlusion": True}, explained=explained, read=read)
    page = opened(g)
    assert page.locator(".about .soft").first.inner_text() == told


def test_a_token_that_was_not_explained_is_shown_without_sources(opened):
    g = generation(PROMPT, WRITTEN, {"occlusion": True}, evidence=False, explained=[2])
    page = opened(g)
    assert "All that was explained" in page.locator(".about").inner_text()
    page.locator(".reader .output").first.hover()
    assert "This one was not explained." in page.locator(".about").inner_text()
    page.locator(".reader .output", has_text="and").hover()
    assert levels(page) == pytest.approx(as_levels(g.of(2).scores)[:10], abs=NEAR)


def test_a_contrast_of_texts_is_what_the_page_opens_on(opened):
    """Would catch: words that speak for what was written, coloured so beside a contrary answer."""
    g = generation(PROMPT, WRITTEN)
    assert g.chosen is not None
    signed = {name: a for name, a in g.chosen.attributions.items() if name == "occlusion"}
    target = replace(signed["occlusion"].target, against=" another", against_ids=(7,))
    contrast = {name: replace(a, target=target) for name, a in signed.items()}
    page = opened(replace(g, chosen=replace(g.chosen, attributions=contrast)))
    own = contrast["occlusion"].scores
    page.locator("[data-control=method]").select_option("1")
    about = page.locator(".desk .about")
    assert "rather than “another”" in about.inner_text()
    assert "less that of “another”" in about.inner_text()
    strength = np.abs(own) / np.abs(own).max()
    strength[strength < 0.02] = 0
    np.testing.assert_allclose(np.abs(levels(page))[: len(own)], strength, atol=2e-3)
    page.locator("[data-control=method]").select_option("0")  # which has no contrast
    assert "All that was written" in about.inner_text()


def test_on_a_narrow_screen_the_name_of_a_contrast_takes_several_lines(opened):
    """Would catch: one line as wide as the name, beside which no source is to be seen."""
    g = generation(PROMPT, WRITTEN)
    assert g.chosen is not None
    a = g.chosen.attributions["occlusion"]
    target = replace(a.target, against=" something else that takes its place", against_ids=(7,))
    contrast = replace(g.chosen, attributions={"occlusion": replace(a, target=target)})
    page = opened(replace(g, chosen=contrast), viewport={"width": 390, "height": 800})
    page.locator("[data-control=method]").select_option("1")
    page.locator("summary", has_text="As a table").click()
    box = page.locator(".sources .scroll >> visible=true")
    assert "less that of “something else that takes its place”" in box.inner_text()
    widths = box.evaluate("(e) => [e.scrollWidth, e.clientWidth]")
    assert widths[0] <= widths[1]


def test_on_a_narrow_screen_no_percentage_is_explained_that_is_not_there(opened):
    page = opened(generation(PROMPT, WRITTEN), viewport={"width": 380, "height": 800})
    assert not page.locator(".costs .wide").first.is_visible()
    assert not page.get_by_text("The percentage is the share").is_visible()
    assert page.get_by_text("A ✓ may be luck").is_visible()


def test_white_space_behind_a_sentence_has_no_colour(opened):
    """Would catch: a sliver of colour at the beginning of the next line of a chat."""
    g = generation("So good. Once more.", [" then"], {"occlusion": True}, kind="sentence")
    page = g.to_html()
    data, _ = stored(page)
    assert data["units"][0] == "So good."
    ended = page.replace('"So good."', '"So good.\\n"')  # as a template ends a message
    view = opened(ended)
    first = view.locator(".reader .source").first
    assert first.evaluate("(e) => e.textContent") == "So good."
    assert first.evaluate("(e) => e.nextSibling.textContent") == "\n"
