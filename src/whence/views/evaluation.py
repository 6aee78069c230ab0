"""A table of methods × metrics in words, in a terminal and in a paper."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from io import BytesIO, StringIO
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.core.errors import InputError
from whence.core.evaluation import RANDOM, Cell, Column, Disagreement, Evaluation
from whence.core.evidence import Verdict
from whence.core.question import Question
from whence.core.registry import METRIC_GROUPS
from whence.core.writing import write_bytes
from whence.views import wording
from whence.views.latex import escaped, ruled
from whence.views.planted import planted_sentences, planted_view

DIM, BOLD = Style(dim=True), Style(bold=True)
TINTS = {Verdict.BETTER: Style(color="green"), Verdict.WORSE: Style(color="red")}
MARKS = {Verdict.BETTER: "+", Verdict.WORSE: "−", Verdict.SAME: " "}
BUILT_IN = "°"
BUILT_IN_LATEX = r"$^{\circ}$"
WORSE_LATEX = "$^{-}$"
CONTROL = "random rankings"
GOLD = "gold"
MOST_NAMED = 6
MOST_FAILURES = 5  # that print shows
WIDTH = 100
HEAD = 18  # letters of a metric's name in a line, where it can be broken
NOTHING = "–"
IN_A_TABLE = 6  # columns of a page
GAP = 2
# Said within the notes on how to read a table.
BESIDE_MARKS = (
    "all methods of a column judged together. Methods that share a letter cannot be told apart; a "
    "is the best group. ° is judged by the very removal that it was made by: half of that is built "
    "in. ↑ higher is better, ↓ lower."
)
# Said within the same.
OWN_CONTROL = "better than its own control (the same scores on other words)"
# Said within the same, where marks are signs.
MARKS_MEAN = f"+ is {OWN_CONTROL}, − is worse, {BESIDE_MARKS}"
# Said below the table in a terminal.
HOW_TO_READ = (
    "Each cell: the mean over texts ± half its 95 % bootstrap interval, or [from, to] where one "
    f"side of it is much longer. {MARKS_MEAN}"
)
# Said above the table in a paper, as a comment.
IN_A_PAPER = (
    "Each cell: the mean over texts [its 95 % bootstrap interval]. "
    f"Bold is {OWN_CONTROL}, a raised − is worse, {BESIDE_MARKS}"
)
LOPSIDED = 1.5  # times the shorter side of an interval, from which both ends are said


# ---------------------------------------------------------------------- words


def evaluation_sentences(table: Evaluation) -> list[str]:
    """What the table says, in a few sentences; nothing beyond its verdicts."""
    said = [_what_was_done(table), *_planted(table), *_holding(table)]
    said += [_attention(table)] if _attention(table) else []
    said += _disagreements(table)
    return said


def _what_was_done(table: Evaluation) -> str:
    """Said first, of every table."""
    if not table.texts:
        failed = f", and {wording.counted(table.failed, 'text')} failed" if table.failed else ""
        return f"Nothing is measured of {wording.model_name(table.model)} yet{failed}."
    failed = f" ({table.failed:,} more failed)" if table.failed else ""
    methods, metrics = len(table.methods), len({c.metric for c in table.columns})
    removals = wording_list(table.removals)
    by = f"; words are removed by {removals}" if removals else ""
    return (
        f"{wording.counted(methods, 'method')} by {wording.counted(metrics, 'metric')} on "
        f"{wording.counted(table.texts, 'text')}{failed}, with the model "
        f"{wording.model_name(table.model)}{by}."
    )


def _planted(table: Evaluation) -> list[str]:
    """Said where methods were tried on planted truth."""
    if table.planted is None:
        return []
    return [f"Where the truth is known: {planted_sentences(table.planted)[0]}"]


def _holding(table: Evaluation) -> list[str]:
    """Said where a metric of faithfulness tells methods from each other."""
    columns = [c for c in table.columns if c.kind == "faithfulness" and not c.is_idle]
    if not columns:
        return []
    counted = {m: _counts(m, columns) for m in table.methods if m != RANDOM}
    if not counted:
        return ["Only the random control was tried."]
    judged = {m: (won, lost, of) for m, (won, lost, of) in counted.items() if of}
    if not judged:
        return ["Too few texts were measured for a verdict on any method."]
    order = sorted(judged, key=lambda m: (-judged[m][0] / judged[m][2], judged[m][1], m))
    winning = [m for m in order if judged[m][0]]
    none = [m for m in order if not judged[m][0]]
    unjudged = [m for m in counted if m not in judged]
    said = _which_win(columns, winning, judged, bool(unjudged))
    if none and winning:
        said.append(f"None says so of {wording_list(none)}.")
    if unjudged:
        said.append(f"Too few texts were measured for a verdict on {wording_list(unjudged)}.")
    return [wording.visible(line) for line in said]


def _which_win(
    columns: Sequence[Column],
    winning: Sequence[str],
    judged: dict[str, tuple[int, int, int]],
    are_others_unjudged: bool,
) -> list[str]:
    """Said where a method could be judged: which are better than their control, by how many."""
    count = wording.counted(len(columns), "measure")
    only = f"{columns[0].name}, the only measure of faithfulness"
    if not winning:
        which = " that could be judged" if are_others_unjudged else ""
        who = f"No method{which} is" if len(judged) > 1 else f"{next(iter(judged))} is not"
        by = "any measure of faithfulness" if len(columns) > 1 else only
        return [f"{who} better than its control by {by}."]
    if len(columns) == 1:
        than = "its control" if len(winning) == 1 else "their controls"
        names = wording_list(_first(winning))
        return [f"Better than {than} by {only}: {names}."]
    under = " (each metric under each removal)" if any(c.removal for c in columns) else ""
    best = [f"{m} {_times(*judged[m], len(columns))}" for m in winning[:MOST_NAMED]]
    rest = [judged[m][0] for m in winning[MOST_NAMED:]]
    if rest:
        each = f"{rest[0]}" if min(rest) == max(rest) else f"{min(rest)} to {max(rest)}"
        best.append(f"{wording.counted(len(rest), 'more method')} {each}")
    return [
        f"Of {count} of faithfulness{under}, so many say that a method "
        f"is better than its control: {wording_list(best)}."
    ]


def _first(names: Sequence[str]) -> list[str]:
    """The first names, and how many more there are; one more is named as shortly."""
    if len(names) <= MOST_NAMED + 1:
        return list(names)
    return [*names[:MOST_NAMED], f"{len(names) - MOST_NAMED} more"]


def _times(won: int, _lost: int, judged: int, every: int) -> str:
    return f"{won}" if judged == every else f"{won} of {judged}"


def _counts(method: str, columns: Sequence[Column]) -> tuple[int, int, int]:
    """By how many columns a method is better than its control, worse, and judged at all."""
    cells = [column.cell(method) for column in columns]
    verdicts = [cell.verdict for cell in cells if cell is not None and cell.verdict is not None]
    return verdicts.count(Verdict.BETTER), verdicts.count(Verdict.WORSE), len(verdicts)


def _attention(table: Evaluation) -> str:
    """What attention alone gets, as that is what people ask.

    Said where attention-mean has a verdict by some measure.
    """
    name = "attention-mean"
    columns = [c for c in table.columns if c.kind == "faithfulness" and not c.is_idle]
    won, lost, judged = _counts(name, columns)
    if not judged:
        return ""
    worse = f", worse by {lost}" if lost else ""
    return f"Attention alone ({name}) is better than its control by {won} of {judged}{worse}."


def _disagreements(table: Evaluation) -> list[str]:
    """Each that the texts show clearly; of the others, that they may be chance.

    Said where no method is best under all removals.
    """
    said = [_disagreement(one) for one in table.disagreements if one.is_clear]
    unclear = [one.metric for one in table.disagreements if not one.is_clear]
    if unclear:
        said.append(
            f"Which method comes first depends on the removal by {wording_list(unclear)}, "
            "but these texts do not tell the winners apart."
        )
    return said


def _disagreement(one: Disagreement) -> str:
    """Said where the texts show it clearly."""
    by_removal: dict[str, list[str]] = {}
    for removal, method in one.winners:
        by_removal.setdefault(removal, []).append(method)
    winners = "; ".join(f"{wording_list(each)} under {by}" for by, each in by_removal.items())
    return wording.visible(f"The removals disagree on the winner by {one.metric}: {winners}.")


def wording_list(parts: Sequence[str]) -> str:
    """Names in a sentence.

    >>> wording_list(["a", "b", "c"])
    'a, b and c'
    """
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


# ---------------------------------------------------------------------- how many texts


def counts_of(column: Column, table: Evaluation) -> str:
    """A column's own number of texts, where it is not that of the table.

    >>> few = Column("auprc", 1, {}, "higher", "gold", "", Cell("", 0.5, None, 39),
    ...     (Cell("lime", 0.6, None, 39), Cell("random", 0.5, None, 31)))
    >>> counts_of(few, Evaluation("m", "d", 50, 0, 0, ("lime", "random"), (few,)))
    'n = 31 to 39'
    """
    fewest, most = column.texts
    if fewest == most == table.texts or not most:
        return ""
    return f"n = {_from_to(fewest, most)}"


def _from_to(fewest: int, most: int) -> str:
    return f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"


def count_sentences(table: Evaluation) -> list[str]:
    """Said where some column rests on fewer texts than the table, or some cell than its column."""
    return [*_of_marks(table), *_of_fewer(table)]


def _of_marks(table: Evaluation) -> list[str]:
    """Said where people marked words of some texts only: a metric of gold needs both kinds."""
    counts = [column.texts[1] for column in table.columns if column.kind == GOLD]
    most = max(counts, default=0)
    if not most or most == table.texts:
        return []
    have = "has" if most == 1 else "have"
    return [
        f"{most:,} of {table.texts:,} texts {have} some words marked and others not: what is "
        f"compared with people's marks (gold) rests on {'it' if most == 1 else 'these'} alone."
    ]


def _of_fewer(table: Evaluation) -> list[str]:
    """Said of methods that were measured on fewer texts than others of the same column."""
    fewer: dict[str, list[int]] = {}
    columns = [column for column in table.columns if not column.is_idle]
    for column in columns:
        for cell in column.cells:
            if 0 < cell.texts < column.texts[1]:
                fewer.setdefault(cell.method, []).append(cell.texts)
    of_methods = []
    for method, texts in fewer.items():
        by = "" if len(texts) == len(columns) else f" by {wording.counted(len(texts), 'measure')}"
        of_methods.append(f"{method} on {_from_to(min(texts), max(texts))}{by}")
    if not of_methods:
        return []
    return [wording.visible(f"Measured on fewer texts than others: {wording_list(of_methods)}.")]


# ---------------------------------------------------------------------- terminal


def asked(table: Evaluation) -> list[str]:
    """Which question the verdicts answer; nothing where a planted truth alone was asked for."""
    return [wording.answers(Question.MEASURE)] if table.columns else []


def evaluation_text(table: Evaluation, width: int = WIDTH, full: bool = True) -> str:
    """What ``print`` shows."""
    console = Console(file=StringIO(), width=width, force_terminal=False)
    console.print(evaluation_view(table, console, full))
    for line in failure_lines(table):
        console.print(Text(line))
    file = console.file
    assert isinstance(file, StringIO)
    return file.getvalue().rstrip("\n")


def evaluation_view(table: Evaluation, console: Console, full: bool = False) -> RenderableType:
    """The answer, then the table in blocks as wide as the terminal.

    Without ``full`` each metric is shown under the first removal only.
    """
    parts: list[RenderableType] = [Text(line) for line in evaluation_sentences(table)]
    parts += [Text(line, DIM) for line in asked(table)]
    if table.planted is not None:
        parts += [Text(), planted_view(table.planted, console, answered=True)]
    of_removals = [c for c in table.columns if full or c.removal in ("", *table.removals[:1])]
    shown = [column for column in of_removals if not column.is_idle]
    methods = ranked_methods(table)
    for kind, about in METRIC_GROUPS.items():
        of_kind = [column for column in shown if column.kind == kind]
        if not of_kind:
            continue
        parts.append(Text())
        parts.append(Text.assemble((kind.capitalize(), BOLD), (f"  {about}", DIM)))
        for block in _blocks(of_kind, methods, console.width, table):
            parts.append(_block(block, methods, table))
    if table.columns:
        parts += [Text(), Text(HOW_TO_READ, DIM)]
    parts += [Text(line, DIM) for line in count_sentences(table)]
    parts += [Text(line, DIM) for line in idle_sentences(of_removals)]
    for method, why in table.skipped.items():
        parts.append(Text(wording.visible(f"{method}: no scores {why}"), DIM))
    parts += [Text(wording.visible(line), DIM) for line in table.notes]
    hidden = len(table.columns) - len(of_removals)
    if hidden:
        others = wording_list(table.removals[1:])
        more = wording.counted(hidden, "more column")
        parts.append(Text(f"{more}, under {others}: --full, --html, --out", DIM))
    return Group(*parts)


def failure_lines(table: Evaluation) -> list[str]:
    """The texts of which nothing came, the first of them by their rows."""
    if not table.failures:
        return []
    shown = [f"  {one.where}: {one.reason}" for one in table.failures[:MOST_FAILURES]]
    more = table.failed - len(shown)
    named = len(table.failures) - len(shown)
    where = f"; table.failures names {named:,} of them" if 0 < named < more else ""
    where = ": table.failures" if named == more else where
    rest = [f"  … and {more:,} more{where}"] if more > 0 else []
    every = wording.counted(table.texts + table.failed, "text")
    heading = f"{table.failed:,} of {every} failed:"
    return [wording.visible(line) for line in [heading, *shown, *rest]]


def idle_sentences(columns: Sequence[Column]) -> list[str]:
    """The columns that are left out, as they tell nothing.

    Said where a metric has one value for everything.
    """
    same = [f"{column.name} {number(column.random.mean)}" for column in columns if column.is_idle]
    if not same:
        return []
    return [f"The same for every method and for random rankings: {wording_list(same)}."]


def ranked_methods(table: Evaluation) -> list[str]:
    """The methods, best first: by the mean share of random rankings that they beat."""

    def standing(method: str) -> float:
        shares = []
        for column in table.columns:
            cell = column.cell(method)
            if column.kind == "faithfulness" and cell is not None and cell.beaten is not None:
                shares.append(cell.beaten)
        return -sum(shares) / len(shares) if shares else 0.0

    return sorted(table.methods, key=lambda method: (standing(method), method))


def _blocks(
    columns: Sequence[Column], methods: Sequence[str], room: int, table: Evaluation
) -> Iterator[list[Column]]:
    """Columns that fit side by side."""
    left = room - max(len(wording.visible(name)) for name in (*methods, CONTROL)) - GAP
    block: list[Column] = []
    used = 0
    for column in columns:
        wide = max(len(line) for line in (*_head(column, table), *_shown_in(column, methods))) + GAP
        if block and used + wide > left:
            yield block
            block, used = [], 0
        block.append(column)
        used += wide
    if block:
        yield block


def _head(column: Column, table: Evaluation) -> list[str]:
    """The name of a metric in lines about as wide as its cells; its texts, and the removal."""
    lines = [""]
    for piece in re.findall(r"[^-\[]+-?|\[.+", column.label):
        if lines[-1] and len(lines[-1] + piece) > HEAD:
            lines.append("")
        lines[-1] += piece
    lines[-1] += f" {column.arrow}"
    if counts_of(column, table):
        lines.append(counts_of(column, table))
    return [*lines, column.removal] if column.removal else lines


def _shown_in(column: Column, methods: Sequence[str]) -> list[str]:
    """The cells from top to bottom, the control last; marks and letters stand in line."""
    cells = [*(column.cell(method) for method in methods), column.random]
    values = max(len(_value(cell)) for cell in cells if cell)
    marks = max(len(_mark(cell)) for cell in cells if cell)
    letters = max(len(cell.group) for cell in cells if cell)
    lines = []
    for cell in cells:
        value = _value(cell) if cell else NOTHING
        mark, group = (_mark(cell), cell.group) if cell else ("", "")
        line = f"{value:>{values}} {mark:{marks}} {group:{letters}}"
        lines.append(line if marks or letters else line.rstrip())
    return lines


def _block(columns: Sequence[Column], methods: Sequence[str], table: Evaluation) -> Table:
    grid = Table(box=None, header_style=BOLD, pad_edge=False, padding=(0, GAP, 0, 0))
    grid.add_column("method", no_wrap=True, vertical="bottom")
    lines_of = []
    for column in columns:
        head, lines = _head(column, table), _shown_in(column, methods)
        wide = max(map(len, (*head, *lines)))
        # aligned here, as rich would cut the spaces that keep marks and letters in line
        lines_of.append([line.rjust(wide) for line in lines])
        title = Text("\n".join(line.rjust(wide) for line in head), BOLD)
        if column.removal:
            title.stylize(Style(bold=False, dim=True), len(title) - wide)
        grid.add_column(title, no_wrap=True)
    for place, method in enumerate(methods):
        cells = [column.cell(method) for column in columns]
        if any(cells):
            pairs = zip(lines_of, cells, strict=True)
            shown = [Text(lines[place], _tint(cell)) for lines, cell in pairs]
            grid.add_row(Text(wording.visible(method)), *shown)
    grid.add_row(Text(CONTROL, DIM), *(Text(lines[-1], DIM) for lines in lines_of))
    return grid


def _tint(cell: Cell | None) -> Style:
    if cell is None:
        return DIM
    return TINTS.get(cell.verdict, Style()) if cell.verdict else Style()


def _value(cell: Cell) -> str:
    """A cell in a few characters.

    >>> _value(Cell("lime", 0.4213, (0.39, 0.45), 80))
    '0.421 ±.030'
    >>> _value(Cell("lime", 0.0621, (-0.0052, 1.0), 6))
    '0.062 [-0.005, 1.00]'
    """
    if not cell.texts:
        return NOTHING
    if cell.interval is None:
        return number(cell.mean)
    low, high = cell.interval
    shorter, longer = sorted((cell.mean - low, high - cell.mean))
    if longer > LOPSIDED * shorter:
        return f"{number(cell.mean)} {_between(low, high)}"
    return f"{number(cell.mean)} ±{number((high - low) / 2).removeprefix('0')}"


def _between(low: float, high: float) -> str:
    return f"[{number(low)}, {number(high)}]"


def _mark(cell: Cell) -> str:
    """Whether it is better than its control, and whether half of that is built in."""
    mark = "" if cell.verdict is None else MARKS[cell.verdict]
    return mark + (BUILT_IN if cell.built_in else "")


def number(value: float) -> str:
    """Three digits, as a table has them.

    >>> number(0.42134), number(23.46), number(-0.0004), number(0.9999), number(12345.0)
    ('0.421', '23.5', '0.000', '1.00', '12,345')
    """
    if not math.isfinite(value):
        return NOTHING
    value = round(value, 3) + 0.0  # no minus before a zero
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{3 if abs(value) < 1 else 2 if abs(value) < 10 else 1}f}"


# ---------------------------------------------------------------------- paper


def evaluation_latex(table: Evaluation) -> str:
    """One table for each kind of metric and removal, for a paper with booktabs.

    Said above each table of a paper, as a comment.
    """
    lines = [f"% {line}" for line in _comments(table)]
    methods = ranked_methods(table)
    for kind in METRIC_GROUPS:
        for removal in ("", *table.removals):
            columns = [c for c in table.columns if (c.kind, c.removal) == (kind, removal)]
            if columns:
                removed = f", words removed by {removal}" if removal else ""
                lines += [f"% {kind}{removed}, {_texts_of(columns)}"]
                for first in range(0, len(columns), IN_A_TABLE):
                    lines += [_tabular(columns[first : first + IN_A_TABLE], methods, table), ""]
    return "\n".join(lines)


def _comments(table: Evaluation) -> Iterator[str]:
    for line in (*evaluation_sentences(table), IN_A_PAPER, *count_sentences(table)):
        yield " ".join(wording.visible(line).split())
    yield f"seed {table.seed}, {table.forwards:,} passes; needs \\usepackage{{booktabs}}"


def _texts_of(columns: Sequence[Column]) -> str:
    """On how many texts these columns rest, all together."""
    counts = [count for column in columns for count in column.texts if count]
    if not counts:
        return "no text"
    return f"{_from_to(min(counts), max(counts))} {'text' if max(counts) == 1 else 'texts'}"


def _tabular(columns: Sequence[Column], methods: Sequence[str], table: Evaluation) -> str:
    arrows = {"↑": r"$\uparrow$", "↓": r"$\downarrow$"}
    head = ["method"]
    for column in columns:
        counts = counts_of(column, table).replace("n", "$n$", 1)
        own = f" ({counts})" if counts else ""
        head.append(f"{escaped(column.label)} {arrows[column.arrow]}{own}")
    rows = []
    for method in methods:
        cells = [column.cell(method) for column in columns]
        if any(cells):
            rows.append([escaped(method), *(_in_latex(cell) for cell in cells)])
    rows.append([r"\textit{random rankings}", *(_in_latex(c.random) for c in columns)])
    return ruled(head, "l" + "r" * len(columns), rows)


def _in_latex(cell: Cell | None) -> str:
    if cell is None or not cell.texts:
        return "--"
    mean = number(cell.mean).replace("-", "$-$")
    spread = ""
    if cell.interval is not None:
        between = _between(*cell.interval).replace("-", "$-$")
        spread = rf" {{\footnotesize {between}}}"
    letters = rf"$^{{\mathrm{{{cell.group}}}}}$" if cell.group else ""
    marked = WORSE_LATEX if cell.verdict is Verdict.WORSE else ""
    marked += BUILT_IN_LATEX if cell.built_in else ""
    bold = cell.verdict is Verdict.BETTER
    return (rf"\textbf{{{mean}}}" if bold else mean) + spread + letters + marked


def evaluation_parquet(table: Evaluation, path: str | Path) -> Path:
    """All cells as a Parquet file, whole or not at all."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InputError(
            "to_parquet() needs pyarrow: pip install 'whence[runs]'. to_csv() works without it."
        ) from None
    buffer = BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(table.records()), buffer)
    return write_bytes(path, buffer.getvalue())
