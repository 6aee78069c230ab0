"""A text that a model wrote as one page: a reader, rows, a matrix, and the evidence.

Without scripts the text, a table of the strongest sources, and the evidence are there.
"""

from __future__ import annotations

from collections.abc import Mapping

from whence.core.attribution import Attribution
from whence.core.generation import Generation
from whence.views import wording
from whence.views.document import document, fresh_id, script, static, style, title_of
from whence.views.generation import (
    Row,
    about_wholes,
    contrast_of,
    decoding_line,
    is_signed,
    percent,
    question,
    remarks,
    rows_of,
    scores_line,
    standing,
    unit_names,
    without_evidence,
)
from whence.views.generation_data import STEPS, packed, rows_by_kind
from whence.views.html import (
    UNSIGNED_RAMP,
    answered,
    judgement_of,
    ramp,
    signed_legend,
    with_verdict,
    words_explained,
)
from whence.views.judgement import costs
from whence.views.markup import (
    element,
    elements,
    fold,
    named,
    paragraphs,
    scrolling,
    soft,
    table,
    text,
)
from whence.views.sides import sides_of

SCRIPTS = (
    "percent.js",
    "attention-shared.js",  # bytes, small elements, short names
    "generation-scores.js",
    "generation-reader.js",
    "generation-rows.js",
    "generation-matrix.js",
    "generation.js",
)
SOURCES = 5  # of each written word, in the table
# Said below the text.
HOW_TO_READ = (
    "Point at a {standing} word, or move to it with Tab and the arrow keys, and what it rests on "
    "is coloured. A click (Enter) keeps it chosen, Esc lets it go. A click on a word of the prompt "
    "shows what rests on it."
)
# Said below the matrix.
HOW_TO_READ_MATRIX = (
    "A row is a {standing} word, a column what stands before it; empty is what comes after. Point "
    "at a cell, or move with the arrow keys, to read it; a click (Enter) chooses the word above."
)
# Said below the matrix where its columns are sentences that open.
HOW_TO_OPEN = "A click on a column's name, or the key <kbd>o</kbd>, opens and closes its sentence."


def generation_page(g: Generation) -> str:
    """A whole page for one generated text."""
    title = title_of(g.prompt, "a generated text")
    return document(
        f"whence: {title}",
        element("main", f"\n{_section(g, 'whence-0')}\n", class_="whence-many"),
        styles=[
            static("report.css"),
            static("rows.css"),
            static("generation.css"),
        ],
    )


def generation_fragment(g: Generation) -> str:
    """What a notebook shows; several may stand in a document."""
    styles = "".join(style(static(f"{name}.css")) for name in ("report", "rows", "generation"))
    return styles + _section(g, fresh_id())


def _section(g: Generation, name: str) -> str:
    """Said as the heading of the notes."""
    parts = [
        _top(g),
        _reader(g),
        _matrix(g),
        _tables(g),
        *([] if g.chosen is None else judgement_of(g.chosen)),
        fold("How it came about, what it cost, and notes", _about(g)),
        words_explained(),
        packed(g),
        script(_program(name)),
    ]
    content = "\n".join(part for part in parts if part)
    return element("section", f"\n{content}\n", class_="whence generation", id=name)


def _program(name: str) -> str:
    """All scripts in one function, so that the names of several fragments do not meet."""
    program = "\n".join(map(static, SCRIPTS))
    return f'(function (root) {{\n"use strict";\n{program}\n}})(document.getElementById("{name}"));'


# ---------------------------------------------------------------------- the answer


def _top(g: Generation) -> str:
    """What was written, what it rests on, and how far to trust that.

    Said above a page: what the evidence is about, where there is some.
    """
    if g.chosen is None:
        about = [element("h2", "Answer"), element("p", text(without_evidence(g)), class_="answer")]
    else:
        about = answered(g.chosen.answer)
        about.append(soft(f"The evidence is about {text(wording.value(g.chosen.first))}."))
    about.insert(0, element("p", text(question(g)), class_="asked"))
    first = next(iter(g.rows.values()))[0]
    about.append(soft(f"Model: {text(wording.model_line(first))}. {text(decoding_line(g))}"))
    return element("div", element("div", "".join(about)), class_="top")


# ---------------------------------------------------------------------- what the script fills


def _reader(g: Generation) -> str:
    """The text, which the script makes a reader; beside it what is told of the chosen word.

    Said as the heading of the text.
    """
    judged = {} if g.chosen is None else g.chosen.attributions
    methods = {}
    for place, method in enumerate(g.methods):
        methods[str(place)] = method if method not in judged else with_verdict(judged[method])
    levels = {"whole": "words", "token": "tokens"}
    has_levels = any(len(word) > 1 for word in g.words)
    chosen = [_select("method", "By", methods)]
    if has_levels:
        chosen.append(_select("level", standing(g).capitalize(), levels))
    written = element("span", text(g.text, keep="\n\t"), class_="plain")
    running = text(g.prompt, keep="\n\t") + written
    name = f"the prompt and what was {standing(g)}"
    kinds = {str(place): rows["kind"] for place, rows in enumerate(rows_by_kind(g))}
    left = [
        element("div", running, class_="text reader", dir="auto", role="group", aria_label=name),
        _legend(g),
        soft(HOW_TO_READ.format(standing=standing(g))),
        element("p", class_="soft together"),
        element("div", _select("rows", "Rows are", kinds), class_="by-row", hidden=True),
    ]
    beside = element("div", class_="about", aria_live="polite")
    parts = [
        element("h3", "What each word rests on"),
        soft(text(_about_scores(g))),
        element("div", "".join(chosen), class_="controls", hidden=True),
        element("div", element("div", "".join(left), class_="side") + beside, class_="desk"),
    ]
    return "".join(parts)


