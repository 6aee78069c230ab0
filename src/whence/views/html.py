"""Results as self-contained HTML: no network, no fonts from elsewhere, every text escaped; a page or a fragment for a notebook."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any
from uuid import uuid4

from whence.core.attribution import Attribution
from whence.core.comparison import Comparison
from whence.views import wording
from whence.views.palette import levels
from whence.views.pictures import patches, pixels_figure

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
LONGEST_TITLE = 60


def attribution_page(a: Attribution) -> str:
    """A whole page for one attribution."""
    return page([a])


def comparison_page(c: Comparison) -> str:
    """A whole page for one comparison."""
    return page([c])


def attribution_fragment(a: Attribution) -> str:
    """What a notebook shows for one attribution."""
    return _style() + _body(a, f"whence-{uuid4().hex[:12]}")


def comparison_fragment(c: Comparison) -> str:
    """What a notebook shows for one comparison."""
    return _style() + _body(c, f"whence-{uuid4().hex[:12]}")


def page(results: Sequence[Attribution | Comparison]) -> str:
    """One document with all results, each in its own section."""
    first = _attributions(results[0])[0]
    text = " ".join(wording.visible(first.passage.text, keep="\n\t").split()) or first.provenance.model
    title = escape(text[:LONGEST_TITLE] + ("…" if len(text) > LONGEST_TITLE else ""))
    bodies = "\n".join(_body(r, f"whence-{i}") for i, r in enumerate(results))
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="color-scheme" content="light dark">\n'
        f"<title>whence: {title}</title>\n{_style()}\n"
        "<style>body{margin:0;background:#fff}@media (prefers-color-scheme:dark){body{background:#14161a}}"
        "@media print{body{background:#fff}}</style>\n"
        f'</head>\n<body>\n<main class="whence-many">\n{bodies}\n</main>\n</body>\n</html>\n'
    )


@cache
def _static(name: str) -> str:
    return (files("whence.views") / "static" / name).read_text(encoding="utf-8")


def _style() -> str:
    return f"<style>{_static('report.css')}</style>"


def _attributions(result: Attribution | Comparison) -> list[Attribution]:
    return [result] if isinstance(result, Attribution) else list(result.attributions.values())


def _text(content: object, keep: str = "") -> str:
    return escape(wording.visible(str(content), keep))


def _body(result: Attribution | Comparison, name: str) -> str:
    every = _attributions(result)
    parts = [
        _header(every[0]),
        *([_pictures(every)] if every[0].passage.pixels is not None else []),
        *([_strips(every)] if not every[0].passage.pictured.all() else []),
        _legend(every),
        _matrix(every),
        _methods(every, result),
        _details(every),
        _data(result),
        f"<script>{_static('report.js').replace('ROOT', name)}</script>",
    ]
    return f'<section class="whence" id="{name}">\n' + "\n".join(parts) + "\n</section>"


def _header(a: Attribution) -> str:
    bars = []
    for i, (name, p) in enumerate(a.prediction.items()):
        first = ' class="first"' if i == 0 else ""
        width = f"{min(max(p, 0.0), 1.0):.1%}"
        bars.append(
            f'<dt{first}>{_text(wording.label(name))}</dt><dd class="bar{" first" if i == 0 else ""}"><i style="width:{width}"></i></dd>'
            f"<dd{first}>{p:.1%}</dd>"
        )
    label = next(iter(a.prediction), None)
    headline = "Explained" if label is None else f"Predicted: {_text(wording.label(label))}"
    note = f'<p class="soft">{escape(wording.dropped(a))}.</p>' if a.passage.dropped else ""
    return (
        f'<div class="top"><div><h2>{headline}</h2><p class="target">Explained: <strong>{escape(wording.value(a))}</strong></p>'
        f'<p class="soft">{escape(wording.model_line(a))}</p>{note}</div>'
        f'<dl class="bars" aria-label="prediction">{"".join(bars)}</dl></div>'
    )


def _kind(level: float, signed: bool) -> str:
    return "m" if not signed else "p" if level > 0 else "n"


def _unit(i: int, content: str, tip: str, level: float, signed: bool, reachable: bool) -> str:
    place = "0" if reachable else "-1"
    return (
        f'<span class="u {_kind(level, signed)}" style="--v:{abs(level):.3f}" data-i="{i}" data-tip="{escape(tip)}" tabindex="{place}" '
        f'aria-label="{escape(tip)}">{content}</span>'
    )


def _coloured(a: Attribution) -> str:
    """The text; white space in front of a unit stays outside its colour."""
    out, part = [], 0
    for i, (unit, (here, _, _), level) in enumerate(zip(a.units, a.passage.unit_spans, levels(a), strict=True)):
        if a.passage.pixels is not None and a.passage.pictured[i]:  # over the image already
            continue
        if here != part:
            out.append('<span class="between">‖</span>')
            part = here
        body = unit.lstrip()
        tip = f"{wording.visible(a.names[i])}: {wording.exact(float(a.scores[i]), a.signed)}"
        out.append(_text(unit[: len(unit) - len(body)], keep="\n\t"))
        if body:
            out.append(_unit(i, _text(body, keep="\n\t"), tip, float(level), a.signed, i == 0))
    return f'<div class="text" dir="auto" role="group" aria-label="the text as {escape(a.method)} sees it">{"".join(out)}</div>'


def _strips(every: Sequence[Attribution]) -> str:
    rows = "\n".join(f"<dt>{escape(a.method)}</dt><dd>{_coloured(a)}</dd>" for a in every)
    return f'<h3>The text, by method</h3>\n<dl class="strips">\n{rows}\n</dl>'


def _pictures(every: Sequence[Attribution]) -> str:
    figures = [pixels_figure(every[0]), *(patches(a, _unit) for a in every)]
    return f'<h3>The image, by method</h3>\n<div class="pictures">{"".join(figures)}</div>'


def _legend(every: Sequence[Attribution]) -> str:
    def ramp(cells: Sequence[tuple[str, float]]) -> str:
        return f'<span class="ramp" aria-hidden="true">{"".join(f"""<i class="{k}" style="--v:{v}"></i>""" for k, v in cells)}</span>'

    parts = []
    if any(a.signed for a in every):
        cells = [*(("n", v) for v in (1.0, 0.66, 0.33)), ("p", 0.0), *(("p", v) for v in (0.33, 0.66, 1.0))]
        parts.append(f"<span>against the target{ramp(cells)}for it</span>")
    if any(not a.signed for a in every):
        parts.append(f"<span>unimportant{ramp([('m', v) for v in (0.0, 0.33, 0.66, 1.0)])}important (a method without signs)</span>")
    parts.append("<span>Each method is scaled by its own largest score; point at a unit for the number.</span>")
    return f'<p class="legend">{"".join(parts)}</p>'


def _matrix(every: Sequence[Attribution]) -> str:
    heads = "".join(f'<th scope="col">{escape(a.method).replace("-", "-<wbr>")}</th>' for a in every)
    columns = [(a, levels(a), wording.score_format(a.scores, a.signed)) for a in every]
    rows = []
    for i, name in enumerate(every[0].names):
        cells = "".join(
            f'<td class="{_kind(level[i], a.signed)}" style="--v:{abs(level[i]):.3f}">{shown(float(a.scores[i]))}</td>'
            for a, level, shown in columns
        )
        rows.append(f'<tr><th scope="row"><bdi>{_text(name)}</bdi></th>{cells}</tr>')
    head = f'<thead><tr><th scope="col">{escape(every[0].passage.kind)}</th>{heads}</tr></thead>'
    body = "\n".join(rows)
    table = f'<table class="matrix">{head}\n<tbody>\n{body}\n</tbody></table>'
    return f"<h3>Scores</h3>\n{_scrolling('scores of each unit by each method', table)}"


def _scrolling(name: str, table: str) -> str:
    """A region that the keyboard can reach and scroll."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{name}">{table}</div>'


