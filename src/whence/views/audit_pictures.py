"""Small SVG pictures of an audit: points, histograms, curves and a grid of heads. No scripts.

Colours come from style sheets (``static/drawing.css`` and those of the page), light and dark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from whence.core.audited import TOLERANCE
from whence.core.bootstrap import Mean
from whence.views.markup import element, text

WIDE, HIGH = 230, 150
LEFT, RIGHT, TOP, BOTTOM = 34, 10, 18, 32
FLOOR = HIGH - BOTTOM
BINS = 20


@dataclass(frozen=True)
class Picture:
    """A drawing of some size; ``label`` is read aloud in its place."""

    wide: int
    high: int
    label: str
    content: str

    def svg(self, **attributes: str | int) -> str:
        """As an element of a page, or inside another drawing, at x and y."""
        return element(
            "svg",
            self.content,
            viewBox=f"0 0 {self.wide} {self.high}",
            role="img",
            class_="drawing",
            aria_label=self.label,
            **attributes,
        )


# ---------------------------------------------------------------------- texts


def scatter(
    across: Sequence[float],
    up: Sequence[float],
    names: tuple[str, str],
    label: str,
    most: float = 1.0,
) -> Picture:
    """A point for each text; the axis across goes from 0 to 1, and the other to the most."""
    points = [
        f'<circle class="text" cx="{_x(x):.1f}" cy="{_y(y / most):.1f}" r="2.2"/>'
        for x, y in zip(across, up, strict=True)
    ]
    return _small([*_frame(names, ("0", "1"), f"{most:.3g}"), *points], label)


def histogram(values: Sequence[float], most: float, names: tuple[str, str], label: str) -> Picture:
    """How many texts lie in each of twenty equal parts from 0 to the most there is."""
    counts = _counts(values, 0.0, most)
    tallest = max(counts) or 1
    step = (WIDE - LEFT - RIGHT) / BINS
    bars = []
    for place, count in enumerate(counts):
        high = (FLOOR - TOP) * count / tallest
        bars.append(
            f'<rect class="bin" x="{LEFT + place * step:.1f}" y="{FLOOR - high:.1f}" '
            f'width="{step - 1:.1f}" height="{high:.1f}"/>'
        )
    return _small([*_frame(names, ("0", f"{most:.2f}"), str(tallest)), *bars], label)


def _counts(values: Sequence[float], low: float, high: float) -> list[int]:
    """How many values lie in each of the equal parts; the ends belong to the last ones."""
    counts = [0] * BINS
    for value in values:
        place = int(BINS * (value - low) / (high - low))
        counts[min(max(place, 0), BINS - 1)] += 1
    return counts


def _x(value: int | float) -> float:
    return LEFT + (WIDE - LEFT - RIGHT) * min(max(value, 0.0), 1.0)


def _y(value: int | float) -> float:
    return FLOOR - (FLOOR - TOP) * min(max(value, 0.0), 1.0)


def _frame(names: tuple[str, str], ends: tuple[str, str], top: str) -> list[str]:
    """Axes with their ends, and what they are."""
    low, high = ends
    middle = (LEFT + WIDE - RIGHT) / 2
    return [
        f'<path class="frame" d="M{LEFT} {TOP}V{FLOOR}H{WIDE - RIGHT}"/>',
        _word(LEFT, FLOOR + 12, "start", low),
        _word(WIDE - RIGHT, FLOOR + 12, "end", high),
        _word(middle, FLOOR + 26, "middle", names[0]),
        _word(LEFT - 4, TOP + 8, "end", top),
        _word(LEFT - 4, FLOOR, "end", "0"),
        _word(LEFT - 4, TOP - 6, "start", names[1]),
    ]


def _word(x: int | float, y: int | float, anchor: str, content: str, class_: str = "") -> str:
    kind = f' class="{class_}"' if class_ else ""
    return f'<text{kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text(content)}</text>'


def _small(parts: Sequence[str], label: str) -> Picture:
    return Picture(WIDE, HIGH, label, "".join(parts))


# ---------------------------------------------------------------------- distributions, row by row


@dataclass(frozen=True)
class Distribution:
    """A row: a value of each text, from −1 to 1, those of chance, and a few words."""

    name: str
    values: tuple[float, ...]
    of_chance: tuple[float, ...]
    said: str


NAMES_WIDE, PLOT_WIDE, SAID_WIDE = 112, 190, 92
ROW_HIGH, HEAD_HIGH, FOOT_HIGH = 34, 16, 28


def distributions(
    rows: Sequence[Distribution], axis: str, said: str, label: str, fewest: int = 0
) -> Picture:
    """A histogram for each row, on one axis from −1 to 1, and over it the outline of chance.

    ``said`` is what the words at the end of rows are. There is room for ``fewest`` rows, so that
    pictures beside each other have one size.
    """
    wide = NAMES_WIDE + PLOT_WIDE + SAID_WIDE
    floor = HEAD_HIGH + ROW_HIGH * max(len(rows), fewest)
    middle = NAMES_WIDE + PLOT_WIDE / 2
    parts = [
        f'<path class="zero" d="M{middle} {HEAD_HIGH}V{floor}"/>',
        _word(wide, HEAD_HIGH - 4, "end", said),
        _word(NAMES_WIDE, floor + 12, "middle", "−1"),
        _word(middle, floor + 12, "middle", "0"),
        _word(NAMES_WIDE + PLOT_WIDE, floor + 12, "middle", "1"),
        _word(middle, floor + 24, "middle", axis),
    ]
    for number, row in enumerate(rows):
        parts += _distribution(row, HEAD_HIGH + ROW_HIGH * (number + 1), wide)
    return Picture(wide, floor + FOOT_HIGH, label, "".join(parts))


def _distribution(row: Distribution, floor: int, wide: int) -> list[str]:
    counts, of_chance = _counts(row.values, -1.0, 1.0), _counts(row.of_chance, -1.0, 1.0)
    # shares, as chance may have been drawn on fewer texts
    shares = [count / max(len(row.values), 1) for count in counts]
    shares_of_chance = [count / max(len(row.of_chance), 1) for count in of_chance]
    tallest = max((*shares, *shares_of_chance)) or 1.0
    step, room = PLOT_WIDE / BINS, ROW_HIGH - 6

    parts = [
        _word(NAMES_WIDE - 6, floor - 4, "end", row.name, "name"),
        f'<path class="frame" d="M{NAMES_WIDE} {floor}h{PLOT_WIDE}"/>',
    ]
    for place, share in enumerate(shares):
        if share:
            high = room * share / tallest
            parts.append(
                f'<rect class="bin" x="{NAMES_WIDE + place * step + 0.5:.1f}" '
                f'y="{floor - high:.1f}" width="{step - 1:.1f}" height="{high:.1f}"/>'
            )
    if row.of_chance:
        steps = [f"M{NAMES_WIDE} {floor}"]
        for share in shares_of_chance:
            steps.append(f"V{floor - room * share / tallest:.1f}h{step:.1f}")
        parts.append(f'<path class="chance" d="{"".join(steps)}V{floor}"/>')
    if row.values:
        mean = sum(row.values) / len(row.values)
        at = NAMES_WIDE + PLOT_WIDE * (mean + 1) / 2
        parts.append(f'<path class="mean" d="M{at:.1f} {floor}v{-room}"/>')
    parts.append(_word(wide, floor - 4, "end", row.said))
    return parts


# ---------------------------------------------------------------------- curves with bands


@dataclass(frozen=True)
class Line:
    """A curve with its intervals. ``sure`` are the points that differ from the control for sure."""

    name: str
    means: tuple[Mean, ...]
    kind: str  # the class of its colour
    sure: tuple[bool, ...] = ()


CURVE_WIDE, CURVE_HIGH = 360, 220
CURVE_LEFT, CURVE_TOP = 40, 40
CURVE_FLOOR = CURVE_HIGH - BOTTOM
KEY_WIDE = 118


def curves(
    steps: Sequence[int],
    lines: Sequence[Line],
    faint: Sequence[Sequence[Mean]],
    between: tuple[float, float],
    names: tuple[str, str],
    label: str,
) -> Picture:
    """Lines in the bands of their intervals; ``faint`` ones have no band.

    ``between`` are the values at the lower and at the upper end of the picture.
    """
    scale = _Scale(steps, *between)
    parts = _curve_frame(scale, names)
    for means in faint:
        parts.append(_polyline(scale, means, "faint"))
    parts += [_band(scale, line) for line in lines]
    for number, line in enumerate(lines):
        parts.append(_polyline(scale, line.means, f"line {line.kind}"))
        parts += _points(scale, line)
        parts += _key(line, 6 + number * KEY_WIDE)
    return Picture(CURVE_WIDE, CURVE_HIGH, label, "".join(parts))


@dataclass(frozen=True)
class _Scale:
    """Where a step and a value lie."""

    steps: Sequence[int]
    low: float
    high: float

    def x(self, step: int | float) -> float:
        wide = CURVE_WIDE - CURVE_LEFT - RIGHT
        return CURVE_LEFT + wide * step / (self.steps[-1] or 1)

    def y(self, value: int | float) -> float:
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return CURVE_FLOOR - (CURVE_FLOOR - CURVE_TOP) * min(max(share, 0.0), 1.0)

    def point(self, step: int | float, value: int | float) -> str:
        return f"{self.x(step):.1f},{self.y(value):.1f}"


def _curve_frame(scale: _Scale, names: tuple[str, str]) -> list[str]:
    across, up = names
    right = CURVE_WIDE - RIGHT
    parts = [
        f'<path class="frame" d="M{CURVE_LEFT} {CURVE_TOP}V{CURVE_FLOOR}H{right}"/>',
        _word(CURVE_LEFT, CURVE_FLOOR + 12, "middle", "0"),
        _word(right, CURVE_FLOOR + 12, "end", str(scale.steps[-1])),
        _word((CURVE_LEFT + right) / 2, CURVE_FLOOR + 24, "middle", across),
        _word(CURVE_LEFT - 4, CURVE_TOP + 6, "end", _short(scale.high)),
        _word(CURVE_LEFT - 4, CURVE_FLOOR, "end", _short(scale.low)),
        _word(4, CURVE_TOP - 12, "start", up),
    ]
    if scale.low < 0 < scale.high:
        zero = scale.y(0.0)
        parts.append(f'<path class="zero" d="M{CURVE_LEFT} {zero:.1f}H{right}"/>')
        parts.append(_word(CURVE_LEFT - 4, zero + 3, "end", "0"))
    return parts


def _short(value: int | float) -> str:
    return f"{value:.2g}".replace("-", "−")


def _band(scale: _Scale, line: Line) -> str:
    """The intervals as one surface; empty where there are too few texts."""
    upper, lower = [], []
    for step, mean in zip(scale.steps, line.means, strict=True):
        if mean.interval is None:
            return ""
        low, high = mean.interval
        upper.append(scale.point(step, high))
        lower.append(scale.point(step, low))
    around = " ".join([*upper, *reversed(lower)])
    return f'<polygon class="band {line.kind}" points="{around}"/>'


def _polyline(scale: _Scale, means: Sequence[Mean], kind: str) -> str:
    pairs = zip(scale.steps, means, strict=True)
    points = " ".join(scale.point(step, mean.mean) for step, mean in pairs)
    return f'<polyline class="{kind}" points="{points}"/>'


def _points(scale: _Scale, line: Line) -> list[str]:
    """Full where the line differs from the control for sure."""
    points = []
    for step, mean, is_sure in zip(scale.steps, line.means, line.sure, strict=False):
        kind = "sure" if is_sure else "unsure"
        at = f'cx="{scale.x(step):.1f}" cy="{scale.y(mean.mean):.1f}"'
        points.append(f'<circle class="{kind} {line.kind}" {at} r="2.6"/>')
    return points


def _key(line: Line, left: int) -> list[str]:
    """What a line is, above the picture."""
    return [
        f'<path class="line {line.kind}" d="M{left} 9h16"/>',
        _word(left + 20, 12, "start", line.name),
    ]


# ---------------------------------------------------------------------- heads


@dataclass(frozen=True)
class Cell:
    """A head: a value from −1 to 1 that is its colour, its marks, and what is said of it."""

    level: float
    marks: frozenset[str]
    said: str


CELL_WIDE, CELL_HIGH, LAYER_WIDE = 26, 20, 52
# how each mark is drawn, around the middle of a cell, and what it says
# Said below the map of heads.
MARKS = {
    "helps": ("M-4 0H4M0 -4V4", f"it helps: the loss rises by more than {TOLERANCE:g} without it"),
    "hurts": (
        "M-4 0H4",
        f"it hurts: the loss falls by more than {TOLERANCE:g}, on held-out texts too",
    ),
    "can go": (
        "M-7 0a7 7 0 1 0 14 0a7 7 0 1 0 -14 0",
        f"it can go alone: the loss rises by less than {TOLERANCE:g}",
    ),
}


def heads(cells: Mapping[tuple[int, int], Cell], most: str, label: str) -> Picture:
    """A row for each layer, a column for each head; ``most`` is what the fullest colour says."""
    layers = sorted({layer for layer, _ in cells})
    numbers = sorted({head for _, head in cells})
    wide = max(LAYER_WIDE + CELL_WIDE * len(numbers), 330)
    floor = HEAD_HIGH + CELL_HIGH * len(layers)
    parts = []
    for column, head in enumerate(numbers):
        middle = LAYER_WIDE + CELL_WIDE * (column + 0.5)
        parts.append(_word(middle, HEAD_HIGH - 5, "middle", str(head)))
    for row, layer in enumerate(layers):
        top = HEAD_HIGH + CELL_HIGH * row
        parts.append(_word(LAYER_WIDE - 6, top + 14, "end", f"layer {layer}"))
        for column, head in enumerate(numbers):
            if (layer, head) in cells:
                parts += _cell(cells[layer, head], LAYER_WIDE + CELL_WIDE * column, top)
    parts += _key_of_heads(floor + 18, most)
    high = floor + 18 + 16 * (1 + len(MARKS))
    return Picture(wide, high, label, "".join(parts))


def _cell(cell: Cell, left: int, top: int) -> list[str]:
    kind = "rises" if cell.level > 0 else "falls"
    strength = f"{min(abs(cell.level), 1.0):.3f}"
    box = f'x="{left + 0.5}" y="{top + 0.5}" width="{CELL_WIDE - 1}" height="{CELL_HIGH - 1}"'
    drawn = [
        f'<rect class="empty" {box}/>',
        f'<rect class="{kind}" {box} fill-opacity="{strength}"/>',
    ]
    middle, centre = left + CELL_WIDE / 2, top + CELL_HIGH / 2
    drawn += [_mark(name, middle, centre) for name in MARKS if name in cell.marks]
    return [element("g", element("title", text(cell.said)) + "".join(drawn))]


def _mark(name: str, x: int | float, y: int | float) -> str:
    return f'<path class="mark" transform="translate({x} {y})" d="{MARKS[name][0]}"/>'


def _key_of_heads(top: int, most: str) -> list[str]:
    """What colours and marks say. Said below the map of heads."""
    parts = []
    for number in range(9):
        level = (number - 4) / 4
        kind = "rises" if level > 0 else "falls"
        box = f'x="{8 + 10 * number}" y="{top - 9}" width="10" height="10"'
        parts.append(f'<rect class="{kind}" {box} fill-opacity="{abs(level):.2f}"/>')
    parts.append(_word(104, top, "start", f"the loss falls or rises without it, by up to {most}"))
    for number, (name, (_, meaning)) in enumerate(MARKS.items()):
        at = top + 16 * (number + 1)
        parts += [_mark(name, 16, at - 3), _word(30, at, "start", meaning)]
    return parts


# ---------------------------------------------------------------------- several in one

GAP, TITLE_HIGH, AROUND = 18, 20, 12


def together(panels: Sequence[tuple[str, Picture]], label: str, columns: int = 3) -> Picture:
    """Pictures beside and below each other, each under its title."""
    columns = min(columns, len(panels))
    wide = max(picture.wide for _, picture in panels)
    parts, top = [], AROUND
    for first in range(0, len(panels), columns):
        row = panels[first : first + columns]
        for column, (title, picture) in enumerate(row):
            left = AROUND + column * (wide + GAP)
            size = {"width": picture.wide, "height": picture.high}
            parts.append(_word(left, top + 12, "start", title, "title"))
            parts.append(picture.svg(x=left, y=top + TITLE_HIGH, **size))
        top += TITLE_HIGH + max(picture.high for _, picture in row) + GAP
    all_wide = 2 * AROUND + columns * wide + (columns - 1) * GAP
    high = top - GAP + AROUND
    ground = f'<rect class="ground" width="{all_wide}" height="{high}"/>'
    return Picture(all_wide, high, label, ground + "".join(parts))
