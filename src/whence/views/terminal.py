"""Results in a terminal: coloured where there is colour; the numbers are the same without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.columns import Columns
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.core.answer import is_tried
from whence.core.attribution import Attribution
from whence.core.comparison import Comparison
from whence.core.percent import digits, percent
from whence.core.plan import Plan
from whence.views import verdicts, wording
from whence.views.palette import Theme, colour, ink, levels, terminal_theme
from whence.views.pictures import pictured, pixels_of
from whence.views.sides import sides_of
from whence.views.terminal_answer import (
    answer_block,
    brief_rows,
    explained_line,
    other_methods,
    shown_units,
)
from whence.views.terminal_tables import agreement_block, cost_table, evidence_table, units_table

MOST_ROWS = 40
MOST_BARS = 15  # of the short view
MOST_PATCHES = 8  # of an image: its grid shows them all
LONGEST_NAME = 24
SHORT_TEXT = 160  # characters; longer ones are not repeated for every method
BAR = 24
BETWEEN_TEXTS = "  ‖  "
# Said below the short view of a result.
MORE = "--full (in Python .to_text(full=True)) shows every score, cost and note; --html a page."
DIM = Style(dim=True)
BOLD = Style(bold=True)


def attribution_text(a: Attribution, full: bool = False) -> str:
    """What ``print(a)`` shows: plain when the output is no terminal."""
    return to_text(lambda console: attribution_view(a, console, full=full))


def comparison_text(c: Comparison, full: bool = False) -> str:
    """What ``print(c)`` shows: plain when the output is no terminal."""
    return to_text(lambda console: comparison_view(c, console, full=full))


def to_text(view: Callable[[Console], RenderableType], width: int | None = None) -> str:
    """Lay out for the terminal at stdout; markup in a text stays text.

    NO_COLOR, FORCE_COLOR and COLUMNS are honoured.
    """
    console = Console(width=width, markup=False, emoji=False, highlight=False, force_jupyter=False)
    with console.capture() as caught:
        console.print(Safe(view(console)))
    lines = [line.rstrip() for line in caught.get().split("\n")]
    return "\n".join(lines).strip("\n")


@dataclass(frozen=True, eq=False)
class Safe:
    """A layout from which nothing passes that acts on a terminal, whatever a view forgot."""

    inner: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self.inner, options):
            if segment.control:
                continue
            yield Segment(wording.visible(segment.text, keep="\n"), segment.style)


def has_colour(console: Console) -> bool:
    """Whether colours reach the reader."""
    return console.color_system is not None and not console.no_color


# ---------------------------------------------------------------------- one method


def attribution_view(
    a: Attribution, console: Console, every_row: bool = False, full: bool = False
) -> RenderableType:
    """One method: the answer, the coloured text, a bar for each unit; then how it came about."""
    theme, coloured = terminal_theme(), has_colour(console)
    seen = _coloured(a, theme, shown_units(a, full or every_row))
    if pixels_of(a) is not None:
        seen = _patches(a, theme, coloured)
    most = MOST_ROWS if full else MOST_BARS
    parts: list[RenderableType] = [
        *answer_block(a.answer, theme, coloured),
        Text(),
        seen,
        *_legend([a], theme, coloured),
        Text(),
        *_bars(a, theme, every_row, most),
        Text(),
    ]
    if full:
        parts += [_heading(a), _pairs(_about(a)), *_footnotes([a])]
        return Group(*parts)
    return Group(*parts, _pairs(_about_in_brief(a)), Text(MORE, DIM))


def _about_in_brief(a: Attribution) -> list[tuple[str, str]]:
    """What was explained, how, and the evidence; the rest is for those who ask."""
    facts = {
        "explained": f"{wording.value(a)}, of model {wording.visible(a.provenance.model)}",
        "method": f"{a.method}; {wording.cost(a.cost)}{_cost_of_evidence(a)}",
        "error": wording.error(a),
        "evidence": "\n".join(_evidence(a)),
        "note": "\n".join(wording.remarks(a)),
    }
    return [(name, fact) for name, fact in facts.items() if fact]


def _about(a: Attribution) -> list[tuple[str, str]]:
    """Method and cost, and what else there is to say of the scores."""
    facts = {
        "method": f"{a.method} ({wording.settings(a.settings)})",
        "cost": wording.cost(a.cost) + _cost_of_evidence(a),
        "error": wording.error(a),
        "evidence": "\n".join(_evidence(a)),
        "anchor": wording.anchor(a),
        "detail": wording.detail(a),
    }
    return [(name, fact) for name, fact in facts.items() if fact]


def _cost_of_evidence(a: Attribution) -> str:
    if a.evidence is None or not a.evidence.forwards:
        return ""
    return f"; evidence {a.evidence.forwards:,} forward"


def _evidence(a: Attribution) -> list[str]:
    """The evidence in lines, the first with the mark of the verdict."""
    ruling = verdicts.overall(a)
    lines = verdicts.lines(a)
    if ruling is None or not lines:
        return lines
    return [f"{ruling.mark} {lines[0]}", *lines[1:]]


# ---------------------------------------------------------------------- several methods


def comparison_view(
    c: Comparison, console: Console, every_row: bool = False, full: bool = False
) -> RenderableType:
    """Several methods: the answer, the text by the best of them, and the verdicts.

    ``full`` adds the scores of every unit by every method, costs, notes, and how far they agree.
    """
    theme, coloured = terminal_theme(), has_colour(console)
    answer = c.answer
    every = list(c.attributions.values())
    best = c.attributions[answer.shown]
    parts: list[RenderableType] = [*answer_block(answer, theme, coloured), Text()]
    if pixels_of(best) is not None:
        parts += [_patches(best, theme, coloured), *_legend([best], theme, coloured, best), Text()]
    else:
        seen = _coloured(best, theme, shown_units(best, full))
        parts += [seen, *_legend([best], theme, coloured, best), Text()]

    if full:
        return Group(*parts, *_everything(c, theme, every_row, console))
    rows = brief_rows(every)
    if len(c.first.units) == 1 and not any(map(is_tried, every)):
        rows = []  # nothing can be ranked: a table would name the one unit again and again
    elif any(a.evidence is not None for a in every):
        parts += evidence_table(rows, console.width, with_notes=False)
    else:
        parts.append(units_table(rows))
    parts += [Text(line) for line in other_methods(every, rows)]
    parts += [Text(), Text(f"{explained_line(c.first)}.", DIM)]
    parts += [Text(line, DIM) for line in wording.remarks(c.first, c.plan)]
    return Group(*parts, Text(_in_brief(c), DIM))


def _in_brief(c: Comparison) -> str:
    """What it cost and where the rest is, in one line or two."""
    left_out = ""
    if c.skipped:
        count = len(c.skipped)
        left_out = f" {count} {'method was' if count == 1 else 'methods were'} left out."
    ways = f"{wording.forwards(c.cost)}, {c.cost.backwards:,} backward"
    cost = f"{ways} {'pass' if c.cost.backwards == 1 else 'passes'}"
    return f"{cost}, {wording.duration(c.cost.seconds)}.{left_out} {MORE}"


def _everything(
    c: Comparison, theme: Theme, every_row: bool, console: Console
) -> list[RenderableType]:
    """What is folded away by default."""
    coloured = has_colour(console)
    every = verdicts.by_evidence(list(c.attributions.values()))
    judged = any(a.evidence is not None for a in every)
    parts: list[RenderableType] = []
    if judged:
        parts += [*evidence_table(every, console.width), Text()]
    if len(every) > 1:
        parts += [*_seen(every, theme, coloured), *_legend(every, theme, coloured)]
    parts += [*_matrix(every, theme, every_row, console.width), Text()]
    parts += [_heading(c.first, c.plan), Text()]
    parts += [cost_table(every, with_units=not judged), *_footnotes(every)]
    for name, why in c.skipped.items():
        parts.append(Text(f"{name} left out: {wording.visible(why)}", style=DIM))
    parts.append(_total(c))
    agreed = list(agreement_block(c))
    if agreed:
        parts += [Text(), *agreed]
    return parts


def _seen(every: Sequence[Attribution], theme: Theme, coloured: bool) -> list[RenderableType]:
    """The picture or a short text as each method sees it; without colours there is nothing new."""
    if pixels_of(every[0]) is not None:
        return [_grids(every, theme, coloured), Text()]
    if coloured and _length(every[0]) <= SHORT_TEXT:
        return [_strips(every, theme), Text()]
    return []


def _length(a: Attribution) -> int:
    """Characters of the text, of a pair those of the first."""
    if a.passage is None:
        return len(_plain(a))
    return len(a.passage.text)


def _plain(a: Attribution) -> str:
    """What was explained, without colours."""
    if a.passage is None:
        return "".join(wording.running_texts(a))
    texts = [text for text in (a.passage.text, a.passage.pair) if text is not None]
    return BETWEEN_TEXTS.join(texts)


def prediction_view(
    probabilities: dict[str, float], text: str | None = None, are_tokens: bool = False
) -> RenderableType:
    """Labels with their probabilities and a bar for each, under the text."""
    parts: list[RenderableType] = []
    if text is not None:
        parts.append(Text(wording.visible(text, keep="\n")))
    names = [wording.label(name) for name in probabilities]
    if are_tokens:
        names = [wording.quoted_among(name, probabilities) for name in probabilities]
    width = min(max(map(cell_len, names), default=0), LONGEST_NAME)
    for i, (name, p) in enumerate(zip(names, probabilities.values(), strict=True)):
        label = (fit(name, width), BOLD if i == 0 else Style())
        parts.append(Text.assemble("  ", label, f"  {digits(p, 2):>6}%  ", _bar(p)))
    return Group(*parts)


# ---------------------------------------------------------------------- pieces


def _bar(share: float, width: int = BAR) -> str:
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def fit(text: str, width: int) -> str:
    """Cut or fill to a number of cells; a Chinese character or an emoji takes two."""
    if cell_len(text) <= width:
        return text + " " * (width - cell_len(text))
    return set_cell_size(text, width - 1) + "…"


def _heading(a: Attribution, plan: Plan | None = None) -> RenderableType:
    leading = list(a.prediction.items())[:5]
    prediction = "  ".join(f"{wording.label_said(a, name)} {percent(p, 1)}" for name, p in leading)
    rows = [
        ("model", wording.model_line(a)),
        ("prediction", prediction or "–"),
        ("target", wording.value(a)),
    ]
    rows += [("note", line) for line in wording.remarks(a, plan)]
    return _pairs(rows)


def _pairs(rows: Sequence[tuple[str, str]]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(style=DIM, width=10)
    table.add_column(overflow="fold")
    for name, content in rows:
        style = BOLD if name in ("prediction", "target") else Style()
        table.add_row(Text(name), Text(content, style=style))
    return table


def level_style(level: float, signed: bool, theme: Theme) -> Style:
    """The background of a score by its level, with ink that can be read on it."""
    background = colour(level, signed, theme)
    if background is None:
        return Style()
    front = ink(background)
    return Style(
        bgcolor=f"rgb({background[0]},{background[1]},{background[2]})",
        color=f"rgb({front[0]},{front[1]},{front[2]})",
    )


def _coloured(a: Attribution, theme: Theme, shown: np.ndarray | None = None) -> Text:
    """The text itself, or the ``shown`` units of a long one with dots between.

    The space in front of a word stays uncoloured, so that words stay apart.
    """
    out = Text(overflow="fold")
    level = levels(a)
    anchor = wording.anchored(a)
    cuts = wording.cuts(a)
    last = 0
    for i, unit in enumerate(wording.running_texts(a)):
        if shown is not None and not shown[i]:
            if i == 0 or shown[i - 1]:
                out.append(" … ", style=DIM)
            continue
        if i in cuts:
            out.append(f" {wording.CUT}", style=BOLD)
        if a.units.parts[i] != last:
            out.append(BETWEEN_TEXTS, style=DIM)
            last = a.units.parts[i]
        body = unit.lstrip()
        style = level_style(float(level[i]), a.signed, theme)
        if i in anchor:
            style += Style(underline=True, bold=True)
        out.append(wording.visible(unit[: len(unit) - len(body)], keep="\n"))
        out.append(wording.visible(body, keep="\n"), style=style)
    return out


def _strips(every: Sequence[Attribution], theme: Theme) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for a in every:
        table.add_row(Text(a.method), _coloured(a, theme))
    return table


def _patches(a: Attribution, theme: Theme, coloured: bool) -> Text:
    """The grid of an image's patches: coloured blocks, or shades where there is no colour."""
    assert a.units.spans is not None
    out = Text(no_wrap=True)
    level = levels(a)
    last = 0
    for i in np.flatnonzero(pictured(a)):
        _, row, _ = a.units.spans[i]
        if row != last:
            out.append("\n")
            last = row
        block = "  "
        if not coloured:
            block = " ░▒▓█"[round(abs(float(level[i])) * 4)] * 2
        out.append(block, style=level_style(float(level[i]), a.signed, theme))
    return out


