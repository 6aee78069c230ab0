"""Two texts side by side: the attention that differs, in a terminal and as a page."""

from __future__ import annotations

from html import escape
from uuid import uuid4

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from whence.core.probe import Probe
from whence.views import wording
from whence.views.html import POLICY

DIM, BOLD = Style(dim=True), Style(bold=True)
MOST = 12
STYLE = """
.wp{font:15px/1.5 system-ui,sans-serif;color:#1a1c20;background:#fff;padding:1rem}
.wp table{border-collapse:collapse;font-size:13px}
.wp th{font-weight:500;text-align:left;padding:2px 8px}.wp td{padding:2px 8px;text-align:right}
.wp .map td{width:2.2em;height:1.8em;padding:0;text-align:center;font-size:10px;background:
 color-mix(in srgb,var(--c) calc(var(--v)*100%),transparent)}
.wp .p{--c:#f2871c}.wp .n{--c:#4a90d9}.wp .changed{color:#b3541e;font-weight:700}.wp .soft{color:#667}
.wp .map tbody th{white-space:nowrap}
.wp .map thead th{writing-mode:vertical-rl;transform:rotate(180deg);padding:6px 2px}.wp .scroll{overflow-x:auto}
@media (prefers-color-scheme:dark){.wp{color:#e6e6ea;background:#14161a}.wp .changed{color:#f2a15c}.wp .soft{color:#99a}}
"""


def probe_view(p: Probe) -> RenderableType:
    """The texts, what was aligned, and the weights that differ most."""
    parts: list[RenderableType] = [
        _line("first", p.first.passage.text),
        _line("second", p.second.passage.text),
    ]
    apart = [label for label, changed in zip(p.labels, p.changed, strict=True) if changed]
    parts += [Text(wording.visible(line), DIM) for line in p.about()]
    if p.is_same:
        return Group(*parts)
    parts += [
        Text(),
        Text("the weights that differ most (second less first)", BOLD),
        _table(p, None),
    ]
    for label in apart[:3]:
        parts += [Text(), Text(f"what {wording.visible(label)} looks at", BOLD), _table(p, label)]
    return Group(*parts)


def _line(name: str, text: str) -> Text:
    return Text.assemble((f"{name:7}", DIM), wording.visible(text))


def _table(p: Probe, source: str | None) -> Table:
    table = Table(
        box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False, header_style=BOLD
    )
    for i, name in enumerate(("kind", "layer-head", "from", "to", "first", "second", "change")):
        table.add_column(Text(name), justify="left" if i < 4 else "right")
    for c in p.strongest(MOST if source is None else 6, source):
        row = (
            c.kind,
            f"{c.layer}-{c.head}",
            c.source,
            c.to,
            f"{c.first:.3f}",
            f"{c.second:.3f}",
            f"{c.change:+.3f}",
        )
        table.add_row(*(Text(wording.visible(cell)) for cell in row))
    return table


def probe_page(p: Probe) -> str:
    """A whole page."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="color-scheme" content="light dark">\n'
        f"<title>whence: two texts compared</title>\n</head>\n<body style='margin:0'>\n{probe_fragment(p)}\n</body>\n</html>\n"
    )


def probe_fragment(p: Probe) -> str:
    """What a notebook shows."""
    texts = "".join(
        f"<p><span class=soft>{name}</span> <bdi>{_safe(maps.passage.text)}</bdi></p>"
        for name, maps in (("first", p.first), ("second", p.second))
    )
    maps = "".join(
        f"<h3>{_safe(kind)}: mean over layers and heads</h3>{_heat(p, kind)}"
        for kind in p.difference
    )
    left = f"<p class=soft>{_safe('; '.join(p.about()))}.</p>"
    opening = f'<section class="wp" id="whence-{uuid4().hex[:12]}"><style>{STYLE}</style><h2>Attention that differs</h2>{texts}{left}'
    if p.is_same:
        return f"{opening}</section>"
    legend = "<p class=soft>Rows look, columns are looked at. Orange: the second text more; blue: the first. Each map by its own largest.</p>"
    return f"{opening}{maps}{legend}<h3>The weights that differ most</h3>{_list(p)}</section>"


def _heat(p: Probe, kind: str) -> str:
    mean = p.mean(kind)
    largest = float(np.abs(mean).max()) or 1.0
    names = [
        f'<th scope="col" class="{"changed" if c else ""}"><bdi>{_safe(n)}</bdi></th>'
        for n, c in zip(p.labels, p.changed, strict=True)
    ]
    rows = []
    for i, name in enumerate(p.labels):
        cells = "".join(
            f'<td class="{"p" if v > 0 else "n"}" style="--v:{abs(v) / largest:.3f}" title="{_safe(name)} to {_safe(to)}: {v:+.4f}"></td>'
            for v, to in zip(mean[i], p.labels, strict=True)
        )
        mark = "changed" if p.changed[i] else ""
        rows.append(f'<tr><th scope="row" class="{mark}"><bdi>{_safe(name)}</bdi></th>{cells}</tr>')
    table = f'<table class="map"><thead><tr><td></td>{"".join(names)}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="mean difference">{table}</div>'
    )


def _list(p: Probe) -> str:
    heads = "".join(
        f"<th scope=col>{n}</th>"
        for n in ("kind", "layer-head", "from", "to", "first", "second", "change")
    )
    rows = "".join(
        f"<tr><th>{_safe(c.kind)}</th><th>{_safe(c.layer)}-{_safe(c.head)}</th><th><bdi>{_safe(c.source)}</bdi></th><th><bdi>{_safe(c.to)}</bdi>"
        f"</th><td>{c.first:.3f}</td><td>{c.second:.3f}</td><td>{c.change:+.3f}</td></tr>"
        for c in p.strongest(40)
    )
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<div class="scroll" tabindex="0" role="region" aria-label="strongest">{table}</div>'


def _safe(content: object) -> str:
    return escape(wording.visible(str(content)))
