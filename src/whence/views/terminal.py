"""Results in a terminal: coloured where there is colour, and with the same numbers where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.core.attribution import Attribution
from whence.core.comparison import Comparison
from whence.views import verdicts, wording
from whence.views.palette import Theme, colour, ink, levels, terminal_theme
from whence.views.terminal_tables import agreement_block, cost_table, evidence_table

MOST_ROWS = 40
MOST_PATCHES = 8  # of an image: its grid shows them all
LONGEST_NAME = 24
SHORT_TEXT = 160  # characters; longer ones are not repeated for every method
BAR = 24
DIM = Style(dim=True)
BOLD = Style(bold=True)


def attribution_text(a: Attribution) -> str:
    """What ``print(a)`` shows: plain when the output is no terminal."""
    return to_text(lambda console: attribution_view(a, console))


def comparison_text(c: Comparison) -> str:
    """What ``print(c)`` shows: plain when the output is no terminal."""
    return to_text(lambda console: comparison_view(c, console))


def to_text(view: Callable[[Console], RenderableType], width: int | None = None) -> str:
    """Lay out for the terminal at stdout. NO_COLOR, FORCE_COLOR and COLUMNS are honoured; markup in a text stays text."""
    console = Console(width=width, markup=False, emoji=False, highlight=False, force_jupyter=False)
    with console.capture() as caught:
        console.print(view(console))
    lines = [line.rstrip() for line in caught.get().splitlines()]
    return "\n".join(lines).strip("\n")


def _has_colour(console: Console) -> bool:
    return console.color_system is not None and not console.no_color


def attribution_view(a: Attribution, console: Console, every_row: bool = False) -> RenderableType:
    """One method: prediction, target, the coloured text, and a bar for each unit."""
    theme, coloured = terminal_theme(), _has_colour(console)
    about = [
        ("method", f"{a.method} ({wording.settings(a.settings)})"),
        ("cost", wording.cost(a.cost) + _for_evidence(a)),
    ]
    told = {
        "error": wording.error(a),
        "evidence": "\n".join(_evidence(a)),
        "anchor": wording.anchor(a),
        "detail": wording.detail(a),
    }
    about += [(name, line) for name, line in told.items() if line]
    picture = _patches(a, theme, coloured) if a.passage.pixels is not None else _coloured(a, theme)
    parts = [
        _heading(a),
        _pairs(about),
        Text(),
        picture,
        Text(),
        *_bars(a, theme, every_row),
        *_footnotes([a]),
    ]
    return Group(*parts, *_legend([a], theme, coloured))


def _for_evidence(a: Attribution) -> str:
    paid = (a.evidence or {}).get("forwards", 0)
    return f"; evidence {paid:,} forward" if paid else ""


def _evidence(a: Attribution) -> list[str]:
    found, told = verdicts.overall(a), verdicts.lines(a)
    return [f"{found.mark} {told[0]}", *told[1:]] if found is not None and told else told


def comparison_view(c: Comparison, console: Console, every_row: bool = False) -> RenderableType:
    """Several methods: prediction, target, the text as each sees it, units × methods, evidence, cost, and how far they agree."""
    theme, coloured = terminal_theme(), _has_colour(console)
    every = list(c.attributions.values())
    parts: list[RenderableType] = [_heading(c.first), Text()]
    if c.first.passage.pixels is None:
        strips = coloured and len(c.first.passage.text) <= SHORT_TEXT
        parts += [_strips(every, theme) if strips else _plain(c.first), Text()]
    else:
        parts += [_grids(every, theme, coloured), Text()]
    parts += [
        *_matrix(every, theme, every_row, console.width),
        *_legend(every, theme, coloured),
        Text(),
    ]
    judged = any(a.evidence is not None for a in every)
    parts += [*evidence_table(every, console.width), Text()] if judged else []
    parts += [cost_table(every, with_units=not judged), *_footnotes(every)]
    for name, why in c.skipped.items():
        parts.append(Text(f"{name} left out: {wording.visible(why)}", style=DIM))
    agreed = list(agreement_block(c))
    return Group(*parts, _total(c), *([Text(), *agreed] if agreed else []))


def prediction_view(probabilities: dict[str, float], text: str | None = None) -> RenderableType:
    """Labels with their probabilities and a bar for each, under the text."""
    parts: list[RenderableType] = [] if text is None else [Text(wording.visible(text, keep="\n"))]
    width = max((cell_len(wording.label(name)) for name in probabilities), default=0)
    for i, (name, p) in enumerate(probabilities.items()):
        style = BOLD if i == 0 else Style()
        parts.append(
            Text.assemble(
                "  ",
                (_fit(wording.label(name), min(width, LONGEST_NAME)), style),
                f"  {p:7.2%}  ",
                _bar(p),
            )
        )
    return Group(*parts)


def _bar(share: float, width: int = BAR) -> str:
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def _fit(text: str, width: int) -> str:
    """Cut or fill to a number of cells; a Chinese character or an emoji takes two."""
    if cell_len(text) <= width:
        return text + " " * (width - cell_len(text))
    return set_cell_size(text, width - 1) + "…"


def _heading(a: Attribution) -> RenderableType:
    shown = (
        "  ".join(f"{wording.label(name)} {p:.1%}" for name, p in list(a.prediction.items())[:5])
        or "–"
    )
    rows = [("model", wording.model_line(a)), ("prediction", shown), ("target", wording.value(a))]
    if note := wording.dropped(a):
        rows.append(("note", note))
    return _pairs(rows)


def _pairs(rows: Sequence[tuple[str, str]]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(style=DIM, width=10)
    table.add_column(overflow="fold")
    for name, content in rows:
        table.add_row(
            Text(name), Text(content, style=BOLD if name in ("prediction", "target") else Style())
        )
    return table


def _style(level: float, signed: bool, theme: Theme) -> Style:
    background = colour(level, signed, theme)
    if background is None:
        return Style()
    front = ink(background)
    return Style(
        bgcolor=f"rgb({background[0]},{background[1]},{background[2]})",
        color=f"rgb({front[0]},{front[1]},{front[2]})",
    )


def _coloured(a: Attribution, theme: Theme) -> Text:
    """The text itself; the space in front of a word stays uncoloured, so that words stay apart."""
    out = Text(overflow="fold")
    part, anchor = 0, wording.anchored(a)
    for i, (unit, (here, _, _), level) in enumerate(
        zip(a.units, a.passage.unit_spans, levels(a), strict=True)
    ):
        if here != part:
            out.append("  ‖  ", style=DIM)
            part = here
        body = unit.lstrip()
        out.append(wording.visible(unit[: len(unit) - len(body)], keep="\n"))
        anchored = Style(underline=True, bold=True) if i in anchor else Style()
        out.append(
            wording.visible(body, keep="\n"), style=_style(float(level), a.signed, theme) + anchored
        )
    return out


def _plain(a: Attribution) -> Text:
    both = "  ‖  ".join(t for t in (a.passage.text, a.passage.pair) if t is not None)
    return Text(wording.visible(both, keep="\n"), overflow="fold")


def _strips(every: Sequence[Attribution], theme: Theme) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for a in every:
        table.add_row(Text(a.method), _coloured(a, theme))
    return table


def _patches(a: Attribution, theme: Theme, coloured: bool) -> Text:
    """The grid of an image's patches: coloured blocks, or shades where there is no colour."""
    out, row = Text(no_wrap=True), 0
    for (_, here, _), level, pictured in zip(
        a.passage.unit_spans, levels(a), a.passage.pictured, strict=True
    ):
        if not pictured:
            continue
        if here != row:
            out.append("\n")
            row = here
        shade = " ░▒▓█"[round(abs(float(level)) * 4)] * 2
        out.append("  " if coloured else shade, style=_style(float(level), a.signed, theme))
    return out