def _grids(every: Sequence[Attribution], theme: Theme, coloured: bool) -> RenderableType:
    """The patches as each method sees them, side by side as far as the terminal is wide."""
    grids = [_titled_grid(a, theme, coloured) for a in every]
    return Columns(grids, padding=(0, 4))


def _titled_grid(a: Attribution, theme: Theme, coloured: bool) -> RenderableType:
    return Group(Text(a.method, style=BOLD), _patches(a, theme, coloured), Text())


# ---------------------------------------------------------------------- tables of scores


def _listed_units(
    every: Sequence[Attribution], every_row: bool, most: int = MOST_ROWS
) -> np.ndarray:
    """The units to list, in reading order: all, or those that some method finds strongest."""
    strongest = np.max([np.abs(levels(a)) for a in every], axis=0)
    if pictured(every[0]).all():
        most = MOST_PATCHES
    if every_row or len(strongest) <= most:
        return np.arange(len(strongest))
    return np.sort(np.argsort(-strongest, kind="stable")[:most])


def _left_out(listed: int, count: int) -> list[Text]:
    """Said below bars or a matrix that do not hold every unit."""
    if listed == count:
        return []
    hint = (
        f"the {listed} strongest of {count} units, in reading order; "
        "--all, --json and --html (or .scores) have every one"
    )
    return [Text(hint, style=DIM)]


