"""Scores to levels, and levels to colours that the colour-blind can tell apart.

Orange is a score above zero, blue one below, purple where a score has no sign. What that says of
the target depends on its reading: of most, for and against it (``views/sides.py``).
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from whence.core.attribution import Attribution

RGB = tuple[int, int, int]
FAINT = 0.08  # below this a unit gets no background: it would only make the others harder to see


@dataclass(frozen=True)
class Theme:
    """The colours of a terminal: what the ramps start from, and where each ends."""

    ground: RGB
    positive: RGB
    negative: RGB
    unsigned: RGB


DARK = Theme((30, 30, 34), (242, 135, 32), (58, 136, 214), (142, 106, 200))
LIGHT = Theme((255, 255, 255), (243, 132, 28), (84, 156, 222), (160, 128, 214))


def terminal_theme() -> Theme:
    """Dark, unless the terminal says otherwise (COLORFGBG) or the user (WHENCE_THEME=light)."""
    chosen = os.environ.get("WHENCE_THEME", "").lower()
    if chosen == "light":
        return LIGHT
    if chosen == "dark":
        return DARK
    ground = os.environ.get("COLORFGBG", "").split(";")[-1]
    return LIGHT if ground in ("7", "15") else DARK


def levels(a: Attribution) -> Float[np.ndarray, " unit"]:
    """Scores by the largest size of this method, so in [-1, 1]; all zero where all scores are."""
    largest = np.abs(a.scores).max(initial=0.0)
    if largest == 0:
        return np.zeros_like(a.scores)
    return a.scores / largest


def end_of_ramp(level: float, signed: bool, theme: Theme) -> RGB:
    """The full colour of a score: above zero, below it, or without a sign."""
    if not signed:
        return theme.unsigned
    return theme.positive if level > 0 else theme.negative


def colour(level: float, signed: bool, theme: Theme) -> RGB | None:
    """The background of a unit; None where it is too faint to matter."""
    if abs(level) < FAINT:
        return None
    end = end_of_ramp(level, signed, theme)
    share = 0.12 + 0.88 * min(abs(level), 1.0)
    mixed = [
        round(start + share * (stop - start)) for start, stop in zip(theme.ground, end, strict=True)
    ]
    return mixed[0], mixed[1], mixed[2]


def ink(background: RGB) -> RGB:
    """Black or white, whichever is easier to read on a background."""
    red, green, blue = (_linear(part) for part in background)
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    contrast_of_black = (luminance + 0.05) / 0.05
    contrast_of_white = 1.05 / (luminance + 0.05)
    return (0, 0, 0) if contrast_of_black > contrast_of_white else (255, 255, 255)


def _linear(part: int) -> float:
    """One part of an sRGB colour as the light that it gives."""
    share = part / 255
    if part <= 10:
        return share / 12.92
    return ((share + 0.055) / 1.055) ** 2.4
