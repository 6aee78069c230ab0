"""Small SVG pictures of an audit: a point for each text, and a histogram over texts."""

from __future__ import annotations

from collections.abc import Sequence

from whence.views.markup import element, text

WIDE, HIGH = 230, 150
LEFT, RIGHT, TOP, BOTTOM = 34, 10, 8, 32
FLOOR = HIGH - BOTTOM
BINS = 20


def scatter(
    across: Sequence[float], up: Sequence[float], names: tuple[str, str], label: str
) -> str:
    """A point for each text; both axes go from 0 to 1."""
    points = [
        f'<circle class="text" cx="{_x(x):.1f}" cy="{_y(y):.1f}" r="2.2"/>'
        for x, y in zip(across, up, strict=True)
    ]
    return _picture([*_frame(names, ("0", "1"), "1"), *points], label)


def histogram(values: Sequence[float], most: float, names: tuple[str, str], label: str) -> str:
    """How many texts lie in each of twenty equal parts from 0 to the most there is."""
    counts = [0] * BINS
    for value in values:
        place = int(BINS * value / most)
        counts[min(max(place, 0), BINS - 1)] += 1
    tallest = max(counts) or 1
    step = (WIDE - LEFT - RIGHT) / BINS
    bars = []
    for place, count in enumerate(counts):
        high = (FLOOR - TOP) * count / tallest
        bars.append(
            f'<rect class="bin" x="{LEFT + place * step:.1f}" y="{FLOOR - high:.1f}" '
            f'width="{step - 1:.1f}" height="{high:.1f}"/>'
        )
    return _picture([*_frame(names, ("0", f"{most:.2f}"), str(tallest)), *bars], label)


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
        _word(LEFT + 4, TOP + 8, "start", names[1]),
    ]


def _word(x: int | float, y: int | float, anchor: str, content: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text(content)}</text>'


def _picture(parts: Sequence[str], label: str) -> str:
    return element(
        "svg", "".join(parts), viewBox=f"0 0 {WIDE} {HIGH}", role="img", aria_label=label
    )
