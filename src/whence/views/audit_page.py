"""The page of an audit: the answer, layers, heads, readings, and figures. No scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whence.core.audit import Effect, Place
from whence.core.audited import ADVERSARY, PERMUTATION, Audit, May, PlaceVerdict
from whence.views import audit_pictures as pictures
from whence.views import wording
from whence.views.audit import (
    HOW_TO_READ,
    LN_2,
    READINGS_MEAN,
    audit_sentences,
    shown,
    shown_of_most,
    shown_share,
)
from whence.views.document import GROUND, document, static
from whence.views.markup import element, elements, paragraphs, scrolling, soft, table, text

SHEETS = ("report.css", "evaluation.css", "audit.css")
CLASSES = {May.YES: "better", May.SEVERAL: "several", May.NO: "worse", May.OPEN: "open"}
LEAD = 2  # sentences that are the answer itself
ABOUT_HEADS = (
    "How far the output's probabilities move, on average over texts, when the weights of one head "
    "are shuffled. Green may be read, yellow is one explanation of several, red may not be read, "
    "grey is undecided. Point at a cell for its "
    "interval and the reason."
)
ABOUT_PERMUTATION = (
    "Each point is a text: the largest attention weight, and how far the output moves when the "
    "weights are shuffled (the median of many shuffles). Points at the bottom right are the trap: "
    "attention is sure of one word, and the output does not care (Jain & Wallace 2019, figure 6)."
)
ABOUT_ADVERSARY = (
    "How different an attention was found that gives the same output (Jensen-Shannon divergence in "
    "nats; at most ln 2 = 0.69). Bars at the right: many attentions would do, and the one that was "
    "seen is not the reason (Jain & Wallace 2019, figure 8)."
)


def audit_page(audit: Audit) -> str:
    """The whole page."""
    return document(
        f"whence: is attention an explanation? {wording.visible(audit.model)}",
        element("main", _body(audit)),
        styles=[*map(static, SHEETS), GROUND],
        scripts=False,
    )


def _body(audit: Audit) -> str:
    said = audit_sentences(audit)
    parts = [
        element("h2", text(f"{audit.texts:,} texts of {_file(audit.data)}")),
        element("p", " ".join(text(line) for line in said[:LEAD]), class_="answer"),
        element("ul", elements("li", map(text, said[LEAD:])), class_="cautions"),
        *_places(audit),
        *_heads(audit),
        *_readings(audit),
        *_of_permutation(audit),
        *_of_adversary(audit),
        *_skipped(audit),
        soft(
            text(
                f"{audit.forwards:,} forward and {audit.backwards:,} backward passes of the "
                f"model; seed {audit.seed}."
            )
        ),
    ]
    return element("section", "\n".join(parts), class_="whence evaluation audit")


def _file(source: str) -> str:
    return wording.visible(source.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1])


def _places(audit: Audit) -> Iterator[str]:
    verdicts = [*audit.of_layers, *([audit.of_all] if audit.of_all else [])]
    if not verdicts:
        return
    head = elements("th", ["attention of", "verdict", "shuffled", "even", "another"], scope="col")
    rows = []
    for verdict in verdicts:
        cells = [shown(verdict.permutation), shown(verdict.uniform)]
        cells.append(shown_of_most(verdict.adversary))
        said = element("td", text(verdict.may), class_=CLASSES[verdict.may], title=verdict.why)
        name = element("th", text(verdict.place), scope="row")
        rows.append(element("tr", name + said + elements("td", map(text, cells))))
    yield element("h3", "Layer by layer")
    yield scrolling("layers", table(element("tr", head), rows, class_="grid"))
    yield soft(text(HOW_TO_READ))


def _heads(audit: Audit) -> Iterator[str]:
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
    yield soft(text(ABOUT_HEADS))


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
    if verdict is None or verdict.permutation is None:
        return element("td", "–")
    tip = f"{verdict.place}: {shown(verdict.permutation)}; {verdict.may}: {verdict.why}"
    mean = f"{verdict.permutation.mean:.2f}"
    return element("td", text(mean), class_=CLASSES[verdict.may], title=tip)


def _readings(audit: Audit) -> Iterator[str]:
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


def _with_values(audit: Audit, test: str, quantity: str) -> list[Effect]:
    """The effects of a test whose values on each text are kept, layers first."""
    found = [e for e in audit.effects if (e.test, e.quantity) == (test, quantity) and e.values]
    return sorted(found, key=lambda e: (e.place.layer is None, e.place.kind, e.place.layer or 0))


def _of_permutation(audit: Audit) -> Iterator[str]:
    figures = []
    for change in _with_values(audit, PERMUTATION, "change"):
        largest = audit.effect(PERMUTATION, "largest", change.place)
        if largest is None or len(largest.values) != len(change.values):
            continue
        names = ("largest weight", "change of the output")
        label = f"{change.place}: change of the output against the largest weight"
        picture = pictures.scatter(largest.values, change.values, names, label)
        figures.append((picture, change.place))
    if figures:
        yield element("h3", "Shuffled attention, text by text")
        yield soft(text(ABOUT_PERMUTATION))
        yield _in_a_row(figures)


def _of_adversary(audit: Audit) -> Iterator[str]:
    figures = []
    for effect in _with_values(audit, ADVERSARY, "jsd"):
        label = f"{effect.place}: how different another attention can be"
        names = ("difference, nats", "texts")
        figures.append((pictures.histogram(effect.values, LN_2, names, label), effect.place))
    if figures:
        yield element("h3", "Another attention with the same output")
        yield soft(text(ABOUT_ADVERSARY))
        yield _in_a_row(figures)


def _in_a_row(figures: Sequence[tuple[str, Place]]) -> str:
    drawn = []
    for picture, place in figures:
        drawn.append(element("figure", picture + element("figcaption", text(place))))
    return element("div", "".join(drawn), class_="pictures")


def _skipped(audit: Audit) -> Iterator[str]:
    if audit.skipped:
        yield element("h3", "Not measured on some texts")
        yield paragraphs([f"{name}: {why}" for name, why in audit.skipped.items()])
    yield paragraphs(list(audit.notes))
