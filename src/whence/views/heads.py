"""What each head does, in a terminal and in a notebook: a grid of patterns, and a table.

The table has the heads that matter most.
"""

from __future__ import annotations

from html import escape

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.core.heads import HeadTable
from whence.views import wording
from whence.views.markup import element, elements
from whence.views.markup import table as html_table
from whence.views.palette import Theme, colour, ink, terminal_theme

SIGNS = {
    "previous": "‹",
    "next": "›",
    "self": "o",
    "first": "^",
    "separators": "|",
    "punctuation": ".",
    "broad": "~",
    "mixed": "·",
}
SHORT = {
    "entropy": "entr",
    "previous": "prev",
    "separators": "sep",
    "punctuation": "punct",
    "value_change": "Δvalue",
    "output_change": "Δout",
}
FORMAT = {"value_change": "+.2f", "output_change": ".3f"}
MOST = 12
DIM, BOLD = Style(dim=True), Style(bold=True)


# ---------------------------------------------------------------------- terminal


def heads_view(table: HeadTable) -> RenderableType:
    """The grid, its legend, and the heads whose loss changes the output most.

    Where that was not measured: the most focused heads.
    """
    why = "that are most focused"
    order = np.argsort(table["entropy"].ravel(), kind="stable")
    if "output_change" in table.columns:
        why = "whose loss changes the output most"
        order = np.argsort(-table["output_change"].ravel(), kind="stable")

    title = Text.assemble(
        (f"{table.kind}: what each head does", BOLD), ("  darker: more focused", DIM)
    )
    total = table.weights.shape[0] * table.weights.shape[1]
    return Group(
        title,
        _grid(table),
        Text("  ".join(_legend(table)), DIM),
        Text(),
        Text(f"the {min(MOST, total)} of {total} heads {why}", BOLD),
        _listed(table, order[:MOST]),
    )


def _listed(table: HeadTable, order: np.ndarray) -> Table:
    """The numbers of some heads, given by their places in reading order."""
    names = [name for name in table.columns if name != "breadth"]
    out = Table(
        box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False, header_style=BOLD
    )
    for name in ("head", "pattern"):
        out.add_column(Text(name), justify="left", no_wrap=True)
    for name in names:
        out.add_column(Text(SHORT.get(name, name)), justify="right", no_wrap=True)
    for at in order:
        i, j = divmod(int(at), len(table.heads))
        numbers = [f"{table[name][i, j]:{FORMAT.get(name, '.2f')}}" for name in names]
        out.add_row(f"{table.layers[i]}-{table.heads[j]}", str(table.pattern[i, j]), *numbers)
    return out


def _grid(table: HeadTable) -> Table:
    grid = Table.grid(padding=(0, 0))
    theme = terminal_theme()
    grid.add_column(style=DIM)
    for name in table.heads:
        grid.add_column(justify="center", min_width=max(3, len(name) + 1))
    grid.add_row("layer ", *(Text(h, DIM) for h in table.heads))
    for i, layer in enumerate(table.layers):
        cells = [_sign(table, i, j, theme) for j in range(len(table.heads))]
        grid.add_row(Text(f"{wording.visible(layer)} ", DIM, justify="right"), *cells)
    return grid


def _sign(table: HeadTable, i: int, j: int, theme: Theme) -> Text:
    """The sign of a head's pattern, darker where the head is more focused."""
    sign = f" {SIGNS[str(table.pattern[i, j])]} "
    ground = colour(_focus(table, i, j), False, theme)
    if ground is None:
        return Text(sign)
    front = ink(ground)
    return Text(sign, Style(bgcolor=_rgb(ground), color=_rgb(front)))


def _rgb(parts: tuple[int, int, int]) -> str:
    red, green, blue = parts
    return f"rgb({red},{green},{blue})"


def _focus(table: HeadTable, i: int, j: int) -> float:
    """1 for a head that looks at one place, 0 for one that looks everywhere alike."""
    return 1 - float(min(table["breadth"][i, j], 1.0))


def _legend(table: HeadTable) -> list[str]:
    """The signs of those patterns that some head has."""
    return [f"{sign} {name}" for name, sign in SIGNS.items() if name in table.pattern]


# ---------------------------------------------------------------------- notebook


def heads_fragment(table: HeadTable) -> str:
    """What a notebook shows: the grid, darker where a head is more focused.

    Pointing at a head gives its numbers.
    """
    rows = []
    for i, layer in enumerate(table.layers):
        cells = [_cell(table, i, j) for j in range(len(table.heads))]
        name = element("th", escape(layer), scope="row")
        rows.append(element("tr", name + "".join(cells)))
    heads = elements("th", [escape(head) for head in table.heads], scope="col")
    about = f"{escape(table.kind)}: what each head does (layers by heads; darker: more focused)"
    grid = html_table(element("tr", f"<td></td>{heads}"), rows, caption=about)
    legend = element("p", " &nbsp; ".join(_legend(table)))
    return element("div", grid + legend, class_="whence-heads")


def _cell(table: HeadTable, i: int, j: int) -> str:
    numbers = []
    for name, column in table.columns.items():
        numbers.append(f"{name.replace('_', ' ')} {column[i, j]:.3f}")
    pattern = str(table.pattern[i, j])
    tip = f"layer {table.layers[i]}, head {table.heads[j]}: {pattern}; {', '.join(numbers)}"
    focus = 100 * _focus(table, i, j)
    ground = f"background:color-mix(in srgb,#8e6ac8 {focus:.0f}%,transparent)"
    look = f"{ground};text-align:center;width:2.2em"
    return element("td", SIGNS[pattern], style=look, title=tip)