def _methods(every: Sequence[Attribution], result: Attribution | Comparison) -> str:
    names = ("forward", "backward", "ms", "error", "evidence")
    heads = '<th scope="col" class="left">method</th><th scope="col" class="left strongest"><span class="wide">strongest units</span></th>'
    heads += "".join(f'<th scope="col"{" class=wide" if n == "evidence" else ""}>{n}</th>' for n in names)
    rows = []
    for a in every:
        top = ", ".join(f"<bdi>{_text(n)}</bdi>" for n, score in a.top(3) if score) or "–"
        note = f'<br><span class="soft">{_text(a.error.note)}</span>' if a.error and a.error.note else ""
        mark = "*" if a.cost.shared else ""
        evidence = "not computed" if a.evidence is None else _text(a.evidence.get("verdict", "computed"))
        rows.append(
            f'<tr><th scope="row" class="left">{escape(a.method)}</th><td class="left strongest"><span class="wide">{top}</span>{note}</td>'
            f"<td>{a.cost.forwards}{mark}</td><td>{a.cost.backwards}</td><td>{wording.milliseconds(a.cost.seconds)}</td>"
            f"<td>{escape(wording.error(a)) or '–'}</td>"
            f'<td class="wide soft">{evidence}</td></tr>'
        )
    notes = []
    if isinstance(result, Comparison):
        total = f"In all {result.cost.forwards} forward, {result.cost.backwards} backward, {wording.duration(result.cost.seconds)}."
        notes.append(("* one forward (and backward) is the trace that all methods share. " if every[0].cost.shared else "") + total)
        notes += [f"{name} left out: {wording.visible(why)}" for name, why in result.skipped.items()]
    foot = "".join(f'<p class="soft">{escape(n)}</p>' for n in notes)
    table = f'<table class="costs"><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return f"<h3>Cost and error</h3>\n{_scrolling('cost and error of each method', table)}{foot}"


def _details(every: Sequence[Attribution]) -> str:
    first = every[0]
    p = first.provenance
    attention = ", ".join(dict.fromkeys(a.provenance.attention for a in every))
    pairs: list[tuple[str, object]] = [
        *((a.method, f"version {a.version}; {wording.settings(a.settings)}") for a in every),
        ("seed", first.seed),
        ("units", f"{len(first.scores)}, by {first.passage.kind}"),
        ("model", f"{p.model} ({p.architecture}), weights {p.fingerprint}" + (f", revision {p.revision}" if p.revision else "")),
        ("computed in", f"{p.dtype} on {p.device}; attention: {attention}"),
        ("versions", ", ".join(f"{k} {v}" for k, v in p.versions.items())),
    ]
    rows = "".join(f"<dt>{_text(k)}</dt><dd>{_text(v)}</dd>" for k, v in pairs)
    button = '<button class="download" type="button" hidden>Download JSON</button>'
    return f"<details><summary>Settings and provenance</summary><dl>{rows}</dl>{button}</details>"


def _data(result: Attribution | Comparison) -> str:
    """The numbers behind the page. ``<`` never appears in it, so that no text can end the script element."""
    content: dict[str, Any] = result.to_dict()
    if isinstance(result, Comparison):
        content["passage"] = result.first.passage.to_dict()
        content["attributions"] = {n: {k: v for k, v in d.items() if k != "passage"} for n, d in content["attributions"].items()}
    content["passage"].pop("pixels", None)  # a megabyte that the picture above already shows
    raw = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        raw = raw.replace(sign, f"\\u{ord(sign):04x}")
    return f'<script type="application/json">{raw}</script>'
