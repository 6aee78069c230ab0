"""What each head does, in a terminal: a grid of patterns, and the heads that matter most."""

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
from whence.views.palette import colour, ink, terminal_theme

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
    "entropy": "entr", "previous": "prev", "separators": "sep", "punctuation": "punct", "value_change": "Δvalue", "output_change": "Δout",
}  # fmt: skip
FORMAT = {"value_change": "+.2f", "output_change": ".3f"}
MOST = 12
DIM, BOLD = Style(dim=True), Style(bold=True)


def heads_view(table: HeadTable) -> RenderableType:
    """The grid, its legend, and the heads whose loss changes the output most (else the most focused)."""
    by = "output_change" if "output_change" in table.columns else "entropy"
    order = np.argsort(table[by].ravel() if by == "entropy" else -table[by].ravel(), kind="stable")[
        :MOST
    ]
    listed = Table(
        box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False, header_style=BOLD
    )
    names = [n for n in table.columns if n != "breadth"]
    for i, name in enumerate(("head", "pattern", *(SHORT.get(n, n) for n in names))):
        listed.add_column(Text(name), justify="left" if i < 2 else "right", no_wrap=True)
    for at in order:
        i, j = divmod(int(at), len(table.heads))
        numbers = (f"{table[n][i, j]:{FORMAT.get(n, '.2f')}}" for n in names)
        listed.add_row(f"{table.layers[i]}-{table.heads[j]}", str(table.pattern[i, j]), *numbers)
    legend = "  ".join(f"{sign} {name}" for name, sign in SIGNS.items() if name in table.pattern)
    why = "whose loss changes the output most" if by == "output_change" else "that are most focused"
    total = table.weights.shape[0] * table.weights.shape[1]
    title = Text.assemble(
        (f"{table.kind}: what each head does", BOLD), ("  darker: more focused", DIM)
    )
    return Group(
        title,
        _grid(table),
        Text(legend, DIM),
        Text(),
        Text(f"the {min(MOST, total)} of {total} heads {why}", BOLD),
        listed,
    )


def heads_fragment(table: HeadTable) -> str:
    """What a notebook shows: the grid, darker where a head is more focused; pointing at a head gives its numbers."""
    rows = []
    for i, layer in enumerate(table.layers):
        cells = []
        for j, head in enumerate(table.heads):
            numbers = ", ".join(
                f"{n.replace('_', ' ')} {c[i, j]:.3f}" for n, c in table.columns.items()
            )
            tip = escape(f"layer {layer}, head {head}: {table.pattern[i, j]}; {numbers}")
            focus = 100 * (1 - float(min(table["breadth"][i, j], 1.0)))
            ground = f"background:color-mix(in srgb,#8e6ac8 {focus:.0f}%,transparent)"
            cells.append(
                f'<td style="{ground};text-align:center;width:2.2em" title="{tip}">{SIGNS[str(table.pattern[i, j])]}</td>'
            )
        rows.append(f'<tr><th scope="row">{escape(layer)}</th>{"".join(cells)}</tr>')
    heads = "".join(f'<th scope="col">{escape(h)}</th>' for h in table.heads)
    legend = " &nbsp; ".join(
        f"{sign} {name}" for name, sign in SIGNS.items() if name in table.pattern
    )
    caption = f"<caption>{escape(table.kind)}: what each head does (layers by heads; darker: more focused)</caption>"
    grid = f"<table>{caption}<thead><tr><td></td>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f'<div class="whence-heads">{grid}<p>{legend}</p></div>'


def _grid(table: HeadTable) -> Table:
    grid = Table.grid(padding=(0, 0))
    theme = terminal_theme()
    grid.add_column(style=DIM)
    for name in table.heads:
        grid.add_column(justify="center", min_width=max(3, len(name) + 1))
    grid.add_row("layer ", *(Text(h, DIM) for h in table.heads))
    for i, layer in enumerate(table.layers):
        cells = []
        for j in range(len(table.heads)):
            ground = colour(1 - float(min(table["breadth"][i, j], 1.0)), False, theme)
            style = (
                Style()
                if ground is None
                else Style(
                    bgcolor=f"rgb{ground}".replace(" ", ""),
                    color=f"rgb{ink(ground)}".replace(" ", ""),
                )
            )
            cells.append(Text(f" {SIGNS[str(table.pattern[i, j])]} ", style))
        grid.add_row(Text(f"{wording.visible(layer)} ", DIM, justify="right"), *cells)
    return grid
