"""Results as self-contained HTML: a page, or a fragment for a notebook.

Nothing is loaded from elsewhere, and every text is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from whence.core.attribution import Attribution
from whence.core.comparison import Comparison
from whence.views import wording
from whence.views.agreeing import agreement_section
from whence.views.document import (
    GROUND,
    document,
    embedded_json,
    fresh_id,
    script,
    static,
    style,
    title_of,
)
from whence.views.judgement import badge_mark, cards, overview, score_bars
from whence.views.markup import (
    element,
    elements,
    fold,
    kind,
    named,
    scrolling,
    soft,
    table,
    text,
)
from whence.views.palette import levels
from whence.views.pictures import patches, pictured, pixels_figure, pixels_of
from whence.views.verdicts import by_evidence

PRINTED = "@media print{body{background:#fff}}"
SIGNED_RAMP = (
    *(("n", 1.0), ("n", 0.66), ("n", 0.33)),
    ("p", 0.0),
    *(("p", 0.33), ("p", 0.66), ("p", 1.0)),
)
UNSIGNED_RAMP = (("m", 0.0), ("m", 0.33), ("m", 0.66), ("m", 1.0))


# ---------------------------------------------------------------------- pages and fragments


def attribution_page(a: Attribution) -> str:
    """A whole page for one attribution."""
    return page([a])


def comparison_page(c: Comparison) -> str:
    """A whole page for one comparison."""
    return page([c])


def attribution_fragment(a: Attribution) -> str:
    """What a notebook shows for one attribution."""
    return style(static("report.css")) + _body(a, fresh_id())


def comparison_fragment(c: Comparison) -> str:
    """What a notebook shows for one comparison."""
    return style(static("report.css")) + _body(c, fresh_id())


def page(results: Sequence[Attribution | Comparison]) -> str:
    """One document with all results, each in its own section."""
    first = _attributions(results[0])[0]
    words = "" if first.passage is None else first.passage.text
    title = title_of(words, first.provenance.model)
    bodies = "\n".join(_body(result, f"whence-{i}") for i, result in enumerate(results))
    return document(
        f"whence: {title}",
        element("main", f"\n{bodies}\n", class_="whence-many"),
        styles=[static("report.css"), GROUND + PRINTED],
    )


def _attributions(result: Attribution | Comparison) -> list[Attribution]:
    if isinstance(result, Attribution):
        return [result]
    return list(result.attributions.values())


def _body(result: Attribution | Comparison, name: str) -> str:
    parts = _compared(result) if isinstance(result, Comparison) else _explained(result)
    parts += [
        _details(_attributions(result)),
        embedded_json(_data(result)),
        script(static("report.js").replace("ROOT", name)),
    ]
    content = "\n".join(part for part in parts if part)
    return element("section", f"\n{content}\n", class_="whence", id=name)


def _explained(a: Attribution) -> list[str]:
    """One method: the coloured text, its bars, its evidence."""
    bars = scrolling("scores of each unit", score_bars(a, range(len(a.scores))))
    return [
        _header(a),
        *_seen([a]),
        f"<h3>Scores</h3>\n{bars}",
        overview([a], a),
        cards([a]),
    ]


def _compared(c: Comparison) -> list[str]:
    """Several: the overview first, then the text as each sees it, agreement and conflicts.

    The rest is folded.
    """
    every = _attributions(c)
    ordered = by_evidence(every)
    parts = [
        _header(c.first),
        overview(every, c),
        *_seen(ordered),
        agreement_section(c.agreement()),
        "<h3>Details</h3>",
    ]
    judged = cards(every)
    if judged:
        parts.append(fold("Evidence: curves and strongest units of each method", judged))
    parts.append(fold("Scores of every unit by every method", _matrix(ordered)))
    return parts


# ---------------------------------------------------------------------- what the model said


def _header(a: Attribution) -> str:
    label = next(iter(a.prediction), None)
    headline = "Explained" if label is None else f"Predicted: {text(wording.label(label))}"
    target = f"Explained: {element('strong', text(wording.value(a)))}"
    about = [
        element("h2", headline),
        element("p", target, class_="target"),
        soft(text(wording.model_line(a))),
    ]
    cut = wording.dropped(a)
    if cut:
        about.append(soft(f"{text(cut)}."))
    sides = element("div", "".join(about)) + _prediction(a)
    return element("div", sides, class_="top")


def _prediction(a: Attribution) -> str:
    """A bar for each of the leading labels."""
    rows = []
    for i, (name, probability) in enumerate(a.prediction.items()):
        first = "first" if i == 0 else None
        bar = element("i", style=f"width:{min(max(probability, 0.0), 1.0):.1%}")
        rows += [
            element("dt", text(wording.label(name)), class_=first),
            element("dd", bar, class_="bar first" if i == 0 else "bar"),
            element("dd", f"{probability:.1%}", class_=first),
        ]
    return element("dl", "".join(rows), class_="bars", aria_label="prediction")


# ---------------------------------------------------------------------- what each method sees


def _seen(every: Sequence[Attribution]) -> list[str]:
    """The text or the picture as each method sees it."""
    first = every[0]
    parts = []
    if pixels_of(first) is not None:
        parts.append(_pictures(every))
    if not pictured(first).all():
        parts.append(_strips(every))
    parts.append(_legend(every))
    return parts


def _pictures(every: Sequence[Attribution]) -> str:
    pixels = pixels_of(every[0])
    assert pixels is not None
    figures = [pixels_figure(pixels)]
    figures += [patches(a, pixels, partial(_unit, a)) for a in every]
    return "<h3>The image, by method</h3>\n" + element("div", "".join(figures), class_="pictures")


def _strips(every: Sequence[Attribution]) -> str:
    rows = []
    for a in every:
        name = element("dt", f"{text(a.method)} {badge_mark(a)}")
        rows.append(name + element("dd", _coloured(a)))
    title = element("h3", f"The {wording.explained_things(every[0])}, by method")
    return f"{title}\n" + element("dl", "\n" + "\n".join(rows) + "\n", class_="strips")


def _coloured(a: Attribution) -> str:
    """The text; white space in front of a unit stays outside its colour."""
    level = levels(a)
    anchor = set(wording.anchored(a))
    tips = _tips(a, anchor)
    shown_above = pictured(a) & (pixels_of(a) is not None)  # over the image already

    parts, last = [], 0
    for i, unit in enumerate(wording.running_texts(a)):
        if shown_above[i]:
            continue
        if a.units.parts[i] != last:
            parts.append(element("span", "‖", class_="between"))
            last = a.units.parts[i]
        body = unit.lstrip()
        parts.append(text(unit[: len(unit) - len(body)], keep="\n\t"))
        if body:
            content = text(body, keep="\n\t")
            parts.append(_unit(a, i, content, tips[i], float(level[i]), i == 0, i in anchor))

    things = wording.explained_things(a)
    them = "it" if things == "text" else "them"
    name = f"the {things} as {a.method} sees {them}"
    words = element("div", "".join(parts), class_="text", dir="auto", role="group", aria_label=name)
    rule = wording.anchor(a)
    if not rule:
        return words
    return words + element("p", text(rule), class_="rule")


def _tips(a: Attribution, anchor: set[int]) -> list[str]:
    """What is shown when one points at a unit: its name, its score, its standard error."""
    spread = wording.spread(a)
    tips = []
    for i, name in enumerate(a.units.names):
        tip = f"{wording.visible(name)}: {wording.exact(float(a.scores[i]), a.signed)}"
        if spread is not None:
            tip += f" {spread[i]}"
        if i in anchor:
            tip += ", in the anchor"
        tips.append(tip)
    return tips


def _unit(
    a: Attribution,
    i: int,
    content: str,
    tip: str,
    level: float,
    reachable: bool,
    anchored: bool = False,
) -> str:
    """One coloured unit; ``reachable`` is the one at which the keyboard comes in."""
    classes = ["u", kind(level, a.signed)]
    if anchored:
        classes.append("anchor")
    return element(
        "span",
        content,
        class_=" ".join(classes),
        style=f"--v:{abs(level):.3f}",
        data_i=i,
        data_tip=tip,
        tabindex=0 if reachable else -1,
        aria_label=tip,
    )


def _legend(every: Sequence[Attribution]) -> str:
    parts = []
    if any(a.signed for a in every):
        parts.append(f"against the target{_ramp(SIGNED_RAMP)}for it")
    if any(not a.signed for a in every):
        parts.append(f"unimportant{_ramp(UNSIGNED_RAMP)}important (a method without signs)")
    parts.append("Each method is scaled by its own largest score; point at a unit for the number.")
    return element("p", elements("span", parts), class_="legend")


def _ramp(cells: Sequence[tuple[str, float]]) -> str:
    colours = [element("i", class_=side, style=f"--v:{level}") for side, level in cells]
    return element("span", "".join(colours), class_="ramp", aria_hidden="true")


# ---------------------------------------------------------------------- the details


def _matrix(every: Sequence[Attribution]) -> str:
    """Every unit by every method."""
    heads = [text(every[0].units.kind)]
    columns = []
    for a in every:
        heads.append(text(a.method).replace("-", "-<wbr>"))
        columns.append(_column(a))

    rows = []
    for i, name in enumerate(every[0].units.names):
        cells = [element("th", named(name), scope="row")]
        cells += [column[i] for column in columns]
        rows.append(element("tr", "".join(cells)))

    head = element("tr", elements("th", heads, scope="col"))
    matrix = table(head, ["\n", "\n".join(rows), "\n"], class_="matrix")
    return scrolling("scores of each unit by each method", matrix)


def _column(a: Attribution) -> list[str]:
    """The scores of one method as coloured cells."""
    shown = wording.score_format(a.scores, a.signed)
    cells = []
    for score, level in zip(a.scores.tolist(), levels(a).tolist(), strict=True):
        tint = f"--v:{abs(level):.3f}"
        cells.append(element("td", shown(score), class_=kind(level, a.signed), style=tint))
    return cells


def _details(every: Sequence[Attribution]) -> str:
    first = every[0]
    p = first.provenance
    attention = ", ".join(dict.fromkeys(a.provenance.attention for a in every))
    revision = f", revision {p.revision}" if p.revision else ""
    facts: list[tuple[str, object]] = [(a.method, _settings(a)) for a in every]
    facts += [
        ("seed", first.seed),
        ("units", f"{len(first.scores)}, by {first.units.kind}"),
        ("model", f"{p.model} ({p.architecture}), weights {p.fingerprint}{revision}"),
        ("computed in", f"{p.dtype} on {p.device}; attention: {attention}"),
        ("versions", ", ".join(f"{name} {version}" for name, version in p.versions.items())),
    ]
    rows = [element("dt", text(name)) + element("dd", text(fact)) for name, fact in facts]
    parts = [
        element("summary", "Settings and provenance"),
        element("dl", "".join(rows)),
        element("button", "Download JSON", class_="download", type="button", hidden=True),
    ]
    return element("details", "".join(parts))


def _settings(a: Attribution) -> str:
    return f"version {a.version}; {wording.settings(a.settings)}"


def _data(result: Attribution | Comparison) -> dict[str, Any]:
    """The numbers behind the page, without the pixels of a picture.

    These would be a megabyte, and the picture above already shows them.
    """
    content: dict[str, Any] = result.to_dict()
    content.get("passage", {}).pop("pixels", None)
    return content