def _names(a: Attribution, units: np.ndarray) -> list[str]:
    names = a.units.distinct_names
    return [wording.visible(names[i]) for i in units]


def _width_of(names: Sequence[str]) -> int:
    return min(max(map(cell_len, names)), LONGEST_NAME)


def _bars(a: Attribution, theme: Theme, every_row: bool, most: int) -> Iterator[Text]:
    """A line for each unit: its name, its score with the standard error, and a bar."""
    units = _listed_units([a], every_row, most)
    level = levels(a)
    names = _names(a, units)
    shown = wording.score_format(a.scores, a.signed)
    numbers = [shown(float(a.scores[i])) for i in units]
    errors = [""] * len(units)
    spread = wording.spread(a)
    if spread is not None:
        errors = [f" {spread[i]}" for i in units]

    width = _width_of(names)
    number_width = max(map(len, numbers))
    error_width = max(map(len, errors))
    for i, name, number, error in zip(units, names, numbers, errors, strict=True):
        style = level_style(float(level[i]), a.signed, theme)
        bar_style = Style(color=style.bgcolor) if style.bgcolor else DIM
        yield Text.assemble(
            fit(name, width),
            "  ",
            (number.rjust(number_width), style),
            (error.ljust(error_width), DIM),
            "  ",
            (_bar(abs(float(level[i]))), bar_style),
            no_wrap=True,
        )
    yield from _left_out(len(units), len(a.scores))


