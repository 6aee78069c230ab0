"""The page of an evaluation: the answer, planted truth, the tables, the curves. No scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whence.core.evaluation import Cell, Column, Evaluation, MeanCurves
from whence.core.evidence import TrialCurves, Verdict
from whence.core.glossary import ON_TRIAL
from whence.core.percent import digits
from whence.core.planted import PlantedTruth
from whence.core.registry import METRIC_GROUPS
from whence.views import curves as pictures
from whence.views import wording
from whence.views.document import document, static, style
from whence.views.evaluation import (
    BUILT_IN,
    MARKS,
    MARKS_MEAN,
    asked,
    count_sentences,
    counts_of,
    evaluation_sentences,
    idle_sentences,
    number,
    ranked_methods,
)
from whence.views.html import words_explained
from whence.views.markup import element, elements, paragraphs, scrolling, soft, table, text
from whence.views.planted import how_to_read, planted_sentences
from whence.views.planted_html import truth_table

CLASSES = {Verdict.BETTER: "better", Verdict.WORSE: "worse", Verdict.SAME: "same"}
SHEETS = ("report.css", "planted.css", "evaluation.css")
# Said below the tables of a page.
HOW_TO_READ = (
    "Each cell: the mean over texts, and below it its 95 % bootstrap interval. Green and "
    f"{MARKS_MEAN} Point at a cell for its texts and its control."
)
LEAD = 2  # sentences that are the answer itself
# Said where curves were kept.
ABOUT_CURVES = (
    "The target while the words that a method ranks first leave the text (falling line), and while "
    "they enter an empty one (rising line): means over the texts. The dotted lines are "
    "random rankings. The further apart the two whole lines, the better."
)
# Said where removals were gauged.
ABOUT_GAUGES = (
    "How far texts with words removed lie from whole texts, in the model's own representation: the "
    "share of whole texts that lie further out than the median text with so many words removed. "
    "About a half looks like data; near zero, the model has not seen anything like it, and what "
    "it says there is about holes as much as about words."
)


def evaluation_page(evaluation: Evaluation) -> str:
    """The whole page."""
    methods = wording.counted(len(evaluation.methods), "method")
    return document(
        f"whence: {methods} on trial, {wording.model_name(evaluation.model)}",
        element("main", _body(evaluation)),
        styles=[*map(static, SHEETS)],
        scripts=False,
    )


def evaluation_fragment(evaluation: Evaluation) -> str:
    """The same for a notebook."""
    return "".join(style(static(sheet)) for sheet in SHEETS) + _body(evaluation)


def _body(evaluation: Evaluation) -> str:
    """Said last, of every table."""
    said = evaluation_sentences(evaluation)
    cautions = [*said[LEAD:], *count_sentences(evaluation), *evaluation.notes]
    texts = wording.counted(evaluation.texts, "text")
    parts = [
        element("h2", text(f"{texts} of {wording.file_name(evaluation.data)}")),
        element("p", " ".join(text(line) for line in said[:LEAD]), class_="answer"),
        element("ul", elements("li", map(text, cautions)), class_="cautions") if cautions else "",
        *(soft(text(line)) for line in asked(evaluation)),
        *_planted(evaluation.planted),
        *_tables(evaluation),
        *_gauges(evaluation),
        *_curves(evaluation),
        *_skipped(evaluation),
        *_failures(evaluation),
        words_explained(ON_TRIAL),
        soft(text(f"{evaluation.forwards:,} passes of the model; seed {evaluation.seed}.")),
    ]
    return element("section", "\n".join(parts), class_="whence planted evaluation")


# ---------------------------------------------------------------------- planted truth


def _planted(truth: PlantedTruth | None) -> Iterator[str]:
    """The only ground truth there is comes first: how often each method finds what is known.

    Said as a heading, where methods were tried on planted truth.
    """
    if truth is None:
        return
    yield element("h3", "Where the truth is known: how often each method finds what was planted")
    yield elements("p", map(text, planted_sentences(truth)[1:]), class_="trust")
    yield truth_table(truth)
    yield paragraphs(how_to_read(truth))


# ---------------------------------------------------------------------- the table


def _tables(evaluation: Evaluation) -> Iterator[str]:
    """Said as a heading of each kind and removal."""
    methods = ranked_methods(evaluation)
    for kind, about in METRIC_GROUPS.items():
        for removal in ("", *evaluation.removals):
            every = [c for c in evaluation.columns if (c.kind, c.removal) == (kind, removal)]
            columns = [column for column in every if not column.is_idle]
            if not every:
                continue
            by = f", words removed by {removal}" if removal else ""
            yield element("h3", text(f"{kind}{by}"))
            if removal in ("", *evaluation.removals[:1]):
                yield soft(text(about[0].upper() + about[1:] + ("" if about[-1] == "?" else ".")))
            if columns:
                yield _table(columns, methods, evaluation)
            yield paragraphs(idle_sentences(every))
    if evaluation.columns:
        yield soft(text(HOW_TO_READ))


def _table(columns: Sequence[Column], methods: Sequence[str], evaluation: Evaluation) -> str:
    names = [_name(column, evaluation) for column in columns]
    head = elements("th", ["method", *names], scope="col")
    rows = []
    for method in methods:
        cells = [column.cell(method) for column in columns]
        if not any(cells):
            continue
        shown = [_cell(cell, column) for cell, column in zip(cells, columns, strict=True)]
        rows.append(element("tr", element("th", text(method), scope="row") + "".join(shown)))
    control = [_cell(column.random, column) for column in columns]
    name = element("th", "random rankings", scope="row")
    rows.append(element("tr", name + "".join(control), class_="control"))
    return scrolling("table", table(element("tr", head), rows, class_="grid"))


def _name(column: Column, evaluation: Evaluation) -> str:
    """A metric, and its own number of texts where it is not that of the page."""
    name = text(f"{column.label}\N{NO-BREAK SPACE}{column.arrow}")
    counts = counts_of(column, evaluation)
    return name + (element("span", text(counts), class_="between") if counts else "")


def _cell(cell: Cell | None, column: Column) -> str:
    """Said where a cell is pointed at.

    ``deletion (mask): 40 texts; its control 0.213; it beats 99.6% of random ones``
    """
    if cell is None or not cell.texts:
        return element("td", "–")
    parts = [element("b", text(number(cell.mean)))]
    if cell.interval is not None:
        low, high = cell.interval
        parts.append(element("span", text(f"{number(low)} – {number(high)}"), class_="between"))
    mark = "" if cell.verdict is None else MARKS[cell.verdict].strip()
    mark += BUILT_IN if cell.built_in else ""
    # also where it is empty: it keeps the numbers in line
    parts.insert(1, element("sup", text(f"{mark} {cell.group}".strip())))
    tip = f"{column.name}: {wording.counted(cell.texts, 'text')}"
    if cell.control is not None:
        tip += f"; its control {number(cell.control)}"
    if cell.beaten is not None:
        tip += f"; it beats {digits(cell.beaten)}% of random ones"
    if cell.texts < column.texts[1]:
        parts.append(element("span", f"n = {cell.texts:,}", class_="between"))
    verdict = None if cell.verdict is None else CLASSES[cell.verdict]
    return element("td", " ".join(parts), class_=verdict, title=tip)


# ---------------------------------------------------------------------- what removal does


def _gauges(evaluation: Evaluation) -> Iterator[str]:
    """Said where removals were gauged."""
    if not evaluation.gauges:
        return
    shares = evaluation.gauges[0].shares
    removed = [f"{100 * share:.0f}\N{NO-BREAK SPACE}% removed" for share in shares]
    head = elements("th", ["removal", *removed], scope="col")
    rows = []
    for gauge in evaluation.gauges:
        own = "" if gauge.texts == evaluation.texts else f" (n = {gauge.texts:,})"
        cells = elements("td", [f"{value:.2f}" for value in gauge.like_data])
        rows.append(element("tr", element("th", text(gauge.removal + own), scope="row") + cells))
    yield element("h3", "How far removal leads out of the data")
    yield soft(text(ABOUT_GAUGES))
    yield scrolling("table", table(element("tr", head), rows, class_="grid"))


def _curves(evaluation: Evaluation) -> Iterator[str]:
    """Said where curves were kept."""
    if not evaluation.curves:
        return
    yield element("h3", "Curves")
    yield soft(text(ABOUT_CURVES))
    # of all removals, also where no metric that was asked for removes anything
    removals = tuple(dict.fromkeys(curve.removal for curve in evaluation.curves))
    for removal in removals:
        of_removal = {c.method: c for c in evaluation.curves if c.removal == removal}
        random = of_removal.pop("", None)
        if random is None or not of_removal:
            continue
        drawn = {name: _drawable(curve, random) for name, curve in of_removal.items()}
        between = pictures.limits(list(drawn.values()))
        figures = []
        for method in ranked_methods(evaluation):
            if method in drawn:
                label = f"{method}: curves under {removal}"
                picture = pictures.curves(drawn[method], between, label, end="100 %")
                caption = element("figcaption", text(_caption(of_removal[method], evaluation)))
                figures.append(element("figure", picture + caption))
        summary = element("summary", text(f"words removed by {removal}"))
        is_first = removal == removals[0]
        grid = element("div", "".join(figures), class_="pictures")
        yield element("details", summary + grid, open=is_first)


def _caption(curve: MeanCurves, evaluation: Evaluation) -> str:
    """The method, and its own number of texts where it is not that of the page."""
    if curve.texts in (None, evaluation.texts):
        return curve.method
    return f"{curve.method} (n = {curve.texts:,})"


def _drawable(curve: MeanCurves, random: MeanCurves) -> TrialCurves:
    return TrialCurves(
        steps=tuple(range(len(curve.deletion))),
        deletion=curve.deletion,
        insertion=curve.insertion,
        random_deletion=tuple((value, value, value) for value in random.deletion),
        random_insertion=tuple((value, value, value) for value in random.insertion),
    )


def _skipped(evaluation: Evaluation) -> Iterator[str]:
    """Said where a method gave no scores on some text."""
    if evaluation.skipped:
        yield element("h3", "Methods without scores on some texts")
        yield paragraphs([f"{name} {why}" for name, why in evaluation.skipped.items()])


def _failures(evaluation: Evaluation) -> Iterator[str]:
    """The texts of which nothing came, as many as the table names. Said where some text failed."""
    if not evaluation.failures:
        return
    yield element("h3", "Texts that failed")
    lines = [f"{one.where}: {one.reason}" for one in evaluation.failures]
    more = evaluation.failed - len(lines)
    yield paragraphs([*lines, f"… and {more:,} more"] if more > 0 else lines)
