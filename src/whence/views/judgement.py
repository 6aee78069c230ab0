"""What can be said of each method in a report: a table of verdicts, costs and errors, and a card with its curves and its bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from whence.core.attribution import Attribution
from whence.core.comparison import Comparison
from whence.views import verdicts, wording
from whence.views.curves import curves, has_curves, limits
from whence.views.markup import kind, paragraphs, scrolling, text

MOST_BARS = 5  # in a card
LEGEND = (
    '<p class="legend"><span><i class="key deletion"></i>units taken out, the first of the ranking first</span>'
    '<span><i class="key insertion"></i>units put back, the first of the ranking first</span>'
    '<span><i class="key band"></i>95 % of the random rankings, and their mean</span></p>'
)


def badge(a: Attribution, short: bool = False, mark: bool = False) -> str:
    """The verdict as a mark with its words, with ``short`` ones, or the ``mark`` with the words behind it; nothing without evidence."""
    found = verdicts.overall(a)
    if found is None:
        return ""
    words = text(found.verdict or "no verdict")
    if mark:
        return f'<span class="badge {found.kind}" title="{words}" aria-label="{words}" role="img">{found.mark}</span>'
    words = words.removesuffix(" from random").removesuffix(" than random") if short else words
    return f'<span class="badge {found.kind}">{found.mark} {words}</span>'


def overview(every: Sequence[Attribution], result: Attribution | Comparison) -> str:
    """One row for each method, the best evidence first: strongest units, evidence, cost, error."""
    removals, saved = verdicts.removal_names(every), any(a.cost.saved for a in every)
    numbers = {
        "fwd": "forward passes",
        **({"saved": "passes from memory"} if saved else {}),
        "bwd": "backward passes",
        "ms": "milliseconds",
        "error": "",
    }
    heads = '<th scope="col" class="left">method</th><th scope="col" class="left strongest"><span class="wide">strongest units</span></th>'
    heads += '<th scope="col" class="left">evidence</th>'
    heads += "".join(f'<th scope="col" class="wide">{text(name)}</th>' for name in removals)
    heads += "".join(
        f'<th scope="col"><abbr title="{whole}">{name}</abbr></th>'
        if whole
        else f'<th scope="col">{name}</th>'
        for name, whole in numbers.items()
    )
    rows = "".join(_row(a, removals, saved) for a in verdicts.by_evidence(every))
    table = f'<table class="costs"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'
    several = isinstance(result, Comparison)
    title = "Overview" if several else "Evidence, cost and error"
    return f"<h3>{title}</h3>\n{scrolling('evidence, cost and error of each method', table, whole=True)}{paragraphs(_notes(every, result))}"


def _row(a: Attribution, removals: Sequence[str], saved: bool) -> str:
    top = ", ".join(f"<bdi>{text(n)}</bdi>" for n, score in a.top(3) if score) or "–"
    note = (
        a.error.note if a.error and not wording.anchor(a) else ""
    )  # an anchor is told beside its text
    of = {v.removal: v for v in verdicts.by_removal(a)}
    cells = [
        f"{a.cost.forwards:,}{'*' if a.cost.shared else ''}",
        *([f"{a.cost.saved:,}" if a.cost.saved else "–"] if saved else []),
    ]
    cells += [
        f"{a.cost.backwards:,}",
        wording.milliseconds(a.cost.seconds),
        escape(wording.error(a)).replace(", ", ",<br>") or "–",
    ]
    return (
        f'<tr{" class=noted" if note else ""}><th scope="row" class="left">{text(a.method)}</th>'
        f'<td class="left strongest"><span class="wide">{top}</span></td>'
        f'<td class="left">{badge(a, short=True) or "<span class=soft>not computed</span>"}</td>'
        + "".join(f'<td class="wide">{_share(of.get(name))}</td>' for name in removals)
        + "".join(f"<td>{cell}</td>" for cell in cells)
        + "</tr>"
        + (
            f'<tr class="note"><td class="left" colspan="{3 + len(removals) + len(cells)}"><span>{text(note)}</span></td></tr>'
            if note
            else ""
        )
    )


def _share(v: verdicts.Verdict | None) -> str:
    if v is None or v.beaten is None:
        return "–"
    p = (
        f' <span class="soft">{escape(wording.p_value(v.p).replace(" = ", " "))}</span>'
        if v.p is not None
        else ""
    )
    return f'<span title="{text(v.sentence())}">{v.mark} {wording.share(v.beaten)}{p}</span>'


def _notes(every: Sequence[Attribution], result: Attribution | Comparison) -> list[str]:
    notes, removals, n = [], verdicts.removal_names(every), verdicts.rankings(every)
    if removals:
        random = f"{n} random rankings" if n else "random rankings"
        notes.append(
            f"Evidence: the share of {random} of the same text that this ranking beats (50 % is chance), with the p-value, under each "
            f"way to remove units ({', '.join(removals)}). {verdicts.CAUTION}"
        )
    if isinstance(result, Comparison):
        shared = (
            "* one forward (and backward) is the trace that all methods share. "
            if any(a.cost.shared for a in every)
            else ""
        )
        notes.append(f"{shared}In all {wording.cost(result.cost)}.")
        notes += [f"{name} left out: {why}" for name, why in result.skipped.items()]
    return notes


def cards(every: Sequence[Attribution]) -> str:
    """A card for each method that has evidence or error bars, best evidence first: its words, its strongest units, its curves."""
    shown = [
        a
        for a in verdicts.by_evidence(every)
        if a.evidence is not None or wording.spread(a) or wording.detail(a)
    ]
    if not shown:
        return ""
    scales = _scales(every)
    drawn = LEGEND if scales else ""
    bars = MOST_BARS if len(every) > 1 else 0
    return f'{drawn}<div class="cards">{"".join(_card(a, scales, bars) for a in shown)}</div>'


def _scales(every: Sequence[Attribution]) -> dict[tuple[str, str], tuple[float, float]]:
    """One scale for all pictures of a removal that answer the same question."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for a in every:
        for name, found in verdicts.removals(a).items():
            if has_curves(found):
                groups.setdefault((_question(a), name), []).append(found)
    return {key: limits(group) for key, group in groups.items()}