@dataclass(frozen=True)
class _Column:
    """One method's scores in the table: its name on several lines, and the cells' width."""

    attribution: Attribution
    head: list[str]
    width: int


def _column(a: Attribution) -> _Column:
    shown = wording.score_format(a.scores, a.signed)
    head = _head(a.method)
    widest = max(len(shown(float(score))) for score in a.scores)
    return _Column(a, head, max(widest, *map(len, head)))


def _head(method: str) -> list[str]:
    """A method's name on several lines, a hyphen ending each: gradient-, x-input."""
    lines: list[str] = []
    for part in method.split("-"):
        if lines and (len(lines[-1]) <= 2 or len(lines[-1]) + len(part) < 8):
            lines[-1] += part + "-"
        else:
            lines.append(part + "-")
    return [*lines[:-1], lines[-1].removesuffix("-")]


def _matrix(
    every: Sequence[Attribution], theme: Theme, every_row: bool, room: int
) -> Iterator[Text]:
    """Units × methods: as many methods side by side as there is room; the others follow below."""
    units = _listed_units(every, every_row)
    names = _names(every[0], units)
    name_width = _width_of(names)
    for i, block in enumerate(_blocks(every, room - name_width)):
        if i > 0:
            yield Text()
        yield from _heads_of(block, name_width)
        yield from _rows_of(block, units, names, theme)
    yield from _left_out(len(units), len(every[0].scores))


