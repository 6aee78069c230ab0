"""What the figures of a lab share: new axes, colours, and words along a side.

Words of a text are drawn as they are: a ``$`` begins no formula, and a letter that no font here
has becomes a box instead of a warning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from whence.core.maps import Axis
from whence.views.drawing import GREY, INK, bar_beside, label_axis, plain, ramp, short
from whence.views.drawing import new_axes as given_or_new_axes

ORANGE = "#f3841c"
BLUE = "#549cde"
PURPLE = "#7250b0"

__all__ = [
    "BLUE",
    "GREY",
    "INK",
    "ORANGE",
    "PURPLE",
    "colour_bar",
    "name_places",
    "new_axes",
    "plain",
    "ramp",
    "short",
]


def new_axes(width: float, height: float) -> Any:
    """The axes of a new figure of this size, in inches."""
    return given_or_new_axes(None, width, height)


def colour_bar(ax: Any, image: Any, name: str = "") -> Any:
    """A bar of the image's colours, to the right of the axes."""
    return bar_beside(ax, image, name)


def name_places(
    ax: Any,
    side: str,
    names: Sequence[str],
    special: Sequence[bool] | np.ndarray | None = None,
    turned: bool = True,
) -> None:
    """Words along one side, ``"x"`` or ``"y"``: every one where there is room, else every second …

    Those that are ``special`` (tokens that are not part of the text) are grey. Words along "x" are
    ``turned`` upright.
    """
    if special is None:
        special = np.zeros(len(names), dtype=bool)
    part = np.zeros(len(names), dtype=int)
    axis = Axis(tuple(names), np.asarray(special, dtype=bool), part)
    label_axis(ax, side, axis, turned=turned)