def _question(a: Attribution) -> str:
    return str((a.evidence or {}).get("question", ""))


def _card(a: Attribution, scales: Mapping[tuple[str, str], tuple[float, float]], bars: int) -> str:
    pictures = []
    for v in verdicts.by_removal(a):
        found, scale = verdicts.removals(a)[v.removal], scales.get((_question(a), v.removal))
        drawn = (
            curves(found, scale, f"{a.method}, removal {v.removal}: {v.sentence()}")
            if scale and has_curves(found)
            else ""
        )
        pictures.append(
            f"<figure>{drawn}<figcaption><strong>{text(v.removal)}</strong> {v.mark} {text(v.sentence())}</figcaption></figure>"
        )
    question = verdicts.QUESTIONS.get(_question(a), "") if pictures else ""
    own = verdicts.own(a)
    lines = [
        question,
        f"Its own evidence: {own}" if own else "",
        verdicts.note(a),
        wording.detail(a),
    ]
    scores = score_bars(a, a.ranking()[:bars]) if bars else ""
    head = f"<h4>{text(a.method)} {badge(a)}</h4>{paragraphs([line for line in lines if line])}"
    return f'<article class="card">{head}{scores}<div class="panels">{"".join(pictures)}</div></article>'


def score_bars(a: Attribution, units: Sequence[int] | np.ndarray) -> str:
    """A bar for each of these units, whiskers for one standard error where the method gives them."""
    shown, spread = wording.score_format(a.scores, a.signed), wording.spread(a)
    errors = (
        np.zeros_like(a.scores)
        if a.error is None or a.error.standard_error is None
        else np.nan_to_num(a.error.standard_error)
    )
    reach = float((np.abs(a.scores) + errors).max(initial=0.0)) or 1.0
    zero, unit = (
        (50.0, 50.0 / reach) if a.signed else (0.0, 100.0 / reach)
    )  # in per cent of the track
    rows = []
    for i in units:
        s, e = float(a.scores[i]), float(errors[i])
        left, right = sorted((zero, zero + unit * s))
        bar = f'<i class="{kind(s, a.signed)}" style="left:{left:.2f}%;width:{right - left:.2f}%"></i>'
        if spread is not None:
            low, high = max(zero + unit * (s - e), 0.0), zero + unit * (s + e)
            bar += f'<span style="left:{low:.2f}%;width:{high - low:.2f}%"></span>'
        number = shown(s) + (
            f' <span class="soft">{spread[i]}</span>' if spread is not None else ""
        )
        rows.append(
            f'<tr><th scope="row"><bdi>{text(a.names[i])}</bdi></th><td>{number}</td>'
            f'<td class="track{" both" if a.signed else ""}" aria-hidden="true"><div>{bar}</div></td></tr>'
        )
    return f'<table class="scores"><tbody>{"".join(rows)}</tbody></table>'
