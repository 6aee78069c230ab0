"""Two texts side by side: the attention that differs, in a terminal and as a page."""

from __future__ import annotations

import math
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
from whence.views.markup import element, elements, fold, named, scrolling, soft, table, text
from whence.views.markup import kind as score_kind

DIM, BOLD = Style(dim=True), Style(bold=True)
MOST = 6
MOST_OF_A_PLACE = 4
MOST_PLACES = 3
MOST_IN_A_PAGE = 40
MOST_LABELS = 5
COLUMNS = ("kind", "layer-head", "from", "to", "first", "second", "change")
WORDS = 4  # the first columns are words, the others numbers
STYLE = """
.wp{font:15px/1.5 system-ui,sans-serif;color:#1a1c20;background:#fff;padding:1rem}
.wp table{border-collapse:collapse;font-size:13px}
.wp th{font-weight:500;text-align:left;padding:2px 8px}.wp td{padding:2px 8px;text-align:right}
.wp .map td{width:2.2em;height:1.8em;padding:0;text-align:center;font-size:10px;background:
 color-mix(in srgb,var(--c) calc(var(--v)*100%),transparent)}
.wp .p{--c:#f2871c}.wp .n{--c:#4a90d9}
.wp .changed{font-weight:700;text-decoration:underline}.wp .soft{color:#667}
.wp{box-sizing:border-box;max-width:var(--width,78rem);margin:0 auto}.wp h2{margin:.2rem 0 .6rem}
.wp h3{font-size:1rem;margin:1.4rem 0 .4rem}
.wp .answer p{margin:.25rem 0;font-size:1.05rem}.wp .answer p:first-child{font-weight:600}
.wp .pair{background:#f6f7f9;border-radius:.4rem;padding:.5rem .8rem;margin:.8rem 0}
.wp .pair p{margin:.15rem 0;font-size:1.08rem;overflow-wrap:anywhere}
.wp .numbers tbody th{min-width:9rem}
.wp .numbers td{font-variant-numeric:tabular-nums;white-space:nowrap}
.wp .numbers tr:first-child th{font-weight:650}
.wp .numbers thead th{border-bottom:1px solid #ccd}
.wp .numbers thead th:not(:first-child){text-align:right}
.wp details{margin:1.2rem 0}.wp summary{cursor:pointer;color:#667}
.wp .map tbody th{white-space:nowrap}
.wp .map thead th{writing-mode:vertical-rl;transform:rotate(180deg);padding:6px 2px}
.wp .scroll{overflow-x:auto}
@media screen and (prefers-color-scheme:dark){.wp{color:#e6e6ea;background:#14161a}
.wp .soft,.wp summary{color:#99a}.wp .pair{background:#1d2026}}
"""
# Said below the maps of changes, where some weight differs.
LEGEND = (
    "Each row is a word that looks, each column a word that is looked at. Orange: it looks there "
    "more in the second text; blue: more in the first. The strongest change has full colour."
)


# ---------------------------------------------------------------------- terminal


def probe_view(p: Probe) -> RenderableType:
    """The texts, the answer, both predictions beside the controls, and what differs most.

    Said as headings in a terminal: ``what the model says``, ``beside swaps that should not matter``
    and ``the weights that differ most (second less first)``, where there is something below.
    """
    parts: list[RenderableType] = [
        _line("first", p.first.passage.text),
        _line("second", p.second.passage.text),
        Text(),
        *(Text(wording.visible(line)) for line in p.answer()),
    ]
    if p.is_same:
        return Group(*parts, *_about(p))
    if p.predictions:
        parts += [Text(), Text("what the model says", BOLD), _said(p)]
    if p.controls:
        parts += [Text(), Text("beside swaps that should not matter", BOLD), _controls(p)]
    parts += [Text(), *_about(p)]
    title = "the weights that differ most (second less first)"
    parts += [Text(), Text(title, BOLD), _strongest(p.strongest(MOST))]

    apart = [label for label, changed in zip(p.labels, p.changed, strict=True) if changed]
    for label in apart[:MOST_PLACES]:
        title = f"what {wording.visible(label)} looks at"
        changes = p.strongest(MOST_OF_A_PLACE, label)
        parts += [Text(), Text(title, BOLD), _strongest(changes)]
    return Group(*parts)


def _about(p: Probe) -> list[RenderableType]:
    return [Text(wording.visible(line), DIM) for line in p.about()]


def _said(p: Probe) -> Table:
    """The leading labels of both texts, with their probabilities."""
    out = _table(["label"], ["first", "second"])
    for label, *shares in said_rows(p):
        out.add_row(Text(label), *shares)
    return out


def said_rows(p: Probe) -> list[list[str]]:
    """A label in each row, and its share in both texts; a dash where it is not among the first."""
    one, two = p.predictions
    labels = list(dict.fromkeys([*one, *two]))[:MOST_LABELS]
    rows = []
    for label in labels:
        shares = [_share(said.get(label), p) for said in (one, two)]
        rows.append([wording.label(label), *shares])
    return rows


