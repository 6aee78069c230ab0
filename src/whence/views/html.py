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
from whence.views.agreeing import agreement_section
from whence.views.judgement import badge, cards, overview, score_bars
from whence.views.markup import fold, kind, scrolling, text
from whence.views.palette import levels
from whence.views.pictures import patches, pixels_figure
from whence.views.verdicts import by_evidence

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
    words = (
        " ".join(wording.visible(first.passage.text, keep="\n\t").split()) or first.provenance.model
    )
    title = escape(words[:LONGEST_TITLE] + ("…" if len(words) > LONGEST_TITLE else ""))
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


def _body(result: Attribution | Comparison, name: str) -> str:
    parts = [
        *(_compared(result) if isinstance(result, Comparison) else _explained(result)),
        _details(_attributions(result)),
        _data(result),
    ]
    parts.append(f"<script>{_static('report.js').replace('ROOT', name)}</script>")
    return f'<section class="whence" id="{name}">\n' + "\n".join(parts) + "\n</section>"


def _explained(a: Attribution) -> list[str]:
    """One method: the coloured text, its bars, its evidence."""
    judged = cards([a])
    bars = (
        f"<h3>Scores</h3>\n{scrolling('scores of each unit', score_bars(a, range(len(a.scores))))}"
    )
    return [_header(a), *_seen([a]), bars, overview([a], a), *([judged] if judged else [])]


def _compared(c: Comparison) -> list[str]:
    """Several: the overview first, then the text as each sees it, agreement and conflicts; the rest is folded."""
    every = list(c.attributions.values())
    ordered = by_evidence(every)
    judged = cards(every)
    folded = [fold("Evidence: curves and strongest units of each method", judged)] if judged else []
    folded.append(fold("Scores of every unit by every method", _matrix(ordered)))
    return [
        _header(c.first),
        overview(every, c),
        *_seen(ordered),
        agreement_section(c.agreement()),
        "<h3>Details</h3>",
        *folded,
    ]


def _seen(every: Sequence[Attribution]) -> list[str]:
    """The text or the picture as each method sees it."""
    parts = [_pictures(every)] if every[0].passage.pixels is not None else []
    return [
        *parts,
        *([_strips(every)] if not every[0].passage.pictured.all() else []),
        _legend(every),
    ]


def _header(a: Attribution) -> str:
    bars = []
    for i, (name, p) in enumerate(a.prediction.items()):
        first = ' class="first"' if i == 0 else ""
        width = f"{min(max(p, 0.0), 1.0):.1%}"
        bars.append(
            f'<dt{first}>{text(wording.label(name))}</dt><dd class="bar{" first" if i == 0 else ""}"><i style="width:{width}"></i></dd>'
            f"<dd{first}>{p:.1%}</dd>"
        )
    label = next(iter(a.prediction), None)
    headline = "Explained" if label is None else f"Predicted: {text(wording.label(label))}"
    note = f'<p class="soft">{escape(wording.dropped(a))}.</p>' if a.passage.dropped else ""
    return (
        f'<div class="top"><div><h2>{headline}</h2><p class="target">Explained: <strong>{escape(wording.value(a))}</strong></p>'
        f'<p class="soft">{escape(wording.model_line(a))}</p>{note}</div>'
        f'<dl class="bars" aria-label="prediction">{"".join(bars)}</dl></div>'
    )


def _unit(
    i: int, content: str, tip: str, level: float, signed: bool, reachable: bool, also: str = ""
) -> str:
    place, classes = (
        "0" if reachable else "-1",
        " ".join(filter(None, ("u", kind(level, signed), also))),
    )
    return (
        f'<span class="{classes}" style="--v:{abs(level):.3f}" data-i="{i}" data-tip="{escape(tip)}" tabindex="{place}" '
        f'aria-label="{escape(tip)}">{content}</span>'
    )


def _coloured(a: Attribution) -> str:
    """The text; white space in front of a unit stays outside its colour."""
    out, part = [], 0
    spread, anchor = wording.spread(a), set(wording.anchored(a))
    for i, (unit, (here, _, _), level) in enumerate(
        zip(a.units, a.passage.unit_spans, levels(a), strict=True)
    ):
        if a.passage.pixels is not None and a.passage.pictured[i]:  # over the image already
            continue
        if here != part:
            out.append('<span class="between">‖</span>')
            part = here
        body = unit.lstrip()
        tip = f"{wording.visible(a.names[i])}: {wording.exact(float(a.scores[i]), a.signed)}"
        tip += (f" {spread[i]}" if spread else "") + (", in the anchor" if i in anchor else "")
        out.append(text(unit[: len(unit) - len(body)], keep="\n\t"))
        if body:
            out.append(
                _unit(
                    i,
                    text(body, keep="\n\t"),
                    tip,
                    float(level),
                    a.signed,
                    i == 0,
                    "anchor" if i in anchor else "",
                )
            )
    rule = wording.anchor(a)
    below = f'<p class="rule">{text(rule)}</p>' if rule else ""
    return f'<div class="text" dir="auto" role="group" aria-label="the text as {escape(a.method)} sees it">{"".join(out)}</div>{below}'


