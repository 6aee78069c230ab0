"""The page of a context's use: what it does in a real browser, and what texts cannot do to it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.views.conftest import PROVENANCE, evidence_for, made
from tests.views.generations import END, passage_of
from whence.core.attribution import Cost
from whence.core.contextual import ContextUse, Dependence, Selection
from whence.core.passage import SPECIAL, Section
from whence.core.target import Target
from whence.models.writing import only_prompt

HOSTILE = "</script><img/src=x/onerror=alert(1)> <b>bold</b> \x1b \u202e שלום مرحبا"
CONTEXT = "So good. The cat sat down."
WRITTEN = [" it", " fell", " down", END]
SELECTED = (0, 2)
NEAR = 0.021  # what is too faint for a colour

pytestmark = pytest.mark.xdist_group("browser-report")


def context_use(
    context: str = CONTEXT,
    asked: str = " It",
    selected: tuple[int, ...] = SELECTED,
    name: str = "a",
) -> ContextUse:
    """Made by hand: scores are random, and the input has no units."""
    whole = passage_of(context + asked, WRITTEN)
    prompt = only_prompt(whole)
    count = sum(start < len(context) for _, start, _ in prompt.unit_spans)
    passage = replace(
        prompt,
        unit_of=np.where(prompt.unit_of < count, prompt.unit_of, SPECIAL),
        unit_spans=prompt.unit_spans[:count],
        sections=(Section(name, 0, len(context)),),
    )
    outputs = tuple(
        Dependence(
            name=passage.output_text(number),
            id=number,
            probability=0.9,
            without=0.1,
            score=[3.0, 0.0, 1.5, 0.25][number],
            instead=passage.output_text(number) if number == 2 else " she",
            instead_id=number if number == 2 else 99,
            word=None if number == 3 else number,
        )
        for number in range(4)
    )
    rows = {}
    for method, signed in {"occlusion": True, "attention-mean": False}.items():
        attributions = []
        for number in selected:
            before = passage.before(number)
            scores = np.random.default_rng([number, signed]).normal(size=count)
            scores = scores if signed else np.abs(scores)
            target = Target("it", at=number, read="probability", index=number)
            given = {"target": target, "provenance": PROVENANCE}
            judged = (
                evidence_for(scores, "support" if signed else "matter") if number == 0 else None
            )
            attributions.append(made(before, method, signed, scores, evidence=judged, **given))
        rows[method] = tuple(attributions)
    return ContextUse(
        passage=passage,
        without=passage,
        input=asked,
        outputs=outputs,
        selected=selected,
        selection=Selection(least=0.5, threshold=1.0),
        rows=rows if selected else {},
        decoding={"given": "text", "separator": "", "chat": False},
        cost=Cost(4, 2, 0.5),
        provenance=PROVENANCE,
    )


@pytest.fixture
def opened(browser, tmp_path: Path):
    contexts = []

    def open_page(use: ContextUse):
        context = browser.new_context(offline=True)
        contexts.append(context)
        page = context.new_page()
        page.seen = []
        page.on("request", lambda request: page.seen.append(request.url))
        page.on("dialog", lambda dialog: pytest.fail(f"the page said {dialog.message}"))
        path = tmp_path / "use.html"
        use.to_html(path)
        page.goto(path.as_uri())
        page.locator("[data-ready]").wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()


def levels(page) -> list[float]:
    return page.locator(".picture [data-u]").evaluate_all(
        "(all) => all.map((u) => Number(u.style.getPropertyValue('--v'))"
        " * (u.classList.contains('n') ? -1 : 1))"
    )


def as_levels(scores: np.ndarray) -> np.ndarray:
    return scores / np.abs(scores).max()


def test_pointing_at_a_word_colours_what_it_rests_on(opened) -> None:
    use = context_use()
    page = opened(use)
    assert len(page.seen) == 1
    assert levels(page) == pytest.approx(as_levels(use.together()), abs=NEAR)
    words = page.locator(".w.found")
    assert words.all_inner_texts() == ["it", "down"]
    words.first.hover()
    assert levels(page) == pytest.approx(as_levels(use.of(0).scores), abs=NEAR)
    assert "90 % with the context, 10 % without" in page.locator(".told").inner_text()
    assert "“she” is likeliest" in page.locator(".told").inner_text()
    page.locator("h2").hover()
    assert levels(page) == pytest.approx(as_levels(use.together()), abs=NEAR)


def test_the_keyboard_chooses_keeps_and_lets_go(opened) -> None:
    use = context_use()
    page = opened(use)
    page.locator(".w.found").nth(1).focus()
    assert levels(page) == pytest.approx(as_levels(use.of(2).scores), abs=NEAR)
    assert "the same word is likeliest without it" in page.locator(".told").inner_text()
    page.keyboard.press("Enter")
    page.locator(".w.found").nth(1).blur()
    assert levels(page) == pytest.approx(as_levels(use.of(2).scores), abs=NEAR)
    page.locator(".w.found").nth(1).focus()
    page.keyboard.press("Escape")
    assert levels(page) == pytest.approx(as_levels(use.together()), abs=NEAR)


def test_the_method_is_chosen(opened) -> None:
    use = context_use()
    page = opened(use)
    page.locator("[data-control=method]").select_option("1")
    assert levels(page) == pytest.approx(as_levels(use.together("attention-mean")), abs=NEAR)
    assert page.locator("[data-u].p, [data-u].n").count() == 0


def numbers(found) -> list[float]:
    return [float(text.replace("−", "-")) for text in found.all_inner_texts()]


def test_rows_are_sums_and_open_into_scored_words(opened) -> None:
    # would catch: numbers of all words together beside the colours of one
    use = context_use()
    page = opened(use)
    rows = page.locator(".row")
    assert rows.locator(".line").all_inner_texts() == ["So good.", "The cat sat down."]
    for scores, act in (
        (use.together(), lambda: None),
        (use.of(0).scores, lambda: page.locator(".w.found").first.click()),
    ):
        act()
        near = 0.006 * max(1, np.abs(scores).max())
        sums = [scores[:2].sum(), scores[2:].sum()]
        assert numbers(page.locator(".row .number")) == pytest.approx(sums, abs=near)
    rows.nth(1).locator("summary").focus()
    page.keyboard.press("Enter")
    words = rows.nth(1).locator(".scored")
    assert words.locator(".u").all_inner_texts() == ["The", "cat", "sat", "down."]
    assert numbers(words.locator("small")) == pytest.approx(use.of(0).scores[2:], abs=near)
    page.locator("[data-control=method]").select_option("1")
    of_other = use.of(0, "attention-mean").scores
    assert numbers(words.locator("small")) == pytest.approx(of_other[2:], abs=near)


def test_documents_open_into_sentences_and_these_into_words(opened) -> None:
    use = context_use(context="So good. It is. The cat sat down.")
    sections = (Section("a.txt", 0, 15), Section("<u>b.txt", 15, 33))
    page = opened(replace(use, passage=replace(use.passage, sections=sections)))
    documents = page.locator(".rows > .level > .row")
    assert documents.locator(".badge").all_inner_texts() == ["a.txt", "<u>b.txt"]
    assert page.locator(".rows h3").inner_text().lower() == "by documents"
    documents.first.locator("> summary").click()
    sentences = documents.first.locator(".row")
    assert sentences.locator(".line").all_inner_texts() == ["So good.", "It is."]
    sentences.nth(1).locator("summary").click()
    assert sentences.nth(1).locator(".scored").count() == 2


def test_underlines_say_how_far_each_word_depends() -> None:
    page = context_use().to_html()
    assert [f"--d:{level:.3f}" in page for level in (1.0, 0.0, 0.5, 0.083)] == [True] * 4


def test_texts_cannot_act(opened) -> None:
    page = opened(context_use(context=HOSTILE, asked=" <i>x</i>", name="<u>name"))
    assert page.locator(".picture img, .picture b, .picture i, .picture u").count() == 0
    assert "<b>bold</b>" in page.locator(".source .text").inner_text()


def test_where_nothing_was_found_the_page_says_so(opened) -> None:
    page = opened(context_use(selected=()))
    said = "No word of the output stands out as depending on the context"
    assert said in page.locator(".answer").inner_text()
    assert page.locator(".w.found").count() == 0


@cache
def shown() -> str:
    return str(context_use())


def test_the_terminal_says_both_steps() -> None:
    said = " ".join(shown().split())
    assert "2 of 3 given words depend most on the context: “it”, “down”." in said
    assert "“it” (90 % with the context, 10 % without)" in said
    assert "without context “she” would be likelier" in said
    assert "without context it would stand there too" in said
    assert "above the floor of 0.5 nats" in said


@pytest.mark.parametrize(
    ("selected", "said"),
    [
        ((0,), "1 of 3 given words depends most on the context: “it”."),
        ((0, 3), "1 of 3 given words depends most on the context: “it”; so does the special token"),
        (
            (3,),
            "No given word stands out as depending on the context, "
            "but the special token “</s>” does.",
        ),
    ],
)
def test_the_end_of_a_text_is_no_word(selected, said) -> None:
    """Would catch: "4 of 4 words" where the end was found, and "3 of 3" where it was not."""
    assert said in " ".join(str(context_use(selected=selected)).split())


def test_a_score_that_rounds_to_nothing_has_no_sign() -> None:
    use = context_use()
    outputs = [replace(output, score=-1e-5) for output in use.outputs]
    shown = str(replace(use, outputs=tuple(outputs)))
    assert "0.000" in shown
    assert "−0.000" not in shown


def test_nothing_in_a_terminal_acts() -> None:
    assert "\x1b" not in str(context_use(context=HOSTILE))


def test_a_notebook_may_hold_several() -> None:
    use = context_use()
    first, second = use._repr_html_(), use._repr_html_()
    assert first != second
