"""Two texts side by side: the attention that differs, in a terminal and as a page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.core.probe import Change, Probe
from whence.views import wording
from whence.views.document import document, fresh_id, style
from whence.views.markup import element, elements, named, scrolling, soft, table, text
from whence.views.markup import kind as score_kind

DIM, BOLD = Style(dim=True), Style(bold=True)
MOST = 12
MOST_OF_A_PLACE = 6
MOST_PLACES = 3
MOST_IN_A_PAGE = 40
COLUMNS = ("kind", "layer-head", "from", "to", "first", "second", "change")
WORDS = 4  # the first columns are words, the others numbers
STYLE = """
.wp{font:15px/1.5 system-ui,sans-serif;color:#1a1c20;background:#fff;padding:1rem}
.wp table{border-collapse:collapse;font-size:13px}
.wp th{font-weight:500;text-align:left;padding:2px 8px}.wp td{padding:2px 8px;text-align:right}
.wp .map td{width:2.2em;height:1.8em;padding:0;text-align:center;font-size:10px;background:
 color-mix(in srgb,var(--c) calc(var(--v)*100%),transparent)}
.wp .p{--c:#f2871c}.wp .n{--c:#4a90d9}
.wp .changed{color:#b3541e;font-weight:700}.wp .soft{color:#667}
.wp .map tbody th{white-space:nowrap}
.wp .map thead th{writing-mode:vertical-rl;transform:rotate(180deg);padding:6px 2px}
.wp .scroll{overflow-x:auto}
@media (prefers-color-scheme:dark){.wp{color:#e6e6ea;background:#14161a}
.wp .changed{color:#f2a15c}.wp .soft{color:#99a}}
"""
LEGEND = (
    "Rows look, columns are looked at. Orange: the second text more; blue: the first. "
    "Each map by its own largest."
)


# ---------------------------------------------------------------------- terminal


def probe_view(p: Probe) -> RenderableType:
    """The texts, what was aligned, and the weights that differ most."""
    parts: list[RenderableType] = [
        _line("first", p.first.passage.text),
        _line("second", p.second.passage.text),
        *(Text(wording.visible(line), DIM) for line in p.about()),
    ]
    if p.is_same:
        return Group(*parts)
    title = "the weights that differ most (second less first)"
    parts += [Text(), Text(title, BOLD), _strongest(p.strongest(MOST))]

    apart = [label for label, changed in zip(p.labels, p.changed, strict=True) if changed]
    for label in apart[:MOST_PLACES]:
        title = f"what {wording.visible(label)} looks at"
        changes = p.strongest(MOST_OF_A_PLACE, label)
        parts += [Text(), Text(title, BOLD), _strongest(changes)]
    return Group(*parts)


def _line(name: str, content: str) -> Text:
    return Text.assemble((f"{name:7}", DIM), wording.visible(content))


def _strongest(changes: Sequence[Change]) -> Table:
    out = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False, header_style=BOLD)
    for name in COLUMNS[:WORDS]:
        out.add_column(Text(name))
    for name in COLUMNS[WORDS:]:
        out.add_column(Text(name), justify="right")
    for change in changes:
        out.add_row(*(Text(wording.visible(cell)) for cell in _cells(change)))
    return out


def _cells(change: Change) -> list[str]:
    """One weight that differs, a cell for each of ``COLUMNS``."""
    return [
        change.kind,
        f"{change.layer}-{change.head}",
        change.source,
        change.to,
        f"{change.first:.3f}",
        f"{change.second:.3f}",
        f"{change.change:+.3f}",
    ]


# ---------------------------------------------------------------------- page


def probe_page(p: Probe) -> str:
    """A whole page."""
    return document("whence: two texts compared", probe_fragment(p), styles=["body{margin:0}"])


def probe_fragment(p: Probe) -> str:
    """What a notebook shows."""
    parts = [
        style(STYLE),
        element("h2", "Attention that differs"),
        _text("first", p.first.passage.text),
        _text("second", p.second.passage.text),
        soft(f"{text('; '.join(p.about()))}."),
    ]
    if not p.is_same:
        for kind in p.difference:
            parts += [element("h3", f"{text(kind)}: mean over layers and heads"), _heat(p, kind)]
        parts += [soft(LEGEND), element("h3", "The weights that differ most"), _list(p)]
    return element("section", "".join(parts), class_="wp", id=fresh_id())


def _text(name: str, content: str) -> str:
    return element("p", f"{element('span', name, class_='soft')} {named(content)}")


def _heat(p: Probe, kind: str) -> str:
    """The mean difference as a map, orange where the second text has more of it."""
    mean = p.mean(kind)
    largest = float(np.abs(mean).max()) or 1.0
    marks = ["changed" if changed else None for changed in p.changed]
    columns = [
        element("th", named(label), scope="col", class_=mark)
        for label, mark in zip(p.labels, marks, strict=True)
    ]
    rows = []
    for i, label in enumerate(p.labels):
        cells = [element("th", named(label), scope="row", class_=marks[i])]
        for value, to in zip(mean[i].tolist(), p.labels, strict=True):
            tip = wording.visible(f"{label} to {to}: {value:+.4f}")
            cells.append(_cell(value, abs(value) / largest, tip))
        rows.append(element("tr", "".join(cells)))
    heads = element("tr", f"<td></td>{''.join(columns)}")
    return scrolling("mean difference", table(heads, rows, class_="map"))


def _cell(value: float, level: float, tip: str) -> str:
    side = score_kind(value, signed=True)
    return element("td", class_=side, style=f"--v:{level:.3f}", title=tip)


def _list(p: Probe) -> str:
    """The weights that differ most, a row for each."""
    heads = element("tr", elements("th", COLUMNS, scope="col"))
    rows = []
    for change in p.strongest(MOST_IN_A_PAGE):
        cells = _cells(change)
        kind, head, source, to = cells[:WORDS]
        words = elements("th", [text(kind), text(head), named(source), named(to)])
        rows.append(element("tr", words + elements("td", cells[WORDS:])))
    return scrolling("strongest", table(heads, rows))
