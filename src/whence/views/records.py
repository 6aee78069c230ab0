"""Records (rows with named columns) as a terminal, a spreadsheet and a paper take them."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Literal

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.core.errors import InputError
from whence.core.many import Many
from whence.core.showing import visible
from whence.views.latex import COLUMNS_OF_MANY, cells_of, method_cells, tabular, unit_cells
from whence.views.many import strongest_first
from whence.views.tables import Result, named_attributions, safe_cell
from whence.views.wording import counted

LONGEST_CELL = 60
LONG, NARROWEST = 20, 12  # cells: a wider column of words gives way to others, down to so many
GAP = 2  # cells between two columns
MARKDOWN = re.compile(r"[\\`*_\[\]|~$]")  # what would be markup inside a cell
DIM, BOLD = Style(dim=True), Style(bold=True)

Record = Mapping[str, Any]


def records_view(
    columns: Sequence[str], records: Sequence[Record], left_out: int, console: Console
) -> RenderableType:
    """A table for the terminal; ``left_out`` records are told and not shown.

    Long texts are cut so that every column is there. Columns that still have no room are named
    below the table.

    Said where there are more rows or columns than are shown.
    """
    if not records:
        return Text("no rows", DIM)
    widths = _widths(columns, records, console.width)
    fitting = _fitting(columns, widths, console.width)
    table = Table(box=None, header_style=BOLD, pad_edge=False, padding=(0, GAP, 0, 0))
    for column in fitting:
        side = "right" if _is_number(column, records) else "left"
        table.add_column(
            visible(column),
            justify=side,
            no_wrap=True,
            overflow="ellipsis",
            max_width=max(widths[column], 1),
        )
    for record in records:
        table.add_row(*(Text(_shortened(shown(record[column]))) for column in fitting))

    notes = []
    if left_out:
        notes.append(counted(left_out, "more row"))
    if len(fitting) < len(columns):
        notes.append(f"no room here for {', '.join(columns[len(fitting) :])}")
    if not notes:
        return table
    return Group(table, Text(f"… {'; '.join(notes)}; --csv and --json print all", DIM))


def _widths(columns: Sequence[str], records: Sequence[Record], room: int) -> dict[str, int]:
    """The cells of each column: those of long texts share what the others leave them."""
    widths = {}
    for column in columns:
        cells = [cell_len(_shortened(shown(record[column]))) for record in records]
        widths[column] = max(cell_len(visible(column)), *cells)
    texts = [c for c in columns if widths[c] > LONG and not _is_number(c, records)]
    left = room - GAP * (len(columns) - 1) - sum(widths[c] for c in columns if c not in texts)
    for place, column in enumerate(sorted(texts, key=lambda c: widths[c])):
        fair = left // (len(texts) - place)
        widths[column] = min(widths[column], max(fair, NARROWEST, cell_len(visible(column))))
        left -= widths[column]
    return widths


def _fitting(columns: Sequence[str], widths: Mapping[str, int], room: int) -> Sequence[str]:
    """The first columns that fit; at least one of them."""
    used = 0
    for count, column in enumerate(columns):
        used += widths[column] + (GAP if count else 0)
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


def records_csv(columns: Sequence[str], records: Iterable[Record], safe: bool = True) -> str:
    """As CSV, in which all numbers keep all their digits.

    >>> records_csv(["word", "score"], [{"word": "=1+1", "score": 0.5}])
    "word,score\\r\\n'=1+1,0.5\\r\\n"
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([safe_cell(column, safe) for column in columns])
    for record in records:
        writer.writerow([safe_cell(record[column], safe) for column in columns])
    return out.getvalue()


def records_markdown(columns: Sequence[str], records: Iterable[Record]) -> str:
    """As a table of Markdown.

    >>> print(records_markdown(["word", "n"], [{"word": "a|b", "n": 2}]))
    | word | n |
    |---|---|
    | a\\|b | 2 |
    """
    rows = [[shown(record[column]) for column in columns] for record in records]
    return markdown_table(columns, rows)


def result_markdown(result: Result | Many, table: Literal["units", "methods"] = "units") -> str:
    """A result as a table of Markdown: as its LaTeX has it. Of many texts: counts by method.

    >>> print(c.to_markdown("methods"))            # doctest: +SKIP
    """
    if isinstance(result, Many):
        tallies = {tally.method: tally for tally in strongest_first(result.tallies())}
        cells = cells_of("method", COLUMNS_OF_MANY, tallies)
    elif table == "methods":
        cells = method_cells(result)
    elif table == "units":
        cells = unit_cells(named_attributions(result))
    else:
        raise InputError(f"a table is one of units, methods, not {table!r}.")
    return markdown_table(cells.heading, cells.rows)


def markdown_table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown, in which every cell is plain text."""
    lines = [_markdown_row(heading), f"|{'---|' * len(heading)}"]
    lines += [_markdown_row(row) for row in rows]
    return "\n".join(lines)


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_markdown_cell(cell) for cell in cells)} |"


def _markdown_cell(cell: str) -> str:
    """Text that Markdown shows as it is: no sign of it is markup, and no tag is one of HTML.

    >>> _markdown_cell("<b>*so*|")
    '&lt;b&gt;\\\\*so\\\\*\\\\|'
    """
    plain = escape(" ".join(visible(cell, keep="\n").split("\n")), quote=False)
    return MARKDOWN.sub(r"\\\g<0>", plain)


def records_latex(columns: Sequence[str], records: Sequence[Record]) -> str:
    """As a LaTeX table, with the rules of booktabs."""
    sides = ["r" if _is_number(column, records) else "l" for column in columns]
    rows = [[shown(record[column]) for column in columns] for record in records]
    return tabular(columns, "".join(sides), rows)
