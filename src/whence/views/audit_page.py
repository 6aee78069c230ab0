"""The page of an audit: the answer, layers, heads, readings, and figures. No scripts."""

from __future__ import annotations

from collections.abc import Iterator

from whence.core.audit import Place
from whence.core.audited import Audit, May, PlaceVerdict
from whence.core.question import Question
from whence.views import wording
from whence.views.audit import (
    NOTHING,
    READINGS_MEAN,
    audit_lead,
    audit_rest,
    columns_of,
    count_sentences,
    how_to_read,
    places_of,
    shown,
    shown_share,
    what_moves,
)
from whence.views.audit_figures import FIGURES
from whence.views.document import document, static
from whence.views.markup import element, elements, paragraphs, scrolling, soft, table, text

SHEETS = ("report.css", "evaluation.css", "audit.css", "drawing.css")
CLASSES = {May.YES: "better", May.SEVERAL: "several", May.NO: "worse", May.OPEN: "open"}
# Said below the heads.
COLOURS_MEAN = (
    "Green may be read, yellow is one explanation of several, red may not be read, grey is "
    "undecided. Point at a cell for its intervals and the reason."
)


def audit_page(audit: Audit) -> str:
    """The whole page. Said as the title of a page."""
    return document(
        f"whence: is attention an explanation? {wording.model_name(audit.model)}",
        element("main", _body(audit)),
        styles=[*map(static, SHEETS)],
        scripts=False,
    )


def _body(audit: Audit) -> str:
    """Said last, of every audit."""
    parts = [
        element(
            "h2", text(f"{wording.counted(audit.texts, 'text')} of {wording.file_name(audit.data)}")
        ),
        element("p", " ".join(text(line) for line in audit_lead(audit)), class_="answer"),
        element("ul", elements("li", map(text, audit_rest(audit))), class_="cautions"),
        soft(text(wording.answers(Question.ATTENTION))),
        *_places(audit),
        *_heads(audit),
        *_readings(audit),
        *_figures(audit),
        *_retrained(audit),
        *_skipped(audit),
        soft(
            text(
                f"{audit.forwards:,} forward and {audit.backwards:,} backward passes of the "
                f"model; seed {audit.seed}."
            )
        ),
    ]
    return element("section", "\n".join(parts), class_="whence evaluation audit")


def _places(audit: Audit) -> Iterator[str]:
    """Said above the layers, where some were tested."""
    verdicts = places_of(audit)
    if not verdicts:
        return
    columns = columns_of(verdicts)
    head = elements("th", ["attention of", "verdict", *columns], scope="col")
    rows = []
    for row, verdict in enumerate(verdicts):
        cells = [each[row] for each in columns.values()]
        said = element("td", text(verdict.may), class_=CLASSES[verdict.may], title=verdict.why)
        name = element("th", text(verdict.place), scope="row")
        rows.append(element("tr", name + said + elements("td", map(text, cells))))
    yield element("h3", "Layer by layer")
    yield scrolling("layers", table(element("tr", head), rows, class_="grid"))
    yield soft(text(how_to_read(audit)))
    yield paragraphs(count_sentences(audit))


def _heads(audit: Audit) -> Iterator[str]:
    """Said above and below the heads, where some were tested."""
    heads = audit.of_heads
    if not heads:
        return
    kinds = dict.fromkeys(verdict.place.kind for verdict in heads)
    yield element("h3", "Head by head")
    for kind in kinds:
        of_kind = {v.place: v for v in heads if v.place.kind == kind}
        if kind:
            yield soft(text(kind))
        yield scrolling("heads", _grid(of_kind))
    is_shuffled = any(verdict.permutation for verdict in heads)
    what = "shuffled" if is_shuffled else "made even: every token looks at everything alike"
    yield soft(
        text(
            f"How far {what_moves(audit)}, on average over texts, when the weights of one head are "
            f"{what}. {COLOURS_MEAN}"
        )
    )


def _grid(verdicts: dict[Place, PlaceVerdict]) -> str:
    """A row for each layer, a column for each head."""
    heads = sorted({place.head for place in verdicts if place.head is not None})
    layers = sorted({place.layer for place in verdicts if place.layer is not None})
    kind = next(iter(verdicts)).kind
    head = elements("th", ["", *(f"head {number}" for number in heads)], scope="col")
    rows = []
    for layer in layers:
        cells = [_head_cell(verdicts.get(Place(layer, number, kind))) for number in heads]
        name = element("th", text(f"layer {layer}"), scope="row")
        rows.append(element("tr", name + "".join(cells)))
    return table(element("tr", head), rows, class_="grid")


def _head_cell(verdict: PlaceVerdict | None) -> str:
    change = None if verdict is None else verdict.permutation or verdict.uniform
    if verdict is None or change is None:
        return element("td", NOTHING)
    found = {"shuffled": verdict.permutation, "even": verdict.uniform}
    said = "; ".join(f"{name} {shown(effect)}" for name, effect in found.items() if effect)
    tip = f"{verdict.place}: {said}; {verdict.may}: {verdict.why}"
    mean = f"{change.mean:z.2f}"
    return element("td", text(mean), class_=CLASSES[verdict.may], title=tip)


def _readings(audit: Audit) -> Iterator[str]:
    """Said above the readings, where some were tested."""
    if not audit.readings:
        return
    names = ["reading", "verdict", "beaten", "τ, left out", "τ, gradient"]
    rows = []
    for verdict in audit.readings:
        cells = [shown_share(verdict.beaten), shown(verdict.tau_loo), shown(verdict.tau_gradient)]
        said = element("td", text(verdict.may), class_=CLASSES[verdict.may], title=verdict.why)
        name = element("th", text(verdict.reading), scope="row")
        rows.append(element("tr", name + said + elements("td", map(text, cells))))
    yield element("h3", "Ways to sum attention up for each word")
    head = element("tr", elements("th", names, scope="col"))
    yield scrolling("readings", table(head, rows, class_="grid"))
    yield soft(text(READINGS_MEAN))


def _figures(audit: Audit) -> Iterator[str]:
    for kind in FIGURES.values():
        panels = kind.panels(audit)
        if panels:
            yield element("h3", text(kind.title))
            yield soft(text(kind.about(audit)))
            drawn = []
            for title, picture in panels:
                caption = element("figcaption", text(title))
                drawn.append(element("figure", picture.svg() + caption))
            classes = "pictures wide" if kind.is_wide else "pictures"
            yield element("div", "".join(drawn), class_=classes)


def _retrained(audit: Audit) -> Iterator[str]:
    """Said where a test has trained models."""
    if not audit.retrained:
        return
    yield element("h3", "Models that were trained for it")
    for each in audit.retrained:
        lines = wording.visible(each.says, keep="\n").split("\n")
        said = [line for line in lines if not line.startswith(" ")]
        listed = [line.strip() for line in lines if line.startswith(" ")]
        yield element("h4", text(each.test))
        yield element("p", "<br>".join(map(text, said)))
        if listed:
            yield element("ul", elements("li", map(text, listed)), class_="listed")


def _skipped(audit: Audit) -> Iterator[str]:
    """Said where something was not measured on some text."""
    if audit.skipped:
        yield element("h3", "Not measured on some texts")
        yield paragraphs([f"{name}: {why}" for name, why in audit.skipped.items()])
    yield paragraphs(list(audit.notes))
