"""Scores to levels, and levels to colours: orange for, blue against, purple where a score has no sign. Safe for the colour-blind."""

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
    """Dark unless the terminal says otherwise (COLORFGBG, which many set) or the user does (WHENCE_THEME=light)."""
    chosen = os.environ.get("WHENCE_THEME", "").lower()
    ground = os.environ.get("COLORFGBG", "").split(";")[-1]
    return LIGHT if chosen == "light" or (chosen != "dark" and ground in ("7", "15")) else DARK


def levels(a: Attribution) -> Float[np.ndarray, " unit"]:
    """Scores by the largest size of this method, so in [-1, 1]; all zero where all scores are."""
    largest = np.abs(a.scores).max(initial=0.0)
    return a.scores / largest if largest > 0 else np.zeros_like(a.scores)


def colour(level: float, signed: bool, theme: Theme) -> RGB | None:
    """The background of a unit; None where it is too faint to matter."""
    if abs(level) < FAINT:
        return None
    end = theme.unsigned if not signed else theme.positive if level > 0 else theme.negative
    share = 0.12 + 0.88 * min(abs(level), 1.0)
    r, g, b = (
        round(start + share * (stop - start)) for start, stop in zip(theme.ground, end, strict=True)
    )
    return r, g, b


def ink(background: RGB) -> RGB:
    """Black or white, whichever is easier to read on a background."""
    linear = [
        (c / 255 / 12.92) if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in background
    ]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return (0, 0, 0) if (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) else (255, 255, 255)
