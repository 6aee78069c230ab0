"""Deletion and insertion curves as small SVG pictures inside a page.

The ranking's own lines stand over the band in which 95 % of the random rankings lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from whence.core.evidence import Band, Trial, TrialCurves
from whence.views import wording
from whence.views.markup import element

WIDE, HIGH = 230, 118
LEFT, RIGHT, TOP, BOTTOM = 34, 8, 8, 18
FLOOR = HIGH - BOTTOM


def drawable(trial: Trial) -> TrialCurves | None:
    """The curves of a trial where there is something to draw: a line needs two points."""
    if trial.curves is None or len(trial.curves.steps) < 2:
        return None
    return trial.curves


def limits(every: Sequence[TrialCurves]) -> tuple[float, float]:
    """The range of all curves, so that pictures beside each other have one scale."""
    values: list[float] = []
    for drawn in every:
        values += drawn.deletion
        values += drawn.insertion
        for low, _, high in (*drawn.random_deletion, *drawn.random_insertion):
            values += (low, high)
    low, high = float(min(values)), float(max(values))
    if high > low:
        return low, high
    return low - 0.5, high + 0.5


@dataclass(frozen=True)
class _Scale:
    """Where a step and a value lie in the picture."""

    steps: tuple[int, ...]
    low: float
    high: float

    def x(self, step: int | float) -> float:
        return LEFT + (WIDE - LEFT - RIGHT) * step / (self.steps[-1] or 1)

    def y(self, value: int | float) -> float:
        return TOP + (HIGH - TOP - BOTTOM) * (self.high - value) / (self.high - self.low)

    def points(self, values: Sequence[int | float]) -> list[str]:
        """A point for the value at each step."""
        pairs = zip(self.steps, values, strict=True)
        return [f"{self.x(step):.1f},{self.y(value):.1f}" for step, value in pairs]


def curves(
    drawn: TrialCurves, between: tuple[float, float], label: str, end: str | None = None
) -> str:
    """One removal: the target as units are taken out, and as they return; ``label`` is read aloud.

    ``between`` are the values at the lower and at the upper end of the picture, and ``end`` is what
    stands at the end of the steps: their number, unless something else is said.
    """
    scale = _Scale(drawn.steps, *between)
    parts = [
        f'<path class="frame" d="M{LEFT} {TOP}V{FLOOR}H{WIDE - RIGHT}"/>',
        _band(scale, "deletion", drawn.random_deletion),
        _band(scale, "insertion", drawn.random_insertion),
        _middle(scale, "deletion", drawn.random_deletion),
        _line(scale, "line deletion", drawn.deletion),
        _middle(scale, "insertion", drawn.random_insertion),
        _line(scale, "line insertion", drawn.insertion),
        *_numbers(scale, end or f"{drawn.steps[-1] or 1} units"),
    ]
    picture = {"viewBox": f"0 0 {WIDE} {HIGH}", "role": "img", "aria_label": label}
    return element("svg", "".join(parts), class_="curves", **picture)


def _band(scale: _Scale, kind: str, band: Band) -> str:
    upper = scale.points([high for _, _, high in band])
    lower = scale.points([low for low, _, _ in band])
    around = " ".join([*upper, *reversed(lower)])
    return f'<polygon class="band {kind}" points="{around}"/>'


def _middle(scale: _Scale, kind: str, band: Band) -> str:
    return _line(scale, f"middle {kind}", [mean for _, mean, _ in band])


def _line(scale: _Scale, classes: str, values: Sequence[float]) -> str:
    return f'<polyline class="{classes}" points="{" ".join(scale.points(values))}"/>'


def _numbers(scale: _Scale, end: str) -> list[str]:
    """The ends of both axes."""
    shown = wording.score_format([scale.low, scale.high], signed=False)
    return [
        element("text", shown(scale.high), x=LEFT - 4, y=TOP + 6, class_="end"),
        element("text", shown(scale.low), x=LEFT - 4, y=FLOOR, class_="end"),
        element("text", "0", x=LEFT, y=HIGH - 5),
        element("text", end, x=WIDE - RIGHT, y=HIGH - 5, class_="end"),
    ]
