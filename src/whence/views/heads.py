"""What heads do, in a terminal and in a notebook: sentences, a grid of patterns, and tables."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.core.heads import PATTERNS, HeadTable
from whence.core.maps import AttentionMaps, Opening
from whence.views import wording
from whence.views.habits import Habit, aim, are_heads, does, habits, head_name, links, quoted, why
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
    "repeats": "=",
    "one": "*",
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
MOST_LINKS = 5
ALWAYS_LISTED = ("entropy", "value_change", "output_change")
WORTH_A_COLUMN = 0.4  # a share of the attention: no head looks there that much, no column
# Said below all attention maps.
MISREAD = "Attention says where a head reads, not what matters for the answer."
DIM, BOLD = Style(dim=True), Style(bold=True)


# ---------------------------------------------------------------------- terminal


def maps_view(maps: AttentionMaps) -> RenderableType:
    """What was read and written, what the heads do, and the head that is worth a look."""
    opening = maps.opening()
    parts: list[RenderableType] = _texts(maps)
    kinds = sorted(maps.kinds, key=lambda kind: kind != opening.kind)
    for kind in kinds:
        parts += [Text(), *_summary(maps, kind)]
    parts += [Text(), *_worth_a_look(maps, opening), Text(), Text(MISREAD, DIM)]
    return Group(*parts)


def _texts(maps: AttentionMaps) -> list[RenderableType]:
    """The text; where the model wrote, its prompt and what it wrote."""
    passage = maps.passage
    lines = {"text": passage.text, "pair": passage.pair}
    if passage.reply is not None:
        lines["reply"] = passage.reply.text
    if maps.written:
        lines = {"prompt": maps.prompt, "wrote": maps.written.strip()}

    parts: list[RenderableType] = []
    for name, content in lines.items():
        if content:
            style = BOLD if name == "wrote" else Style()
            parts.append(Text.assemble((f"{name:8}", DIM), (wording.visible(content), style)))
    return parts


def _summary(maps: AttentionMaps, kind: str) -> list[RenderableType]:
    """What the heads of one kind of attention do, in a sentence and a table.

    Said of each kind of attention: ``encoder attention: what its heads do``, and ``“[SEP]” takes 18
    % of all attention.`` where places are set apart.
    """
    table = maps.heads(kind)
    layers, heads = maps.weights[kind].shape[:2]
    shape = f"{wording.counted(layers, 'layer')} × {wording.counted(heads, 'head')}"
    if maps.kept_heads and not all(name.isdigit() for name in maps.kept_heads):
        shape = f"{wording.counted(layers, 'layer')}, {maps.kept_heads[0]} over heads"
    every = habits(table)
    parts: list[RenderableType] = [
        Text.assemble((f"{kind} attention: what its heads do", BOLD), (f"  {shape}", DIM)),
        Text(_counted(table, every)),
    ]
    if maps.set_apart(kind).any():
        share = float(maps.weights[kind][..., maps.set_apart(kind)].sum(-1).mean())
        takes = wording.percent(share)
        parts.append(Text(f"{_apart_names(maps, kind)} {takes} of all attention."))
    return [*parts, Text(), _habit_table(table, every)]


def _counted(table: HeadTable, every: Sequence[Habit]) -> str:
    """How many heads do what, in one sentence.

    Said of all heads of one kind of attention; of layers where each has the mean of its heads.
    """
    total = sum(habit.heads for habit in every)
    parts = []
    for habit in every:
        one = habit.heads == 1
        verb = "looks mostly at" if one else "look mostly at"
        if habit.pattern == "broad":
            verb = "looks at" if one else "look at"
        what = "has no single habit" if one else "have no single habit"
        if habit.pattern == "one":
            what = f"{verb} one {table.units}"
        elif habit.pattern != "mixed":
            what = f"{verb} {aim(table, habit.pattern, habit.layer, habit.head)}"
        parts.append(f"{habit.heads} {what}")
    if not are_heads(table):
        how = f", each by the {table.heads[0]} of its heads" if total > 1 else ""
        return f"Of {wording.counted(total, 'layer')}{how}, {_joined(parts)}."
    return f"Of {wording.counted(total, 'head')}, {_joined(parts)}."


def _joined(parts: Sequence[str]) -> str:
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])}, and {parts[-1]}"


def _apart_names(maps: AttentionMaps, kind: str) -> str:
    """The places that are set apart, with the verb that follows them.

    Said where places are set apart; that it is the first token where it is that alone.
    """
    names = np.array(maps.to_axis[kind].shown)[maps.set_apart(kind)]
    each = list(dict.fromkeys(names.tolist()))
    verb = "takes" if len(names) == 1 else "take"
    first = "The first token " if maps.is_causal(kind) and len(names) == 1 else ""
    listing = " and ".join(map(quoted, each))
    if len(each) > 2:
        listing = wording.few([quoted(name) for name in each])
    return f"{first}{listing} {verb}"


def _habit_table(table: HeadTable, every: Sequence[Habit]) -> Table:
    """A row for each habit: how many heads have it, and the clearest of them.

    Said of heads that look at nothing in particular: ``no single habit``.
    """
    out = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False)
    out.header_style = BOLD
    out.add_column(Text("looks at"))
    out.add_column(Text("heads" if are_heads(table) else "layers"), justify="right")
    out.add_column(Text("clearest"))
    out.add_column(Text("its share"), justify="right")
    for habit in every:
        name = head_name(table, habit.layer, habit.head)
        share = wording.percent(habit.share) if habit.pattern in PATTERNS else ""
        clearest = name if habit.pattern != "mixed" else ""
        looks_at = "no single habit"
        if habit.pattern != "mixed":
            looks_at = aim(table, habit.pattern, habit.layer, habit.head)
        out.add_row(Text(looks_at), str(habit.heads), Text(wording.visible(clearest)), share)
    return out


def _worth_a_look(maps: AttentionMaps, opening: Opening) -> list[RenderableType]:
    """The head that a page would open on, and its strongest links between words.

    Said of the head that a page opens on: ``Worth a look: layer 0, head 1``.
    """
    table = maps.heads(opening.kind)
    name = head_name(table, opening.layer, opening.head)
    if len(maps.kinds) > 1:
        name = f"{opening.kind} attention, {name}"
    parts: list[RenderableType] = [
        Text.assemble(("Worth a look: ", BOLD), wording.visible(name)),
        Text(f"It {does(table, opening.layer, opening.head)}. {why(maps, opening)}".rstrip()),
    ]
    for source, to, weight in links(maps, opening)[:MOST_LINKS]:
        arrow = f"  {wording.visible(source)} → {wording.visible(to)}"
        parts.append(Text.assemble(arrow, (f"  {wording.percent(weight)}", DIM)))
    return parts


def heads_view(table: HeadTable) -> RenderableType:
    """The grid, its legend, and the heads whose loss changes the output most.

    Where that was not measured: the most focused heads.

    Said above the numbers of heads: ``the 12 of 48 heads that are most focused``, or ``all 6 heads,
    those first whose loss changes the output most`` where that was measured.
    """
    which = "that are most focused"
    order = np.argsort(table["entropy"].ravel(), kind="stable")
    if "output_change" in table.columns:
        which = "whose loss changes the output most"
        order = np.argsort(-table["output_change"].ravel(), kind="stable")

    title = Text.assemble(
        (f"{table.kind}: what each head does", BOLD), ("  darker: more focused", DIM)
    )
    total = table.weights.shape[0] * table.weights.shape[1]
    what = "head" if are_heads(table) else "layer"
    listed = f"the {MOST} of {total} {what}s {which}"
    if total <= MOST:
        listed = f"the {what}" if total == 1 else f"all {total} {what}s, those first {which}"
    return Group(
        title,
        _grid(table),
        Text("  ".join(_legend(table)), DIM),
        Text(),
        Text(listed, BOLD),
        _listed(table, order[:MOST]),
    )


def _listed(table: HeadTable, order: np.ndarray) -> Table:
    """The numbers of some heads, given by their places in reading order."""
    names = [name for name in table.columns if _is_telling(table, name, order)]
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


def _is_telling(table: HeadTable, name: str, order: np.ndarray) -> bool:
    """Whether a column has something to say of these heads; the others are in --json."""
    if name in ALWAYS_LISTED:
        return True
    return name != "breadth" and bool((table[name].ravel()[order] >= WORTH_A_COLUMN).any())


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

    Said as the title of the grid.
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
