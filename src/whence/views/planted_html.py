"""The planted truth as a page: the answer, the table, and one text of each mechanism, worked out.

Nothing is loaded from elsewhere, and every text is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from whence.core.answer import CONTROL
from whence.core.evidence import Verdict
from whence.core.planted import Example, Finding, Planted, PlantedTruth, Said
from whence.views import wording
from whence.views.document import document, embedded_json, static, style
from whence.views.markup import (
    element,
    elements,
    fold,
    kind,
    paragraphs,
    scrolling,
    soft,
    table,
    text,
)
from whence.views.planted import (
    CHANCE,
    NONE,
    chance_of,
    count_of,
    explaining,
    how_to_read,
    interval_of,
    name_of,
    planted_sentences,
)
from whence.views.verdicts import MARKS

FOUND, IN_SOME, MISSED = "✓", "half", "✗"


def planted_page(truth: PlantedTruth) -> str:
    """A whole page. Said as the title of the page."""
    return document(
        f"whence: {wording.counted(len(explaining(truth)), 'method')} on the planted truth",
        element("main", f"\n{_content(truth)}\n", class_="whence-many"),
        styles=[static("report.css"), static("planted.css")],
        scripts=False,
    )


def planted_fragment(truth: PlantedTruth) -> str:
    """What a notebook shows."""
    return style(static("report.css")) + style(static("planted.css")) + _content(truth)


def _content(truth: PlantedTruth) -> str:
    """Said as headings of the page."""
    first, *rest = [text(line).replace(" %", "&nbsp;%") for line in planted_sentences(truth)]
    parts = [
        element("h2", "Answer"),
        element("p", first, class_="answer"),
        elements("p", rest, class_="trust"),
        element("h3", "How often each method finds what was planted"),
        truth_table(truth),
        paragraphs(how_to_read(truth)),
    ]
    if truth.examples:
        parts.append(element("h3", "One text of each mechanism, as each method sees it"))
        parts.append(soft(_legend(truth)))
    about = {mechanism.name: mechanism for mechanism in truth.mechanisms}
    for example in truth.examples:
        parts.append(_worked(example, about.get(example.mechanism), truth.methods))
    parts.append(fold("Settings and provenance", _provenance(truth)))
    parts.append(embedded_json(truth.to_dict()))
    return element("section", "\n".join(parts), class_="whence planted")


# ---------------------------------------------------------------------- the table


def truth_table(truth: PlantedTruth) -> str:
    """Methods by mechanisms, beside what chance gets. Said as the name of the table."""
    names = [text(mechanism.name) for mechanism in truth.mechanisms]
    head = element("th", "method", scope="col", class_="left") + elements("th", names, scope="col")
    rows = []
    for method in truth.methods:
        found = truth.of(method)
        cells = [_cell(found.get(mechanism.name)) for mechanism in truth.mechanisms]
        rows.append(_row(name_of(method), cells, "control" if method == CONTROL else None))
    exact = [
        element("td", _count_and_interval(chance_of(mechanism))) for mechanism in truth.mechanisms
    ]
    rows.append(_row(CHANCE, exact, "control"))
    shown = table(element("tr", head), rows, class_="costs truth")
    return scrolling("what each method found", shown, whole=True)


def _row(name: str, cells: Sequence[str], class_: str | None) -> str:
    head = element("th", text(name), scope="row", class_="left")
    return element("tr", head + "".join(cells), class_=class_)


def _cell(finding: Finding | None) -> str:
    """The number of texts, its interval, and a ground as strong as the share."""
    if finding is None:
        return element("td", NONE)
    mark = "" if finding.verdict is Verdict.BETTER else f"{MARKS[finding.verdict]} "
    shown = f"{mark}{count_of(finding.found)} {interval_of(finding.interval)}"
    tip = (
        f"{finding.method} on {finding.mechanism}: {count_of(finding.found)} of "
        f"{wording.counted(finding.texts, 'text')}, mean recall {finding.recall:.2f}, "
        f"{wording.p_value(finding.adjusted)} corrected, {finding.verdict}"
    )
    tint = f"--v:{finding.share:.3f}"
    return element("td", _count_and_interval(shown), class_="share", style=tint, title=tip)


def _count_and_interval(cell: str) -> str:
    count, _, interval = cell.rpartition(" ")
    return f"{text(count)} {element('small', text(interval))}"


# ---------------------------------------------------------------------- a text, worked out


def _legend(truth: PlantedTruth) -> str:
    """Said above the texts that are worked out; of signs where a method has them, and of none where
    one has none.
    """
    said = [one for example in truth.examples for one in example.said.values()]
    colours = []
    if any(one.signed for one in said):
        colours.append("orange holds the label up, blue speaks against it")
    if any(not one.signed for one in said):
        colours.append("purple has no sign")
    colours.append("full colour is the method's largest score")
    return text(
        "A frame marks the planted words (gold), a dotted line a decoy, which the output ignores. "
        f"{'; '.join(colours).capitalize()}. {FOUND} says that all planted words are ranked first; "
        "a percentage, that they are in such a share of the ways to break ties."
    )


def _worked(example: Example, mechanism: Planted | None, order: Sequence[str]) -> str:
    """A matrix: a row for each method, a column for each word.

    Said of a text that is worked out.
    """
    words = []
    for place, unit in enumerate(example.units):
        words.append(element("th", text(unit), scope="col", class_=_role(example, place)))
    head = element("th", "method", scope="col", class_="left") + "".join(words)
    head += element("th", "gold first", scope="col")
    rows = []
    for method in order:
        if method in example.said:
            rows.append(_said(method, example.said[method], example))
    about = "" if mechanism is None else f": {mechanism.about}"
    title = element("h4", text(f"{example.mechanism}{about}"))
    label = soft(f"The model says <strong>{text(example.label)}</strong>.")
    shown = table(element("tr", head), rows, class_="words")
    name = f"{example.mechanism}: scores of each word by each method"
    return title + label + scrolling(name, shown, whole=True)


def _role(example: Example, place: int) -> str | None:
    if place in example.gold:
        return "gold"
    return "decoy" if place in example.decoys else None


def _said(method: str, said: Said, example: Example) -> str:
    scores = np.array(said.scores)
    largest = np.abs(scores).max(initial=0.0)
    levels = scores / largest if largest > 0 else scores
    cells = []
    for place, (score, level) in enumerate(zip(scores.tolist(), levels.tolist(), strict=True)):
        role = _role(example, place)
        classes = kind(level, said.signed) + (f" {role}" if role else "")
        tip = f"{example.units[place]}: {wording.exact(score, said.signed)}"
        tint = f"--v:{abs(level):.3f}"
        cells.append(element("td", "", class_=classes, style=tint, title=tip, aria_label=tip))
    mark = MISSED
    if said.found > 0:
        mark = FOUND if said.found == 1 else wording.percent(said.found)
    return _row(name_of(method), [*cells, element("td", text(mark))], None)


def _provenance(truth: PlantedTruth) -> str:
    facts = [("seed", str(truth.seed))]
    for mechanism in truth.mechanisms:
        texts = wording.counted(mechanism.texts, "text")
        words = f"{mechanism.model}, weights {mechanism.fingerprint}; {texts}"
        facts.append((mechanism.name, words))
    facts += [(method, wording.settings(given)) for method, given in truth.settings.items()]
    versions = ", ".join(f"{name} {version}" for name, version in truth.versions.items())
    facts.append(("versions", versions))
    rows = [element("dt", text(name)) + element("dd", text(fact)) for name, fact in facts]
    return element("dl", "".join(rows))