def _grids(every: Sequence[Attribution], theme: Theme, coloured: bool) -> RenderableType:
    """The patches as each method sees them, side by side as far as the terminal is wide."""
    return Columns(
        [Group(Text(a.method, style=BOLD), _patches(a, theme, coloured), Text()) for a in every],
        padding=(0, 4),
    )


def _kept(every: Sequence[Attribution], every_row: bool) -> np.ndarray:
    """The units to list, in reading order: all, or those that some method finds strongest."""
    strongest = np.max([np.abs(levels(a)) for a in every], axis=0)
    most = MOST_PATCHES if every[0].passage.pictured.all() else MOST_ROWS
    if every_row or len(strongest) <= most:
        return np.arange(len(strongest))
    return np.sort(np.argsort(-strongest, kind="stable")[:most])


def _left_out(kept: int, count: int) -> list[Text]:
    if kept == count:
        return []
    hint = f"the {kept} strongest of {count} units, in reading order; --all, --json and --html (or .scores) have every one"
    return [Text(hint, style=DIM)]


def _bars(a: Attribution, theme: Theme, every_row: bool) -> Iterator[Text]:
    kept, level, shown = _kept([a], every_row), levels(a), wording.score_format(a.scores, a.signed)
    numbers, spread = [shown(float(a.scores[i])) for i in kept], wording.spread(a)
    wide = max(map(len, numbers))
    beside = [f" {spread[i]}" for i in kept] if spread is not None else [""] * len(kept)
    wide_beside = max(map(len, beside))
    names = [wording.visible(a.names[i]) for i in kept]
    width = min(max(map(cell_len, names)), LONGEST_NAME)
    for i, name, number, error in zip(kept, names, numbers, beside, strict=True):
        style = _style(float(level[i]), a.signed, theme)
        bar = _bar(abs(float(level[i])))
        ink_of_bar = Style(color=style.bgcolor) if style.bgcolor else DIM
        numbered = [(number.rjust(wide), style), (error.ljust(wide_beside), DIM)]
        yield Text.assemble(
            _fit(name, width), "  ", *numbered, "  ", (bar, ink_of_bar), no_wrap=True
        )
    yield from _left_out(len(kept), len(a.scores))


