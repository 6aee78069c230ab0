"""Records (rows with named columns) as a terminal, a spreadsheet and a paper take them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.core.showing import visible
from whence.views.latex import escaped
from whence.views.tables import safe_cell

LONGEST_CELL = 60
GAP = 2  # cells between two columns
DIM, BOLD = Style(dim=True), Style(bold=True)

Record = Mapping[str, Any]


def records_view(
    columns: Sequence[str], records: Sequence[Record], left_out: int, console: Console
) -> RenderableType:
    """A table for the terminal; ``left_out`` records are told and not shown.

    Columns that have no room are named below the table.
    """
    if not records:
        return Text("no rows", DIM)
    fitting = _fitting(columns, records, console.width)
    table = Table(box=None, header_style=BOLD, pad_edge=False, padding=(0, GAP, 0, 0))
    for column in fitting:
        side = "right" if _is_number(column, records) else "left"
        table.add_column(visible(column), justify=side, no_wrap=True, overflow="ellipsis")
    for record in records:
        table.add_row(*(Text(_shortened(shown(record[column]))) for column in fitting))

    notes = []
    if left_out:
        notes.append(f"{left_out:,} more rows")
    if len(fitting) < len(columns):
        notes.append(f"no room here for {', '.join(columns[len(fitting) :])}")
    if not notes:
        return table
    return Group(table, Text(f"… {'; '.join(notes)}; --csv and --json print all", DIM))


def _fitting(columns: Sequence[str], records: Sequence[Record], room: int) -> Sequence[str]:
    """The first columns that fit; at least one of them."""
    used = 0
    for count, column in enumerate(columns):
        cells = [cell_len(_shortened(shown(record[column]))) for record in records]
        used += max(cell_len(column), *cells) + (GAP if count else 0)
        if used > room:
            return columns[: max(1, count)]
    return columns


def _is_number(column: str, records: Sequence[Record]) -> bool:
    return any(isinstance(record[column], (int, float)) for record in records)


def shown(value: Any) -> str:
    """A value in a few characters.

    >>> shown(0.123456), shown(None), shown(1200)
    ('0.1235', '–', '1,200')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.4g}"
    return visible(str(value))


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"


def records_csv(columns: Sequence[str], records: Sequence[Record], safe: bool = True) -> str:
    """As CSV, in which all numbers keep all their digits.

    >>> records_csv(["word", "score"], [{"word": "=1+1", "score": 0.5}])
    "word,score\\r\\n'=1+1,0.5\\r\\n"
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    for record in records:
        writer.writerow([safe_cell(record[column], safe) for column in columns])
    return out.getvalue()


def records_markdown(columns: Sequence[str], records: Sequence[Record]) -> str:
    """As a table of Markdown.

    >>> print(records_markdown(["word", "n"], [{"word": "a|b", "n": 2}]))
    | word | n |
    |---|---|
    | a\\|b | 2 |
    """
    lines = [_markdown_row(columns), f"|{'---|' * len(columns)}"]
    for record in records:
        lines.append(_markdown_row([shown(record[column]) for column in columns]))
    return "\n".join(lines)


def _markdown_row(cells: Sequence[str]) -> str:
    safe = [cell.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ") for cell in cells]
    return f"| {' | '.join(safe)} |"


def records_latex(columns: Sequence[str], records: Sequence[Record]) -> str:
    """As a LaTeX table, with the rules of booktabs."""
    sides = []
    for column in columns:
        sides.append("r" if _is_number(column, records) else "l")
    lines = [rf"\begin{{tabular}}{{{''.join(sides)}}}", r"\toprule"]
    lines.append(" & ".join(escaped(column) for column in columns) + r" \\")
    lines.append(r"\midrule")
    for record in records:
        lines.append(" & ".join(escaped(shown(record[column])) for column in columns) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines)