def _about_scores(g: Generation) -> str:
    """Said below that heading; of the colours where a contrast of whole texts was asked for."""
    about = scores_line(g, g.methods[0])
    if g.contrast is None:
        return about
    return f"{about} While no word is chosen, the colours are those of the contrast."


def _select(name: str, title: str, options: Mapping[str, str]) -> str:
    choices = [element("option", text(shown), value=value) for value, shown in options.items()]
    select = element("select", "".join(choices), data_control=name)
    return element("label", f"{title} {select}", class_="choice")


def _legend(g: Generation) -> str:
    """Said of methods without signs, where one explained."""
    parts = []
    signed = [is_signed(g, method) for method in g.methods]
    if any(signed):
        parts.append(signed_legend(sides_of(g[g.methods[0]][0].target), "it"))
    if not all(signed):
        parts.append(f"matters little{ramp(UNSIGNED_RAMP)}much (a method without signs)")
    return element("p", elements("span", parts), class_="legend")


def _matrix(g: Generation) -> str:
    """Said beside the matrix, by its menus."""
    scales = {"row": "the strongest of each row", "all": "the strongest of all"}
    columns = {"open": f"each {g.passage.kind}", "folded": "sentences"}
    controls = [
        _select("columns", "Columns are", columns),
        _select("scale", "Full colour is", scales),
    ]
    readout = element("p", class_="readout", role="status")
    parts = [
        element("h3", "All at once"),
        element("div", "".join(controls), class_="controls"),
        element("div", element("canvas", tabindex=0, role="img"), class_="scroll cells"),
        readout,
        soft(HOW_TO_READ_MATRIX.format(standing=standing(g))),
        element("p", HOW_TO_OPEN, class_="soft opening", hidden=True),
    ]
    return element("div", "".join(parts), class_="map", hidden=True)


# ---------------------------------------------------------------------- tables for all readers


def _tables(g: Generation) -> str:
    """The strongest sources of every written word, as text: by the method that is chosen.

    Said as the heading of the tables.
    """
    tables = []
    for place, method in enumerate(g.methods):
        shown = _table(g, method)
        note = about_wholes(g, method)
        if note:
            shown += soft(text(note))
        tables.append(element("div", shown, class_="sources", hidden=place > 0))
    return fold(f"As a table: the strongest sources of every {standing(g)} word", "".join(tables))


def _table(g: Generation, method: str) -> str:
    """Said as the head of a table: by which method."""
    signed = is_signed(g, method)
    heads = element("th", standing(g), scope="col", class_="left")
    heads += element("th", "probability", scope="col")
    heads += element("th", f"rests on, by {text(method)}", scope="col", class_="left")
    rows = [_table_row(row, signed) for row in rows_of(g, method)]
    if g.contrast is not None and method in g.contrast.attributions:
        rows.insert(0, _contrast_row(g, g.contrast.attributions[method]))
    strongest = table(element("tr", heads), rows, class_="costs")
    return scrolling(f"strongest sources by {method}", strongest)


def _contrast_row(g: Generation, a: Attribution) -> str:
    """The contrast of two whole texts, above the words of the one that was written."""
    row = Row(range(0), "", 0.0, a.scores, tuple(unit_names(g)))
    cells = [
        element("th", text(contrast_of(g)), scope="row", class_="left", colspan=2),
        element("td", _sources_cell(row, a.signed), class_="left"),
    ]
    return element("tr", "".join(cells))


def _sources_cell(row: Row, signed: bool) -> str:
    shown = wording.score_format(row.scores.tolist(), signed)
    sources = []
    for unit in row.strongest(SOURCES, shown):
        score = shown(float(row.scores[unit])).replace("-", "−")
        sources.append(f"{named(row.sources[unit])}&nbsp;{score}")
    return ", ".join(sources) or "–"


def _table_row(row: Row, signed: bool) -> str:
    cells = [
        element("th", named(row.name), scope="row", class_="left"),
        element("td", percent(row.probability).replace(" ", "&nbsp;")),
        element("td", _sources_cell(row, signed), class_="left"),
    ]
    return element("tr", "".join(cells))


# ---------------------------------------------------------------------- how it came about


def _about(g: Generation) -> str:
    """Said in the notes of a page."""
    lines = [
        decoding_line(g),
        *remarks(g),
        f"In all {wording.cost(g.cost)}.",
        f"Scores on this page are in steps of 1/{STEPS} of the largest of their row, so a score is "
        f"off by at most 1/{2 * STEPS} of that, and the sum of several by as much as all of them; "
        "saved as JSON, the result has all digits.",
        "A probability is the model's own, whatever the decoding made of it. The entropy is that "
        "of all tokens that could have stood there.",
    ]
    chosen = "" if g.chosen is None else costs(list(g.chosen.attributions.values()), g.chosen)
    if chosen:
        chosen = element("h4", "Of the evidence and what it is about") + chosen
    return paragraphs(lines) + chosen
