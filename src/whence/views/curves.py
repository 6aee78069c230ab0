"""Deletion and insertion curves as small SVG pictures inside a page: the ranking's own lines over the band of the random ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from whence.views import wording

WIDE, HIGH = 230, 118
LEFT, RIGHT, TOP, BOTTOM = 34, 8, 8, 18
KEYS = ("steps", "deletion", "insertion", "random_deletion", "random_insertion")


def has_curves(found: Mapping[str, Any]) -> bool:
    """Whether there is something to draw: a line needs two points."""
    return all(isinstance(found.get(k), Sequence) for k in KEYS) and len(found["steps"]) > 1


def limits(every: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """The range of all curves, so that pictures beside each other have one scale."""
    values = [v for f in every for k in KEYS[1:3] for v in f[k]]
    values += [v for f in every for k in KEYS[3:] for low, _, high in f[k] for v in (low, high)]
    low, high = float(min(values)), float(max(values))
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def curves(found: Mapping[str, Any], between: tuple[float, float], told: str) -> str:
    """One removal: what is left of the target as units go, and what comes back as they return; ``told`` is read aloud."""
    steps, (low, high) = found["steps"], between
    last = steps[-1] or 1

    def x(step: int | float) -> float:
        return LEFT + (WIDE - LEFT - RIGHT) * step / last

    def y(value: int | float) -> float:
        return TOP + (HIGH - TOP - BOTTOM) * (high - value) / (high - low)

    def path(values: Sequence[int | float], over: Sequence[int | float] = steps) -> str:
        return " ".join(f"{x(s):.1f},{y(v):.1f}" for s, v in zip(over, values, strict=True))

    parts = []
    for kind in ("deletion", "insertion"):
        band = found[f"random_{kind}"]
        parts.append(
            f'<polygon class="band {kind}" points="{path([b[2] for b in band])} {path([b[0] for b in band][::-1], steps[::-1])}"/>'
        )
    for kind in ("deletion", "insertion"):
        parts.append(
            f'<polyline class="middle {kind}" points="{path([b[1] for b in found[f"random_{kind}"]])}"/>'
        )
        parts.append(f'<polyline class="line {kind}" points="{path(found[kind])}"/>')
    floor = HIGH - BOTTOM
    shown = wording.score_format([low, high], signed=False)
    texts = [
        f'<text x="{LEFT - 4}" y="{TOP + 6}" class="end">{shown(high)}</text>',
        f'<text x="{LEFT - 4}" y="{floor}" class="end">{shown(low)}</text>',
        f'<text x="{LEFT}" y="{HIGH - 5}">0</text><text x="{WIDE - RIGHT}" y="{HIGH - 5}" class="end">{last} units</text>',
    ]
    frame = f'<path class="frame" d="M{LEFT} {TOP}V{floor}H{WIDE - RIGHT}"/>'
    drawn = "".join([frame, *parts, *texts])
    return f'<svg class="curves" viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="{escape(told)}">{drawn}</svg>'