def _matrix(
    every: Sequence[Attribution], theme: Theme, every_row: bool, room: int
) -> Iterator[Text]:
    """Units × methods. As many methods side by side as the terminal is wide; the others follow below."""
    kept = _kept(every, every_row)
    names = [wording.visible(every[0].names[i]) for i in kept]
    name_width = min(max(map(cell_len, names)), LONGEST_NAME)
    block: list[tuple[Attribution, int]] = []
    used = name_width
    for a in every:
        shown = wording.score_format(a.scores, a.signed)
        width = max(max(len(shown(float(s))) for s in a.scores), *map(len, _head(a.method)))
        if block and used + width + 1 > room:
            yield from _block(block, kept, names, name_width, theme)
            yield Text()
            block, used = [], name_width
        block.append((a, width))
        used += width + 1
    yield from _block(block, kept, names, name_width, theme)
    yield from _left_out(len(kept), len(every[0].scores))


def _head(method: str) -> list[str]:
    """A method's name on several lines, a hyphen ending each: gradient-, x-input."""
    lines: list[str] = []
    for part in method.split("-"):
        if lines and (len(lines[-1]) <= 2 or len(lines[-1]) + len(part) < 8):
            lines[-1] += part + "-"
        else:
            lines.append(part + "-")
    return [*lines[:-1], lines[-1].removesuffix("-")]


def _block(
    block: Sequence[tuple[Attribution, int]],
    kept: np.ndarray,
    names: Sequence[str],
    name_width: int,
    theme: Theme,
) -> Iterator[Text]:
    heads = [_head(a.method) for a, _ in block]
    deep = max(map(len, heads))
    for i in range(deep):
        cells = [head[i - deep + len(head)] if i >= deep - len(head) else "" for head in heads]
        line = " ".join(cell.rjust(width) for cell, (_, width) in zip(cells, block, strict=True))
        yield Text(f"{' ' * name_width} {line}", style=BOLD, no_wrap=True)
    columns = [
        (a, width, levels(a), wording.score_format(a.scores, a.signed)) for a, width in block
    ]
    for i, name in zip(kept, names, strict=True):
        row = Text(_fit(name, name_width), no_wrap=True)
        for a, width, level, shown in columns:
            row.append(" ")
            row.append(
                shown(float(a.scores[i])).rjust(width),
                style=_style(float(level[i]), a.signed, theme),
            )
        yield row


def _footnotes(every: Sequence[Attribution]) -> list[Text]:
    # an anchor is told in the view's own words, which say all that the method's note says; alone, it has a line of its own above
    alone = len(every) == 1
    notes = [
        (
            a,
            ("" if alone else told)
            if (told := wording.anchor(a))
            else a.error.note
            if a.error
            else "",
        )
        for a in every
    ]
    return [Text(f"{a.method}: {wording.visible(note)}", style=DIM) for a, note in notes if note]


def _total(c: Comparison) -> Text:
    shared = (
        "* one forward (and backward) is the trace that all share. "
        if any(a.cost.shared for a in c.attributions.values())
        else ""
    )
    total = f"In all {wording.cost(c.cost)}."
    return Text(shared + total, style=DIM)


def _legend(every: Sequence[Attribution], theme: Theme, coloured: bool) -> list[Text]:
    if not coloured:
        return []
    out = Text()
    if any(a.signed for a in every):
        out.append(" for the target ", _style(0.8, True, theme)).append(" ").append(
            " against it ", _style(-0.8, True, theme)
        ).append(" ")
    if any(not a.signed for a in every):
        out.append(" importance without a sign ", _style(0.8, False, theme)).append(" ")
    return [Text(), out.append(" scaled per method", DIM)]
