"""A receipt of steering as one page: before and after, dose and response, and what was broken."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from whence.core.receipt import Direction, Receipt
from whence.views import wording
from whence.views.document import document, static
from whence.views.markup import element, elements, fold, paragraphs, scrolling, table, text
from whence.views.receipt import (
    NAMES,
    beginning_of,
    dose_name,
    moved_by,
    sentences,
    shown,
    shown_doses,
    what,
    whose,
)

WIDTH, HEIGHT = 300, 190  # as wide as the narrowest column, so that names are no smaller there
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 14, 30
CLASSES: dict[Direction, str] = {"feature": "own", "random": "chance", "difference": "means"}


def receipt_page(r: Receipt) -> str:
    """A whole page for one receipt. It runs no script but that of the shell.

    Said as headings of the page.
    """
    first, *others = sentences(r)
    top = [
        element("h2", "Steering"),
        element("p", text(first).replace(" %", "&nbsp;%"), class_="answer"),
        *(element("p", text(line), class_="trust") for line in others),
    ]
    parts = [
        element("div", element("div", "".join(top)), class_="top"),
        _written(r),
        element("h3", "Dose and response, and what it breaks"),
        _legend(r),
        _figures(r),
        fold("As a table", scrolling("doses", _table(r))),
        fold("How it was measured", paragraphs(_notes(r))),
    ]
    content = "\n".join(parts)
    return document(
        f"whence: feature {r.feature} at {r.asked:.3g}x",
        element("main", f"\n{content}\n", class_="whence receipt"),
        styles=[static("report.css"), static("receipt.css")],
        scripts=False,
    )


def _written(r: Receipt) -> str:
    """Said above what was written, or what was said of the prompt."""
    rows = []
    for name, dose in shown_doses(r):
        if dose.written is not None:
            # on one line: a model that breaks writes line breaks alone
            written = text(dose.written.replace("\n", "⏎"), keep="\t")
            new = element("span", written, class_="new")
            told = element(
                "div", text(beginning_of(r), keep="\n\t") + new, class_="text", dir="auto"
            )
        else:
            told = _chances(dose.probabilities)
        chosen = "chosen" if dose is r.steered else None
        rows.append(element("dt", text(name), class_=chosen) + element("dd", told, class_=chosen))
    title = "What it writes" if r.meaning == "promoted" else f"What it says of “{r.prompt}”"
    return element("h3", text(title)) + element("dl", "".join(rows), class_="texts-of-doses")


def _chances(probabilities: Mapping[str, float]) -> str:
    rows = []
    for name, chance in probabilities.items():
        bar = f'<i style="width:{100 * chance:.1f}%"></i>'
        rows.append(element("dt", text(wording.label(name))))
        rows.append(element("dd", element("div", bar, class_="bar")))
        rows.append(element("dd", text(wording.percent(chance))))
    return element("dl", "".join(rows), class_="bars")


# ---------------------------------------------------------------------- figures


def _legend(r: Receipt) -> str:
    """Said of random directions where some were tried."""
    parts = []
    for direction, name in NAMES.items():
        if r.of(direction):
            key = element("span", class_=f"line-key {CLASSES[direction]}")
            parts.append(key + text(name))
    if r.of("random"):
        parts[-1 if not r.of("difference") else -2] += " (thin: each of them)"
    return element("p", elements("span", parts), class_="legend")


def _figures(r: Receipt) -> str:
    """Said as titles of the figures of what was measured."""
    panels: list[tuple[str, str, float, Callable[[float], str]]] = [
        ("response", what(r), r.plain.response, wording.percent)
    ]
    if r.plain.perplexity is not None:
        panels.append(("perplexity", f"perplexity of {whose(r)}", r.plain.perplexity, shown))
    unit = "token" if r.meaning == "promoted" else "text"
    panels.append(("divergence", f"divergence on {whose(r)}, nats a {unit}", 0.0, shown))
    if all(dose.others is not None for dose in r.doses):
        panels.append(("others", "how far other features move", 0.0, moved_by))
    figures = [_figure(r, *panel) for panel in panels]
    return element("div", "".join(figures), class_="doses")


def _figure(r: Receipt, name: str, title: str, plain: float, write: Callable[[float], str]) -> str:
    """One number against the dose, for all directions; a dashed line is the model as it is."""
    values = [getattr(dose, name) for dose in r.doses]
    low, high = min([plain, *values]), max([plain, *values])
    logarithmic = name == "perplexity" and low > 0
    across = _scale(0.0, max(r.multiples), LEFT, WIDTH - RIGHT)
    up = _scale(low, high, HEIGHT - BOTTOM, TOP, logarithmic)
    parts = [
        f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{HEIGHT - BOTTOM}" '
        f'y2="{HEIGHT - BOTTOM}"/>',
        f'<line class="plain" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(plain):.1f}" '
        f'y2="{up(plain):.1f}"/>',
        f'<line class="asked" x1="{across(r.asked):.1f}" x2="{across(r.asked):.1f}" y1="{TOP}" '
        f'y2="{HEIGHT - BOTTOM}"/>',
        _label(LEFT - 6, HEIGHT - BOTTOM, write(low), "end"),
        _label(LEFT - 6, TOP + 6, write(high), "end"),
    ]
    last = -math.inf
    for multiple in r.multiples:
        # names that would touch are left out
        if across(multiple) - last > 36:
            last = across(multiple)
            parts.append(_label(last, HEIGHT - BOTTOM + 17, f"{multiple:.3g}x", "middle"))
    for number in sorted({dose.number for dose in r.of("random")}):
        single = [(d.multiple, getattr(d, name)) for d in r.of("random") if d.number == number]
        parts.append(_path(single, across, up, "chance thin"))
    for direction in ("random", "difference", "feature"):
        points = []
        for multiple in r.multiples:
            value = r.mean(direction, multiple, name)
            if value is not None:
                points.append((multiple, value))
        if points:
            parts.append(_path(points, across, up, CLASSES[direction]))
        if direction == "feature":
            parts += [
                f'<circle class="own" cx="{across(x):.1f}" cy="{up(y):.1f}" r="3.2"/>'
                for x, y in points
            ]
    drawing = (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{text(title)} by dose">'
        f"{''.join(parts)}</svg>"
    )
    return element("figure", element("figcaption", text(title)) + drawing)


def _scale(
    low: float, high: float, first: float | int, last: float | int, logarithmic: bool = False
) -> Callable[[float], float]:
    """From a number to its place."""
    if logarithmic:
        low, high = math.log(low), math.log(high)
    width = high - low or 1.0

    def place(value: float) -> float:
        at = math.log(value) if logarithmic else value
        return first + (at - low) / width * (last - first)

    return place


def _path(
    points: Sequence[tuple[float, float]],
    across: Callable[[float], float],
    up: Callable[[float], float],
    class_: str,
) -> str:
    steps = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)
    return f'<polyline class="{class_}" points="{steps}"/>'


def _label(x: float | int, y: float | int, content: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text(content)}</text>'


# ---------------------------------------------------------------------- numbers


def _table(r: Receipt) -> str:
    """Said as heads of the table of all doses."""
    names = [
        "dose",
        "response",
        "divergence",
        "other features",
        "perplexity",
        "in the text written",
    ]
    head = "".join(
        element("th", name, scope="col", class_="left" if name == "dose" else None)
        for name in names
    )
    rows = []
    for name, dose in [("before", r.plain), *((dose_name(d), d) for d in r.doses)]:
        cells = [
            element("th", text(name), scope="row", class_="left"),
            element("td", wording.percent(dose.response)),
            element("td", f"{dose.divergence:.3g}"),
            element("td", shown(dose.others, moved_by)),
            element("td", shown(dose.perplexity)),
            element("td", shown(dose.activity, wording.percent)),
        ]
        rows.append(element("tr", "".join(cells)))
    return table(element("tr", head), rows, class_="costs")


def _notes(r: Receipt) -> list[str]:
    """Said in the notes; of random directions and a difference of means where they were tried."""
    lines = [
        f"At every token the state after block {r.layer} is moved along the feature's direction "
        "until the feature has the wanted activation; what the autoencoder does not reconstruct "
        f"stays as it is. The largest activation seen is {r.peak:.3g}.",
    ]
    beside = []
    if r.of("random"):
        beside.append("random directions")
    if r.of("difference"):
        fires = "states where the feature fires less those where it does not"
        beside.append(f"the difference of means ({fires})")
    if beside:
        others = " and ".join(beside)
        move = "move" if r.of("random") else "moves"
        lines.append(f"{others[0].upper()}{others[1:]} {move} the state as far at every token.")
    if r.meaning == "promoted":
        response = (
            f"The response is the probability of {r.about} together, on average over all places of "
            f"{whose(r)}. These tokens were read from the weights of the feature's own "
            "direction"
        )
        expected = ", so random directions have to be expected to raise them less"
        lines.append(f"{response}{expected if r.of('random') else ''}.")
    return [*lines, *r.notes, f"In all {wording.cost(r.cost)}."]
