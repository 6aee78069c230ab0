"""A card as a page: what the answers mean together, the table, and what was not asked yet."""

from __future__ import annotations

from whence.core.card import Card, Standing
from whence.core.question import Question
from whence.views import wording
from whence.views.card import (
    CONTROL,
    HEADS,
    card_sentences,
    cell_of,
    left_out_line,
    shown_questions,
    source_lines,
)
from whence.views.document import document, embedded_json, static, style
from whence.views.markup import element, elements, fold, paragraphs, scrolling, table, text

# the ground of a cell: as that of the verdicts of a report
TINTS = {
    Standing.YES: "good",
    Standing.PART: "part",
    Standing.NO: "bad",
    Standing.OPEN: None,
    None: None,
}


def card_page(card: Card) -> str:
    """A whole page."""
    return document(
        f"whence: explanations of {wording.model_name(card.model)}",
        element("main", f"\n{_content(card)}\n", class_="whence-many"),
        styles=[static("report.css"), static("card.css")],
        scripts=False,
    )


def card_fragment(card: Card) -> str:
    """What a notebook shows."""
    return style(static("report.css")) + style(static("card.css")) + _content(card)


def _content(card: Card) -> str:
    """Said as headings; that nothing was left out where no file was."""
    first, *rest = map(text, card_sentences(card))
    parts = [
        element("h2", f"Can explanations of {text(wording.model_name(card.model))} be trusted?"),
        element("p", first, class_="answer"),
        elements("p", rest, class_="trust"),
        element("h3", "Four questions, four answers"),
        scrolling("what was saved of each method", _table(card), whole=True),
        _questions(card),
        fold("Provenance", paragraphs([left_out_line(card) or "Nothing was left out."])),
        embedded_json(card.to_dict()),
    ]
    return element("section", "\n".join(parts), class_="whence card")


def _table(card: Card) -> str:
    questions = shown_questions(card)
    heads = [element("th", "method", scope="col", class_="left")]
    for question in questions:
        heads.append(element("th", text(HEADS[question]), scope="col", class_="left"))
    rows = []
    for method in card.methods:
        cells = [element("th", text(method), scope="row", class_="left")]
        cells += [_cell(card, method, question) for question in questions]
        is_control = "control" if method == CONTROL else None
        rows.append(element("tr", "".join(cells), class_=is_control))
    return table(element("tr", "".join(heads)), rows, class_="costs answers")


def _cell(card: Card, method: str, question: Question) -> str:
    tint = TINTS[card.standing(method, question)]
    classes = f"left {tint}" if tint else "left"
    # on a narrow screen each cell stands below the other, with what was asked before it
    asked = element("span", f"{text(HEADS[question])}: ", class_="asked")
    return element("td", asked + text(cell_of(card, method, question)), class_=classes)


def _questions(card: Card) -> str:
    """Each question with the files that answer it."""
    items = []
    for question, files in source_lines(card):
        items.append(f"<b>{text(HEADS[question])}</b>: {text(question.asked)} {text(files)}.")
    return element("ul", elements("li", items))