def _strips(every: Sequence[Attribution]) -> str:
    rows = "\n".join(
        f"<dt>{text(a.method)} {badge(a, mark=True)}</dt><dd>{_coloured(a)}</dd>" for a in every
    )
    return f'<h3>The text, by method</h3>\n<dl class="strips">\n{rows}\n</dl>'


def _pictures(every: Sequence[Attribution]) -> str:
    figures = [pixels_figure(every[0]), *(patches(a, _unit) for a in every)]
    return f'<h3>The image, by method</h3>\n<div class="pictures">{"".join(figures)}</div>'


def _legend(every: Sequence[Attribution]) -> str:
    def ramp(cells: Sequence[tuple[str, float]]) -> str:
        return f'<span class="ramp" aria-hidden="true">{"".join(f"""<i class="{k}" style="--v:{v}"></i>""" for k, v in cells)}</span>'

    parts = []
    if any(a.signed for a in every):
        cells = [
            *(("n", v) for v in (1.0, 0.66, 0.33)),
            ("p", 0.0),
            *(("p", v) for v in (0.33, 0.66, 1.0)),
        ]
        parts.append(f"<span>against the target{ramp(cells)}for it</span>")
    if any(not a.signed for a in every):
        parts.append(
            f"<span>unimportant{ramp([('m', v) for v in (0.0, 0.33, 0.66, 1.0)])}important (a method without signs)</span>"
        )
    parts.append(
        "<span>Each method is scaled by its own largest score; point at a unit for the number.</span>"
    )
    return f'<p class="legend">{"".join(parts)}</p>'


def _matrix(every: Sequence[Attribution]) -> str:
    heads = "".join(
        f'<th scope="col">{escape(a.method).replace("-", "-<wbr>")}</th>' for a in every
    )
    columns = [(a, levels(a), wording.score_format(a.scores, a.signed)) for a in every]
    rows = []
    for i, name in enumerate(every[0].names):
        cells = "".join(
            f'<td class="{kind(level[i], a.signed)}" style="--v:{abs(level[i]):.3f}">{shown(float(a.scores[i]))}</td>'
            for a, level, shown in columns
        )
        rows.append(f'<tr><th scope="row"><bdi>{text(name)}</bdi></th>{cells}</tr>')
    head = f'<thead><tr><th scope="col">{escape(every[0].passage.kind)}</th>{heads}</tr></thead>'
    body = "\n".join(rows)
    table = f'<table class="matrix">{head}\n<tbody>\n{body}\n</tbody></table>'
    return scrolling("scores of each unit by each method", table)


def _details(every: Sequence[Attribution]) -> str:
    first = every[0]
    p = first.provenance
    attention = ", ".join(dict.fromkeys(a.provenance.attention for a in every))
    pairs: list[tuple[str, object]] = [
        *((a.method, f"version {a.version}; {wording.settings(a.settings)}") for a in every),
        ("seed", first.seed),
        ("units", f"{len(first.scores)}, by {first.passage.kind}"),
        (
            "model",
            f"{p.model} ({p.architecture}), weights {p.fingerprint}"
            + (f", revision {p.revision}" if p.revision else ""),
        ),
        ("computed in", f"{p.dtype} on {p.device}; attention: {attention}"),
        ("versions", ", ".join(f"{k} {v}" for k, v in p.versions.items())),
    ]
    rows = "".join(f"<dt>{text(k)}</dt><dd>{text(v)}</dd>" for k, v in pairs)
    button = '<button class="download" type="button" hidden>Download JSON</button>'
    return f"<details><summary>Settings and provenance</summary><dl>{rows}</dl>{button}</details>"


def _data(result: Attribution | Comparison) -> str:
    """The numbers behind the page. ``<`` never appears in it, so that no text can end the script element."""
    content: dict[str, Any] = result.to_dict()
    if isinstance(result, Comparison):
        content["passage"] = result.first.passage.to_dict()
        content["attributions"] = {
            n: {k: v for k, v in d.items() if k != "passage"}
            for n, d in content["attributions"].items()
        }
    content["passage"].pop("pixels", None)  # a megabyte that the picture above already shows
    raw = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        raw = raw.replace(sign, f"\\u{ord(sign):04x}")
    return f'<script type="application/json">{raw}</script>'
