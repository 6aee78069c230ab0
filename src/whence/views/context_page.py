"""What of an output came from its context, as one page: both steps in one picture.

A written word is underlined the more it depends on the context. Point at one, or move to it with
the Tab key, and the words of the context that it rests on are coloured. Without scripts the answer,
the picture of all words together, and the tables are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from whence.core.contextual import ContextUse
from whence.views import wording
from whence.views.context import (
    Found,
    answer,
    both_shown,
    found_words,
    is_of_texts,
    is_opposed,
    model_line,
    opposed_words,
    remarks,
    shown,
    standing,
)
from whence.views.context_rows import context_rows
from whence.views.document import (
    document,
    embedded_json,
    fresh_id,
    script,
    static,
    style,
    title_of,
)
from whence.views.generation import output_name, percent
from whence.views.html import UNSIGNED_RAMP, ramp, signed_legend, words_explained
from whence.views.judgement import badge
from whence.views.markup import (
    around,
    element,
    elements,
    fold,
    kind,
    named,
    paragraphs,
    scrolling,
    soft,
    table,
    text,
)
from whence.views.sides import sides_of

FAINT = 0.02  # of full colour; what is fainter would only blur the others
DIGITS = 4  # of a level on the page
SOURCES = 5
# Said below the picture where some word was selected.
HOW_TO_READ = (
    "A {standing} word is underlined the more it depends on the context. Point at a framed one, or "
    "move to it with Tab, and what it rests on is coloured above; a click (Enter) keeps it, Esc "
    "lets it go. At first the colours are those of all framed words together."
)


def context_page(use: ContextUse) -> str:
    """A whole page. Said as the title of a page whose input is empty: ``the use of context``."""
    return document(
        f"whence: {title_of(use.input, 'the use of context')}",
        element("main", f"\n{_section(use, 'whence-0')}\n", class_="whence-many"),
        styles=[static("report.css"), static("rows.css"), static("context.css")],
    )


def context_fragment(use: ContextUse) -> str:
    """What a notebook shows; several may stand in a document."""
    styles = "".join(style(static(f"{name}.css")) for name in ("report", "rows", "context"))
    return styles + _section(use, fresh_id())


def _section(use: ContextUse, name: str) -> str:
    """Said as headings of what can be opened."""
    words = found_words(use)
    parts = [
        _top(use),
        _picture(use, words),
        context_rows(use, _is_signed(use, use.methods[0])) if words else "",
        _sources(use, words),
        fold(f"Every {standing(use)} token, with the context and without it", _outputs(use)),
        fold("How it was made, what it cost, and notes", _about(use)),
        words_explained(),
        embedded_json(_data(use, words)),
        script(_program(name)),
    ]
    content = "\n".join(part for part in parts if part)
    return element("section", f"\n{content}\n", class_="whence context", id=name)


def _program(name: str) -> str:
    program = static("context.js")
    return f'(function (root) {{\n"use strict";\n{program}\n}})(document.getElementById("{name}"));'


def _top(use: ContextUse) -> str:
    asked, first, *more = answer(use)
    about = [
        element("h2", "Answer"),
        element("p", text(asked), class_="trust asked"),
        element("p", text(first), class_="answer"),
        elements("p", [text(sentence) for sentence in more], class_="trust"),
        soft(text(model_line(use))),
    ]
    return element("div", element("div", "".join(about)), class_="top")


# ---------------------------------------------------------------------- both steps in one picture


def _picture(use: ContextUse, words: Sequence[Found]) -> str:
    """Said as the heading of the picture."""
    levels = np.zeros(len(use.units))
    signed = True
    if words:
        levels = _levels(use.together())
        signed = _is_signed(use, use.methods[0])
    parts = [element("h3", "What came from where")]
    if len(use.methods) > 1:
        options = [
            element("option", text(method), value=place) for place, method in enumerate(use.methods)
        ]
        menu = element("select", "".join(options), data_control="method")
        parts.append(element("p", element("label", f"By {menu}"), class_="controls", hidden=True))
    sections = _sections(use, levels, signed)
    sections.append(_part("input", text(use.input, keep="\n\t"), "given"))
    sections.append(_part(standing(use), _written(use, words), "written"))
    parts.append(element("div", "".join(sections), class_="picture"))
    parts.append(element("p", class_="told", role="status", aria_live="polite"))
    if words:
        parts += [_legend(use), soft(HOW_TO_READ.format(standing=standing(use)))]
    return "\n".join(parts)


def _part(name: str, content: str, class_: str) -> str:
    head = element("h4", text(name))
    body = element("div", content, class_="text", dir="auto")
    return element("div", head + body, class_=f"part {class_}")


def _sections(use: ContextUse, levels: Float[np.ndarray, " unit"], signed: bool) -> list[str]:
    """The context by its parts; each unit can be coloured."""
    sections = []
    for section in use.passage.sections:
        pieces = []
        for unit, (_, start, end) in enumerate(use.passage.unit_spans):
            if section.start <= start < section.end:
                content = use.passage.text[start:end]
                pieces.append(_unit(use, unit, content, float(levels[unit]), signed))
        sections.append(_part(section.name, "".join(pieces), "source"))
    return sections


def _unit(use: ContextUse, unit: int, content: str, level: float, signed: bool) -> str:
    before, body, after = around(content)
    shade = abs(level) if abs(level) >= FAINT else 0.0
    coloured = element(
        "span",
        text(body, keep="\n\t"),
        class_=f"u {kind(level, signed)}",
        style=f"--v:{shade:.3f}",
        data_u=unit,
        title=use.place(unit) if is_of_texts(use) else None,
    )
    return text(before, keep="\n\t") + coloured + text(after, keep="\n\t")


def _written(use: ContextUse, words: Sequence[Found]) -> str:
    """The written words, underlined by how far they depend on the context."""
    rows = {word.outputs.start: place for place, word in enumerate(words)}
    largest = max((abs(output.score) for output in use.outputs), default=0.0)
    pieces = []
    for outputs in use.words:
        raw = use.passage.outputs_text(outputs)
        body = raw.lstrip()
        before = raw[: len(raw) - len(body)]
        score = max((use.outputs[number].score for number in outputs), key=abs)
        level = abs(score) / largest if largest else 0.0
        row = rows.get(outputs.start)
        special = all(use.outputs[number].word is None for number in outputs)
        classes = "w"
        if row is not None:
            classes += " found"
        if special:
            classes += " chip"
        shown_body = text(body, keep="\n\t") if body else text(output_name(raw))
        pieces.append(
            text(before, keep="\n\t")
            + element(
                "span",
                shown_body,
                class_=classes,
                style=f"--d:{level:.3f}",
                title=f"{use.selection.measure}: {shown(use, score)}",
                data_row=row,
                tabindex=None if row is None else 0,
                role=None if row is None else "button",
            )
        )
    return "".join(pieces)


def _levels(scores: Float[np.ndarray, " unit"]) -> Float[np.ndarray, " unit"]:
    largest = np.abs(scores).max(initial=0.0)
    return scores / largest if largest else np.zeros_like(scores)


def _is_signed(use: ContextUse, method: str) -> bool:
    return all(attribution.signed for attribution in use[method])


def _legend(use: ContextUse) -> str:
    """Said of methods without signs, where one explained."""
    parts = []
    signed = [_is_signed(use, method) for method in use.methods]
    if any(signed):
        parts.append(signed_legend(sides_of(use[use.methods[0]][0].target), "the word"))
    if not all(signed):
        parts.append(f"matters little{ramp(UNSIGNED_RAMP)}much (a method without signs)")
    return element("p", elements("span", parts), class_="legend")


def _data(use: ContextUse, words: Sequence[Found]) -> dict[str, Any]:
    """What the script colours by: for each method the levels of all words, then of each.

    A level is a share of the largest score of its row.
    """
    methods = []
    for method in use.methods:
        rows = [use.together(method), *(word.scores(use, method) for word in words)]
        levels = [[round(float(level), DIGITS) for level in _levels(row)] for row in rows]
        largest = [float(f"{np.abs(row).max(initial=0.0):.6g}") for row in rows]
        methods.append({"signed": _is_signed(use, method), "levels": levels, "largest": largest})
    told = [_told(word) for word in words]
    return {"methods": methods, "told": told, "faint": FAINT}


def _told(word: Found) -> str:
    """What is said of a word while it is chosen. Said of a selected word while it is chosen."""
    with_it, without = both_shown(word.probability, word.without)
    chances = f"{with_it} with the context, {without} without"
    instead = "the same word is likeliest without it"
    if word.instead is not None:
        instead = f"without it, {wording.quoted(word.instead)} is likeliest"
    return f"{wording.quoted(word.name)}: {chances}; {instead}."


# ---------------------------------------------------------------------- tables for all readers


def _sources(use: ContextUse, words: Sequence[Found]) -> str:
    """What each word rests on, by each method, with what the evidence says.

    Said as a heading where some word was selected.
    """
    if not words:
        return ""
    heads = [standing(use), "rests on", "evidence"]
    title = "What each of them rests on"
    if len(use.methods) > 1:
        heads.insert(1, "by")
    else:  # one method needs no column
        title += f", by {text(''.join(use.methods))}"
    head = "".join(element("th", name, scope="col", class_="left") for name in heads)
    rows = [_source_row(use, word, method) for word in words for method in use.methods]
    shown_table = table(element("tr", head), rows, class_="costs")
    return element("h3", title) + scrolling("sources", shown_table)


def _source_row(use: ContextUse, word: Found, method: str) -> str:
    attribution = use.of(word.strongest, method)
    scores = attribution.scores
    form = wording.score_format(scores.tolist(), attribution.signed)

    def entries(units: Sequence[int]) -> str:
        listed = []
        for unit in units[:SOURCES]:
            score = form(float(scores[unit])).replace("-", "−")
            name = use.place(unit) if is_of_texts(use) else use.units.distinct_names[unit]
            listed.append(f"{named(name)}&nbsp;{score}")
        return ", ".join(listed)

    rests = [entries(use.sources(word.strongest, method))]
    if is_opposed(use, word, method):
        opposing = entries(use.opposing(word.strongest, method))
        rests.append(f"{opposed_words(use, word, method)}: {opposing}")
    judged = badge(attribution, short=True) if attribution.evidence is not None else "–"
    cells = [
        element("th", named(word.name), scope="row", class_="left"),
        *([element("td", text(method), class_="left")] if len(use.methods) > 1 else []),
        element("td", "; ".join(filter(None, rests)) or "–", class_="left"),
        element("td", judged, class_="left"),
    ]
    return element("tr", "".join(cells))


def _outputs(use: ContextUse) -> str:
    """Said as the name of the table of all tokens."""
    heads = ("token", "with", "without", use.selection.measure, "without, likeliest")
    sides = ("left", None, None, None, None)  # of a column; as the cells below
    columns = zip(heads, sides, strict=True)
    head = "".join(element("th", text(name), scope="col", class_=c) for name, c in columns)
    rows = []
    for number, output in enumerate(use.outputs):
        name = named(output_name(output.name))
        if number in use.selected:
            name = element("strong", name)
        cells = [
            element("th", name, scope="row", class_="left"),
            element("td", percent(output.probability).replace(" ", "&nbsp;")),
            element("td", percent(output.without).replace(" ", "&nbsp;")),
            element("td", f"{output.score:.4g}".replace("-", "−")),
            element("td", "the same" if output.is_same else named(output_name(output.instead))),
        ]
        rows.append(element("tr", "".join(cells)))
    return scrolling("tokens in both runs", table(element("tr", head), rows, class_="costs"))


def _about(use: ContextUse) -> str:
    """Said at the end of a page."""
    lines = [
        *remarks(use),
        f"In all {wording.cost(use.cost)}.",
        "Colours are by the strongest unit for the chosen word; of a word of several tokens, the "
        "scores of those that depend on the context are added.",
    ]
    return paragraphs(lines)