def _share(value: float | None, p: Probe) -> str:
    if value is None:
        return "–"
    return wording.percent(value) if p.reading and p.reading.is_probability else f"{value:.3f}"


def _controls(p: Probe) -> Table:
    """The swap that was asked for, then the neutral ones."""
    out = _table(["swap"], ["prediction", "largest change", "mean change"])
    for name, *numbers in control_rows(p):
        out.add_row(Text(name), *numbers)
    return out


def control_rows(p: Probe) -> list[list[str]]:
    """What each swap changes: the prediction, and the attention."""
    asked = [label for label, changed in zip(p.labels, p.changed, strict=True) if changed]
    change = p.values[1] - p.values[0] if p.values else math.nan
    rows = [_control_row(p, ", ".join(asked), change, p.largest, p.mean_size)]
    for c in p.controls:
        rows.append(_control_row(p, f"control: {c.name}", c.value, c.largest, c.mean))
    return rows


def _control_row(p: Probe, name: str, change: float, largest: float, mean: float) -> list[str]:
    worded = "–" if p.reading is None or math.isnan(change) else p.reading.worded(change)
    return [wording.visible(name), worded, f"{largest:.3f}", f"{mean:.4f}"]


def _table(words: Sequence[str], numbers: Sequence[str]) -> Table:
    out = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False, header_style=BOLD)
    for name in words:
        out.add_column(Text(name))
    for name in numbers:
        out.add_column(Text(name), justify="right")
    return out


def _line(name: str, content: str) -> Text:
    return Text.assemble((f"{name:7}", DIM), wording.visible(content))


def _strongest(changes: Sequence[Change]) -> Table:
    start = _first_column(changes)
    out = _table(COLUMNS[start:WORDS], COLUMNS[WORDS:])
    for change in changes:
        out.add_row(*(Text(wording.visible(cell)) for cell in _cells(change)[start:]))
    return out


def _first_column(changes: Sequence[Change]) -> int:
    """The kind of attention needs no column where there is but one."""
    return 1 if len({change.kind for change in changes}) == 1 else 0


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
    """A whole page. Said as the title of the page."""
    return document("whence: two texts compared", probe_fragment(p))


def probe_fragment(p: Probe) -> str:
    """What a notebook shows. Said as headings of the page, where there is something below."""
    parts = [
        style(STYLE),
        element("h2", "What differs between two texts"),
        element("div", elements("p", map(text, p.answer())), class_="answer"),
        element("div", _texts(p), class_="pair"),
        soft(f"{text('; '.join(p.about()))}."),
    ]
    if p.predictions and not p.is_same:
        names = ("label", "first text", "second text")
        parts += [element("h3", "What the model says"), _numbers(names, said_rows(p))]
    if p.controls:
        names = ("swap", "prediction", "largest change of attention", "mean change of attention")
        title = "Beside swaps that should not matter"
        parts += [element("h3", title), _numbers(names, control_rows(p))]
    if not p.is_same:
        for kind in p.difference:
            title = f"Where attention changes: {text(kind)}, mean over layers and heads"
            parts += [element("h3", title), _heat(p, kind)]
        listing = fold("The weights that differ most, head by head", _list(p))
        parts += [soft(LEGEND), listing]
    return element("section", "".join(parts), class_="wp", id=fresh_id())


def _texts(p: Probe) -> str:
    """Both texts, with the words marked in which they differ."""
    kind = next(iter(p.difference))
    lines = []
    for side, (name, maps) in enumerate((("first:", p.first), ("second:", p.second))):
        axis = maps.to_axis[kind]
        same = {int(places[side]) for places, c in zip(p.places, p.changed, strict=True) if not c}
        words = [element("span", name, class_="soft")]
        for i, label in enumerate(axis.shown):
            if not axis.special[i]:
                words.append(element("bdi", text(label), class_=None if i in same else "changed"))
        lines.append(element("p", " ".join(words)))
    return "".join(lines)


def _numbers(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with a name in front of each row of numbers."""
    heads = element("tr", elements("th", map(text, names), scope="col"))
    lines = []
    for name, *numbers in rows:
        cells = element("th", text(name), scope="row") + elements("td", map(text, numbers))
        lines.append(element("tr", cells))
    return scrolling(names[0], table(heads, lines, class_="numbers"))


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
    changes = p.strongest(MOST_IN_A_PAGE)
    start = _first_column(changes)
    heads = element("tr", elements("th", COLUMNS[start:], scope="col"))
    rows = []
    for change in changes:
        cells = _cells(change)
        kind, head, source, to = cells[:WORDS]
        words = elements("th", [text(kind), text(head), named(source), named(to)][start:])
        rows.append(element("tr", words + elements("td", cells[WORDS:])))
    return scrolling("strongest", table(heads, rows))
