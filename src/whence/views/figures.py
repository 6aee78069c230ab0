"""Figures for papers, by matplotlib: ``ax=None`` in, ``Axes`` out.

Nothing is shown or written; ``ax.figure.savefig`` does that.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import ceil
from typing import Any

import numpy as np
from jaxtyping import Float

from whence.core.attribution import Attribution
from whence.core.errors import SettingsError, unknown_name
from whence.core.generation import Generation
from whence.core.heads import HeadTable
from whence.core.maps import AttentionMaps
from whence.views import wording
from whence.views.drawing import (
    GREY,
    INK,
    SMALL,
    TEXT_SIZE,
    bar_beside,
    hex_of,
    label_axis,
    new_axes,
    plain,
    plain_axis,
    ramp,
    room_for,
    set_title,
)
from whence.views.generation import output_name, standing
from whence.views.palette import LIGHT, RGB, end_of_ramp
from whence.views.pictures import grid_of, pictured, pixels_of, screen
from whence.views.sides import sides_of

CELL = 0.22  # inches that a row of labels takes
LONGEST_SIDE = 10.0  # inches; beyond it labels are left out
VEIL = 0.88  # how much of a picture the strongest patch hides, as in the report
# what is left of a picture's contrast: over black and white a colour would not look the same
FADED = 0.55
GREY_OF_RGB = np.array([0.299, 0.587, 0.114])
Box = tuple[float, float, float, float]  # left, bottom, right, top


# ---------------------------------------------------------------------- attention


def plot_map(
    maps: AttentionMaps,
    layer: int | str,
    head: int | str = "mean",
    ax: Any = None,
    kind: str | None = None,
    colour_bar: bool = True,
) -> Any:
    """One head's attention: a row for each place that looks, a column for each looked at.

    Special tokens are grey. ``layer`` and ``head`` are the model's numbers, negative ones count
    from the end; ``head="mean"`` averages all that were kept. The colours end at the largest
    weight: ``ax.images[0].set_clim(0, 1)`` makes several figures comparable.

    >>> ax = plot_map(maps, layer=3, head=7)             # doctest: +SKIP
    >>> ax.figure.savefig("map.pdf")                     # doctest: +SKIP
    """
    weights, kind, title = _weights(maps, layer, head, kind)
    rows, columns = maps.from_axis[kind], maps.to_axis[kind]
    wide = _side(CELL * len(columns)) + room_for(rows)
    if colour_bar:
        wide += 0.85
    ax = new_axes(ax, wide, _side(CELL * len(rows)) + room_for(columns) + 0.25)
    image = ax.imshow(weights, cmap=ramp(), vmin=0, interpolation="nearest")
    label_axis(ax, "x", columns)
    label_axis(ax, "y", rows)
    ax.set(xlabel="to", ylabel="from")
    if len(maps.kinds) > 1:
        title = f"{kind}: {title}"
    set_title(ax, title)
    if colour_bar:
        bar_beside(ax, image, "attention")
    return ax


def _side(inches: float) -> float:
    """The side of a matrix, neither too short for its title nor too long for a page."""
    return min(max(inches, 1.6), LONGEST_SIDE)


def _weights(
    maps: AttentionMaps, layer: int | str, head: int | str, kind: str | None
) -> tuple[Float[np.ndarray, "from to"], str, str]:
    """The matrix that was asked for, its kind, and what it is called.

    Said above a figure of attention, where it is a mean. ``layer 3, mean of 12 heads``
    """
    kind = kind or maps.kinds[0]
    if kind not in maps.kinds:
        raise unknown_name("kind of attention in these maps", kind, maps.kinds)
    layers, heads = maps.layer_names(kind), maps.head_names(kind)
    at = _place("layer", layer, layers)
    of_layer = np.asarray(maps.weights[kind][at], dtype=np.float64)
    where = f"layer {layers[at]}"
    if head == "mean" and "mean" not in heads:
        return of_layer.mean(0), kind, f"{where}, mean of {len(heads)} heads"
    chosen = _place("head", head, heads)
    what = f"head {heads[chosen]}"
    if heads[chosen] == "mean":
        what = "mean of the heads"
    return of_layer[chosen], kind, f"{where}, {what}"


def _place(what: str, asked: int | str, names: Sequence[str]) -> int:
    """Where a layer or head stands among those that were kept."""
    count = len(names)
    if str(asked) in names:
        return list(names).index(str(asked))
    if isinstance(asked, (int, np.integer)) and -count <= asked < 0:
        return count + int(asked)
    known = ", ".join(names)
    if count > 1 and list(names) == [str(i) for i in range(count)]:
        known = f"0 to {count - 1}"
    things = what if count == 1 else f"{what}s"
    raise SettingsError(
        f"{what} {asked!r} is outside the {count} {things} of these maps ({known})."
    )


# ---------------------------------------------------------------------- generated text


def plot_generation(g: Generation, method: str | None = None, ax: Any = None) -> Any:
    """What each written token rests on: a row for each output, a column for each unit.

    Units that do not stand before an output are grey. Orange is above zero, blue below; purple
    where a method has no signs.

    >>> ax = plot_generation(g, "occlusion")             # doctest: +SKIP
    """
    name = g.methods[0] if method is None else method
    scores = g.matrix(name)
    signed = any(a.signed for a in g[name])
    largest = float(np.abs(scores[np.isfinite(scores)]).max(initial=0.0)) or 1.0
    rows = plain_axis([output_name(g.outputs[i].name) for i in g.explained])
    columns = plain_axis(g.units.names)
    wide = _side(CELL * len(columns)) + room_for(rows) + 0.85
    ax = new_axes(ax, wide, _side(CELL * len(rows)) + room_for(columns) + 0.25)
    image = ax.imshow(
        np.ma.masked_invalid(scores),
        cmap=ramp(signed),
        vmin=-largest if signed else 0.0,
        vmax=largest,
        interpolation="nearest",
    )
    label_axis(ax, "x", columns)
    label_axis(ax, "y", rows)
    ax.set(xlabel="rests on", ylabel=standing(g))
    set_title(ax, name)
    bar_beside(ax, image, "score")
    return ax


# ---------------------------------------------------------------------- heads


def plot_heads(table: HeadTable, value: str, ax: Any = None, colour_bar: bool = True) -> Any:
    """One value of every head: layers downwards, heads to the right.

    Orange and blue where some are negative, grey where one is missing.
    """
    values = np.asarray(table[value], dtype=np.float64)
    wide, high = _side(0.32 * len(table.heads)), _side(0.32 * len(table.layers))
    beside = 1.4 if colour_bar else 0.6
    ax = new_axes(ax, wide + beside, high + 0.75)

    finite = values[np.isfinite(values)]
    diverging = bool((finite < 0).any())
    largest = float(np.abs(finite).max(initial=0.0)) or 1.0
    image = ax.imshow(
        np.ma.masked_invalid(values),
        cmap=ramp(diverging),
        vmin=-largest if diverging else 0.0,
        vmax=largest,
        interpolation="nearest",
    )
    label_axis(ax, "x", plain_axis(table.heads), turned=False)
    label_axis(ax, "y", plain_axis(table.layers), turned=False)
    ax.set(xlabel="head", ylabel="layer")
    set_title(ax, f"{value}, {table.kind} attention")
    if colour_bar:
        bar_beside(ax, image, value)
    return ax


def plot_distances(table: HeadTable, ax: Any = None) -> Any:
    """Heads in the plane, near each other where they do alike.

    "3-7" is layer 3, head 7, and the colour is the layer.

    Said above a figure of heads in the plane. ``heads by likeness, encoder attention``
    """
    places = np.asarray(table.places, dtype=np.float64)
    layers, heads = places.shape[:2]
    points = places.reshape(-1, 2)
    layer_of = np.repeat(np.arange(layers), heads)
    side = min(max(0.5 * np.sqrt(len(points)), 3.6), 9.0)
    ax = new_axes(ax, side + 0.9, side)
    dots = ax.scatter(*points.T, c=layer_of, cmap="viridis", vmin=0, vmax=max(layers - 1, 1), s=16)
    ax.set(xticks=[], yticks=[])
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.1)

    names = [f"{layer}-{head}" for layer in table.layers for head in table.heads]
    _name_points(ax, points, names)
    bar = bar_beside(ax, dots, "layer")
    step = ceil(layers / 12)
    bar.set_ticks(range(0, layers, step), labels=list(table.layers)[::step])
    set_title(ax, f"heads by likeness, {table.kind} attention")
    return ax


def _name_points(ax: Any, points: Float[np.ndarray, "point 2"], names: Sequence[str]) -> None:
    style: dict[str, Any] = {
        "va": "center",
        "fontsize": SMALL - 1.5,
        "color": INK,
        "textcoords": "offset points",
    }
    offsets = _free_sides(ax, points, names)
    for place, name, (dx, dy) in zip(points, names, offsets, strict=True):
        ax.annotate(name, place, (dx, dy), ha=_alignment(dx), **style, **plain([name])[1])


def _alignment(dx: float) -> str:
    """Which side of a name is beside its point."""
    if dx == 0:
        return "center"
    return "left" if dx > 0 else "right"


def _free_sides(
    ax: Any, points: Float[np.ndarray, "point 2"], names: Sequence[str]
) -> list[tuple[float, float]]:
    """For each point, where its name is nearest to it without lying on another name or point.

    These are offsets in points of a printer.
    """
    ax.apply_aspect()
    at = ax.transData.transform(points) * 72 / ax.figure.dpi
    taken: list[Box] = [(x - 2, y - 2, x + 2, y + 2) for x, y in at]
    offsets = []
    for (x, y), name in zip(at, names, strict=True):
        best, least, best_box = None, np.inf, None
        for dx, dy in _offsets():
            box = _box_of(name, x + dx, y + dy, dx)
            covered = sum(_overlap(box, other) for other in taken)
            if covered < least:
                best, least, best_box = (dx, dy), covered, box
        assert best is not None
        assert best_box is not None
        taken.append(best_box)
        offsets.append(best)
    return offsets


def _offsets() -> list[tuple[float, float]]:
    """Where a name may stand, the nearest places first."""
    offsets = []
    for far in (4.0, 9.0):
        offsets += [(far, 0.0), (-far, 0.0), (0.0, far + 2), (0.0, -far - 2)]
        offsets += [(far, far), (-far, -far)]
    return offsets


def _box_of(name: str, x: float, y: float, dx: float) -> Box:
    """What a name covers, when ``dx`` says on which side of its point it stands."""
    wide, high = 4.2 * len(name), 7.0
    left = x - wide / 2
    if dx > 0:
        left = x
    elif dx < 0:
        left = x - wide
    return (left, y - high / 2, left + wide, y + high / 2)


def _overlap(one: Box, other: Box) -> float:
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return max(wide, 0.0) * max(high, 0.0)


# ---------------------------------------------------------------------- attributions


def plot_attribution(a: Attribution, ax: Any = None, top: int | None = None) -> Any:
    """A bar for each unit in reading order, or for the ``top`` strongest.

    Whiskers are standard errors, where the method gives them. Of an image: the heat of the patches
    over the picture, which is grey and pale so that nothing of its own can be taken for a score.
    Of an image beside a text: bars for both.

    >>> a.plot(top=10).figure.savefig("bars.svg")        # doctest: +SKIP
    """
    if top is not None and top < 1:
        raise SettingsError(f"top is the number of units to draw, at least 1, not {top}.")
    shown = np.sort(a.ranking()[:top])
    pixels = pixels_of(a)
    if pixels is not None and pictured(a).all():
        ax = _heat(a, pixels, shown, ax)
    else:
        ax = _bars(a, shown, ax)
    title = f"{wording.value(a)}\n{a.method}"
    if len(shown) < len(a.scores):
        title += f"\nthe {len(shown)} strongest of {len(a.scores)} units"
    set_title(ax, title)
    return ax


def _bars(a: Attribution, shown: np.ndarray, ax: Any) -> Any:
    """Said below a figure of scores: what their signs mean.

    ``score (+ for the target, − against it); whiskers: standard error``
    """
    ax = new_axes(ax, 5.5, min(CELL * len(shown), 40.0) + 1.2)
    scores = a.scores[shown]
    colours = [hex_of(end_of_ramp(score, a.signed, LIGHT)) for score in scores]
    meaning = "score (without a sign)"
    if a.signed:
        said = sides_of(a.target)
        meaning = f"score (+ {said.above.end('the target')}, − {said.below.other_end()})"
    whiskers: dict[str, Any] = {}
    spread = None if a.error is None else a.error.standard_error
    if spread is not None:
        line = {"ecolor": INK, "elinewidth": 1, "capsize": 2}
        whiskers = {"xerr": spread[shown], "error_kw": line}
        meaning += "; whiskers: standard error"
    ax.barh(np.arange(len(shown)), scores, color=colours, height=0.76, **whiskers)
    ax.axvline(0, color=INK, linewidth=0.8)

    # a line between the texts of a pair, or between a text and a picture
    parts = np.array(a.units.parts)[shown]
    for last in np.flatnonzero(np.diff(parts)):
        ax.axhline(last + 0.5, color=GREY, linewidth=0.8, linestyle="--")

    label_axis(ax, "y", plain_axis([a.units.names[i] for i in shown]))
    ax.set_ylim(len(shown) - 0.4, -0.6)  # read from the top
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize=SMALL)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.set_xlabel(meaning, fontsize=TEXT_SIZE)
    return ax


def _heat(
    a: Attribution,
    pixels: Float[np.ndarray, "channel height width"],
    shown: np.ndarray,
    ax: Any,
) -> Any:
    """The scores of the patches as a coloured veil over the picture."""
    picture = screen(pixels)
    high, wide = picture.shape[:2]
    scale = 4.0 / max(high, wide)
    ax = new_axes(ax, max(scale * wide, 2.0) + 0.9, max(scale * high, 1.0) + 0.6)
    # in pixels, from the upper left corner; the patches share it among them
    area = (0, wide, high, 0)
    grey = 255 - FADED * (255 - picture @ GREY_OF_RGB)
    ax.imshow(grey, cmap="gray", vmin=0, vmax=255, extent=area, interpolation="nearest")

    scores = np.zeros_like(a.scores)
    scores[shown] = a.scores[shown]
    largest = float(np.abs(a.scores).max(initial=0.0)) or 1.0
    image = ax.imshow(
        grid_of(a, scores),
        cmap=_veil(a.signed),
        vmin=-largest if a.signed else 0.0,
        vmax=largest,
        extent=area,
        interpolation="nearest",
    )
    ax.set(xticks=[], yticks=[])
    bar_beside(ax, image, "score")
    return ax


@cache
def _veil(signed: bool) -> Any:
    """From clear to nearly opaque, so that the picture is seen under a patch without a score."""
    from matplotlib.colors import LinearSegmentedColormap

    stops = [
        (0.0, _tint(LIGHT.unsigned, 0.0)),
        (1.0, _tint(LIGHT.unsigned, VEIL)),
    ]
    if signed:
        stops = [
            (0.0, _tint(LIGHT.negative, VEIL)),
            (0.5, _tint(LIGHT.negative, 0.0)),
            (0.5, _tint(LIGHT.positive, 0.0)),
            (1.0, _tint(LIGHT.positive, VEIL)),
        ]
    return LinearSegmentedColormap.from_list("whence-heat", stops)


def _tint(colour: RGB, opacity: float) -> tuple[float, ...]:
    return (*(part / 255 for part in colour), opacity)