def _blocks(every: Sequence[Attribution], room: int) -> list[list[_Column]]:
    """Methods that fit beside each other."""
    blocks: list[list[_Column]] = [[]]
    used = 0
    for a in every:
        column = _column(a)
        if blocks[-1] and used + column.width + 1 > room:
            blocks.append([])
            used = 0
        blocks[-1].append(column)
        used += column.width + 1
    return blocks


def _heads_of(block: Sequence[_Column], name_width: int) -> Iterator[Text]:
    """The methods' names, ending on the same line."""
    deep = max(len(column.head) for column in block)
    for i in range(deep):
        cells = []
        for column in block:
            place = i - deep + len(column.head)
            part = column.head[place] if place >= 0 else ""
            cells.append(part.rjust(column.width))
        yield Text(f"{' ' * name_width} {' '.join(cells)}", style=BOLD, no_wrap=True)


def _rows_of(
    block: Sequence[_Column], units: np.ndarray, names: Sequence[str], theme: Theme
) -> Iterator[Text]:
    name_width = _width_of(names)
    rows = [Text(fit(name, name_width), no_wrap=True) for name in names]
    for column in block:
        a = column.attribution
        level = levels(a)
        shown = wording.score_format(a.scores, a.signed)
        for row, i in zip(rows, units, strict=True):
            number = shown(float(a.scores[i])).rjust(column.width)
            row.append(" ")
            row.append(number, style=level_style(float(level[i]), a.signed, theme))
    return iter(rows)


# ---------------------------------------------------------------------- below the tables


def _footnotes(every: Sequence[Attribution]) -> list[Text]:
    alone = len(every) == 1
    notes = []
    for a in every:
        note = _footnote(a, alone)
        if note:
            notes.append(Text(f"{a.method}: {wording.visible(note)}", style=DIM))
    return notes


def _footnote(a: Attribution, alone: bool) -> str:
    """A method's own note.

    Of an anchor the view's words say all that the note says; alone, it has its line above.
    """
    anchor = wording.anchor(a)
    if anchor:
        return "" if alone else anchor
    return wording.note(a)


def _total(c: Comparison) -> Text:
    """What all of it cost, and what the columns of the table count."""
    every = c.attributions.values()
    lines = []
    if any(a.cost.shared for a in every):
        lines.append(wording.SHARED_PASS)
    if any(a.cost.saved for a in every):
        lines.append(wording.FROM_MEMORY)
    lines.append(f"In all {wording.cost(c.cost)}.")
    return Text("\n".join(lines), style=DIM)


def _legend(
    every: Sequence[Attribution], theme: Theme, coloured: bool, by: Attribution | None = None
) -> list[Text]:
    """What the colours mean, and by which method they are.

    Said where there are colours. ``coloured by lime, better than random  for the target``
    """
    if not coloured:
        return []
    out = Text()
    if by is not None:
        ruling = verdicts.overall(by)
        verdict = "" if ruling is None else f", {ruling.words}"
        out.append(f"coloured by {by.method}{verdict}  ", DIM)
    if any(a.signed for a in every):
        said = sides_of(every[0].target)
        out.append(f" {said.above.end('the target')} ", level_style(0.8, True, theme))
        out.append(" ")
        out.append(f" {said.below.other_end()} ", level_style(-0.8, True, theme))
        out.append(" ")
    if any(not a.signed for a in every):
        out.append(" importance without a sign ", level_style(0.8, False, theme))
        out.append(" ")
    if len(every) > 1:
        out.append(" each method has its own scale", DIM)
    return [Text(), out]
