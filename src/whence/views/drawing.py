"""What every figure needs: axes, titles, names along them, colours, and fonts.

Words of a text are drawn as they are: a ``$`` begins no formula, and a letter that no font here has
becomes a box instead of a warning.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import ceil
from textwrap import wrap
from typing import Any
from unicodedata import category

import numpy as np

from whence.core.errors import InputError
from whence.core.maps import Axis
from whence.views import wording
from whence.views.palette import LIGHT, RGB

LONGEST_LABEL = 22
TITLE_WIDTH = 46  # characters on a line
TEXT_SIZE, SMALL = 9, 8  # points
GREY, INK = "#8a8f99", "#2b2e35"
DEEP: RGB = (58, 28, 112)  # where the purple of an unsigned ramp ends, so that it prints
MISSING = "#d5d7dc"
# tried in this order for letters that the user's own font lacks; those that are not installed are
# passed over
FALLBACKS = (
    "DejaVu Sans",
    "Noto Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans CJK KR",
    "Noto Emoji",
    "Noto Sans Symbols2",
    "Hiragino Sans",
    "PingFang SC",
    "Apple SD Gothic Neo",
    "Arial Unicode MS",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "Segoe UI",
    "Segoe UI Symbol",
    "Nirmala UI",
    "Leelawadee UI",
)


def new_axes(ax: Any, width: float, height: float) -> Any:
    """The axes that were given, or those of a new figure of this size, in inches.

    Axes that were given are left alone by pyplot.
    """
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise InputError(
            "drawing a figure needs matplotlib: pip install 'whence[figures]'."
        ) from None
    return pyplot.subplots(figsize=(width, height), layout="compressed")[1]


def legend_outside(ax: Any, **place: Any) -> None:
    """A legend beside the axes, at ``place``.

    A figure without a layout engine leaves no room there and would cut it off: then it stands
    inside.
    """
    outside = place if ax.figure.get_layout_engine() is not None else {"loc": "best"}
    ax.legend(fontsize=SMALL, frameon=False, **outside)


def room_for(axis: Axis) -> float:
    """Inches that the labels of an axis take, and its name."""
    return 0.07 * max(len(short(name)) for name in axis.shown) + 0.4


def set_title(ax: Any, text: str) -> None:
    """A title on the left, its long lines broken."""
    lines = []
    for line in text.split("\n"):
        lines += wrap(line, TITLE_WIDTH) or [""]
    shown, style = plain(lines)
    ax.set_title("\n".join(shown), fontsize=TEXT_SIZE, loc="left", **style)


def bar_beside(ax: Any, image: Any, name: str) -> Any:
    """The bar of colours on the right."""
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.046, pad=0.03)
    (shown,), style = plain([name])
    bar.set_label(shown, fontsize=TEXT_SIZE, **style)
    bar.ax.tick_params(labelsize=SMALL)
    bar.outline.set_visible(False)
    return bar


def plain_axis(labels: Sequence[str]) -> Axis:
    """Names along a side none of which is a special token."""
    count = len(labels)
    return Axis(tuple(labels), np.zeros(count, dtype=bool), np.zeros(count, dtype=np.int64))


def label_axis(ax: Any, side: str, axis: Axis, turned: bool = True) -> None:
    """Names along one side: every one where there is room, else every second, third …"""
    box = ax.get_window_extent()
    length = box.width if side == "x" else box.height
    inches = length / ax.figure.dpi
    step = max(1, ceil(len(axis) * SMALL * 1.15 / 72 / max(inches, 0.1)))
    at = range(0, len(axis), step)
    shown, style = plain([short(axis.shown[i]) for i in at])
    if side == "x" and turned:
        style["rotation"] = 90
    set_ticks = ax.set_xticks if side == "x" else ax.set_yticks
    set_ticks(list(at), labels=shown, fontsize=SMALL, color=INK, **style)

    labels = ax.get_xticklabels() if side == "x" else ax.get_yticklabels()
    for i, label in zip(at, labels, strict=True):
        if axis.special[i]:
            label.set_color(GREY)


def short(name: str) -> str:
    """A name that is not longer than a label may be."""
    name = wording.visible(name)
    if len(name) <= LONGEST_LABEL:
        return name
    return f"{name[: LONGEST_LABEL - 1]}…"


def plain(texts: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Texts as they can be drawn, and how: no formulas, no TeX.

    Further fonts are named where the user's own one does not have every letter.
    """
    from matplotlib import rcParams

    own = tuple(rcParams["font.family"])
    generic = tuple(rcParams["font.sans-serif"])
    style: dict[str, Any] = {"parse_math": False, "usetex": False}
    texts = [wording.visible(t) for t in texts]
    letters = {ord(c) for c in "".join(texts)}
    if letters <= _letters(own, generic):
        return texts, style

    families = own + _installed()
    boxes = {c: _instead_of(c) for c in letters - _letters(families, generic)}
    return [t.translate(boxes) for t in texts], {**style, "fontfamily": list(families)}


def _instead_of(code: int) -> str:
    """What is drawn for a letter that no font has."""
    # joiners and selectors draw nothing: without their glyph nothing is missed
    return "" if category(chr(code)) in ("Cf", "Mn") else "□"


@cache
def _installed() -> tuple[str, ...]:
    from matplotlib.font_manager import fontManager

    here = set(fontManager.get_font_names())
    return tuple(name for name in FALLBACKS if name in here)


@cache
def _letters(families: tuple[str, ...], generic: tuple[str, ...]) -> frozenset[int]:
    """What these fonts can draw; ``generic`` is what "sans-serif" stands for now."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    del generic  # only a part of the key under which the answer is remembered
    letters: set[int] = set()
    for family in families:
        font = get_font(findfont(FontProperties(family=[family])))
        letters.update(font.get_charmap())
    return frozenset(letters)


def hex_of(colour: RGB) -> str:
    """A colour as matplotlib and SVG write it."""
    return "#{:02x}{:02x}{:02x}".format(*colour)


@cache
def ramp(diverging: bool = False) -> Any:
    """White to deep purple; or blue over white to orange. What is missing is grey."""
    from matplotlib.colors import LinearSegmentedColormap

    ends = [LIGHT.ground, LIGHT.unsigned, DEEP]
    if diverging:
        ends = [LIGHT.negative, LIGHT.ground, LIGHT.positive]
    colours = LinearSegmentedColormap.from_list("whence", [hex_of(end) for end in ends])
    return colours.with_extremes(bad=MISSING)
