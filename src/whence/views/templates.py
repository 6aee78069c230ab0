"""Two lists of words in many sentences: the answer, the intervals, and every template."""

from __future__ import annotations

import math

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.core.probe import Contrast, TemplateProbe
from whence.views import wording
from whence.views.document import document, fresh_id, style
from whence.views.markup import element, elements, fold, scrolling, soft, table, text
from whence.views.probe import STYLE

DIM, BOLD = Style(dim=True), Style(bold=True)
COLUMNS = ("words", "mean change", "95 % interval", "rises in", "falls in")
MOST = 5
WIDE = 260  # pixels of an interval's drawing
# Said below the intervals.
EXPLAINED = (
    "The change is that from the first words to the second, the mean over the pairs of a template. "
    "The interval is Student's, over templates: it says how far the mean would move with other "
    "templates like these. A control puts two other words in the same places, which should make no "
    "difference."
)
OWN_STYLE = """
.wp .range{position:relative;display:block;width:260px;height:14px}
.wp .range i{position:absolute;top:6px;height:2px;background:currentColor}
.wp .range b{position:absolute;top:2px;width:10px;height:10px;border-radius:50%;
 background:currentColor;margin-left:-5px}
.wp .range u{position:absolute;top:0;bottom:0;width:1px;background:#99a}
.wp .control th,.wp .control td{color:#667}
@media screen and (prefers-color-scheme:dark){.wp .control th,.wp .control td{color:#99a}}
"""


# ---------------------------------------------------------------------- terminal


def templates_view(p: TemplateProbe) -> RenderableType:
    """The answer, a row for the words and for each control, and the templates that move most.

    Said above the templates that change most: ``the 5 of 40 templates that change most``, or ``the
    templates`` where all are shown.
    """
    answer = [Text(wording.visible(line)) for line in p.answer()]
    answer[0].stylize(BOLD)
    title = f"the {MOST} of {len(p.templates)} templates that change most"
    if len(p.templates) <= MOST:
        title = "the template" if len(p.templates) == 1 else "the templates"
    return Group(*answer, Text(), _rows(p), Text(), Text(title, BOLD), _strongest(p))


def _rows(p: TemplateProbe) -> Table:
    out = _table()
    out.add_column(Text(COLUMNS[0]))
    for name in COLUMNS[1:]:
        out.add_column(Text(name), justify="right")
    for cells in rows(p):
        out.add_row(*map(Text, cells))
    return out


def rows(p: TemplateProbe) -> list[list[str]]:
    """A row for the words that were asked for, then one for each control."""
    named = [(p.contrast.name, p.contrast)]
    named += [(f"control: {control.name}", control) for control in p.controls]
    return [_cells(p, name, contrast) for name, contrast in named]


def _cells(p: TemplateProbe, name: str, contrast: Contrast) -> list[str]:
    worded = p.reading.worded
    interval = "–"
    if not math.isnan(contrast.low):
        interval = p.reading.between(contrast.low, contrast.high)
    return [
        wording.visible(name),
        worded(contrast.mean),
        interval,
        str(contrast.up),
        str(contrast.down),
    ]


def _strongest(p: TemplateProbe) -> Table:
    out = _table()
    out.add_column(Text("change"), justify="right", no_wrap=True)
    out.add_column(Text("template"))
    for line, change in by_size(p)[:MOST]:
        out.add_row(Text(change), Text(line))
    return out


def by_size(p: TemplateProbe) -> list[tuple[str, str]]:
    """Every template with its change, the largest first."""
    order = sorted(range(len(p.templates)), key=lambda i: -abs(p.contrast.differences[i]))
    out = []
    for i in order:
        line = wording.visible(p.templates.templates[i].line)
        out.append((line, p.reading.worded(float(p.contrast.differences[i]))))
    return out


def _table() -> Table:
    return Table(
        box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False, header_style=BOLD
    )


# ---------------------------------------------------------------------- page


def templates_page(p: TemplateProbe) -> str:
    """A whole page."""
    title = f"whence: {p.contrast.name} in {wording.counted(len(p.templates), 'template')}"
    return document(title, templates_fragment(p), scripts=False)


def templates_fragment(p: TemplateProbe) -> str:
    """What a notebook shows. Said as headings of the page."""
    heads = element("tr", elements("th", ["template", "change"], scope="col"))
    lines = []
    for line, change in by_size(p):
        lines.append(element("tr", element("th", text(line), scope="row") + element("td", change)))
    every = scrolling("templates", table(heads, lines, class_="numbers"))
    parts = [
        style(STYLE + OWN_STYLE),
        element("h2", f"{text(p.templates.first)} or {text(p.templates.second)}: does it matter?"),
        element("div", elements("p", map(text, p.answer())), class_="answer"),
        element("h3", f"Change of the {text(p.reading.name)}"),
        _intervals(p),
        soft(EXPLAINED),
        soft(f"Model: {text(p.model)}."),
        fold(_every_template(len(p.templates)), every),
    ]
    return element("section", "".join(parts), class_="wp", id=fresh_id())


def _every_template(count: int) -> str:
    """Said as the heading of all templates."""
    return "The template" if count == 1 else f"All {count} templates, the largest change first"


def _intervals(p: TemplateProbe) -> str:
    """The rows of the terminal, with the intervals drawn on one scale."""
    every = [p.contrast, *p.controls]
    ends = [abs(end) for c in every for end in (c.low, c.high, c.mean) if not math.isnan(end)]
    most = max(ends, default=0.0) or 1.0
    names = [*COLUMNS, ""]
    heads = element("tr", elements("th", names, scope="col"))
    lines = []
    for contrast, (name, *numbers) in zip(every, rows(p), strict=True):
        cells = element("th", text(name), scope="row")
        cells += elements("td", map(text, numbers)) + element("td", _range(contrast, most))
        kind = None if contrast is p.contrast else "control"
        lines.append(element("tr", cells, class_=kind))
    return scrolling("intervals", table(heads, lines, class_="numbers"))


def _range(contrast: Contrast, most: float) -> str:
    """An interval, its mean, and where 0 is."""

    def at(value: int | float) -> float:
        return WIDE / 2 + value / most * (WIDE / 2 - 6)

    zero = element("u", style=f"left:{at(0):.0f}px")
    line = ""
    if not math.isnan(contrast.low):
        start, end = at(contrast.low), at(contrast.high)
        line = element("i", style=f"left:{start:.1f}px;width:{max(end - start, 1):.1f}px")
    dot = element("b", style=f"left:{at(contrast.mean):.1f}px")
    return element("span", zero + line + dot, class_="range", aria_hidden="true")
