"""Figures for papers, by matplotlib: ``ax=None`` in, ``Axes`` out, nothing is shown or written; ``ax.figure.savefig`` does that."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import ceil
from typing import Any

import numpy as np
from jaxtyping import Float

from whence.core.attribution import Attribution
from whence.core.errors import SettingsError, unknown_name
from whence.core.heads import HeadTable
from whence.core.maps import AttentionMaps, Axis
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
    ramp,
    room_for,
    set_title,
)
from whence.views.palette import LIGHT, RGB
from whence.views.pictures import grid_of, screen

CELL = 0.22  # inches that a row of labels takes
LONGEST_SIDE = 10.0  # inches; beyond it labels are left out
VEIL = 0.88  # how much of a picture the strongest patch hides, as in the report
FADED = 0.55  # what is left of a picture's contrast: over black and white a colour would not look the same


def plot_map(
    maps: AttentionMaps,
    layer: int | str,
    head: int | str = "mean",
    ax: Any = None,
    kind: str | None = None,
    colour_bar: bool = True,
) -> Any:
    """One head's attention, a row for each place that looks and a column for each that is looked at; special tokens in grey.

    ``layer`` and ``head`` are the model's numbers, negative ones count from the end; ``head="mean"`` averages all that were kept.
    The colours end at the largest weight: ``ax.images[0].set_clim(0, 1)`` makes several figures comparable.

    >>> ax = plot_map(maps, layer=3, head=7)             # doctest: +SKIP
    >>> ax.figure.savefig("map.pdf")                     # doctest: +SKIP
    """
    weights, kind, title = _weights(maps, layer, head, kind)
    rows, columns = maps.from_axis[kind], maps.to_axis[kind]
    wide, high = (min(max(CELL * len(side), 1.6), LONGEST_SIDE) for side in (columns, rows))
    ax = new_axes(
        ax, wide + room_for(rows) + (0.85 if colour_bar else 0.0), high + room_for(columns) + 0.25
    )
    image = ax.imshow(weights, cmap=ramp(), vmin=0, interpolation="nearest")
    label_axis(ax, "x", columns)
    label_axis(ax, "y", rows)
    ax.set(xlabel="to", ylabel="from")
    set_title(ax, title if len(maps.kinds) == 1 else f"{kind}: {title}")
    if colour_bar:
        bar_beside(ax, image, "attention")
    return ax


def plot_heads(table: HeadTable, value: str, ax: Any = None, colour_bar: bool = True) -> Any:
    """One value of every head: layers downwards, heads to the right. Orange and blue where some are negative, grey where one is missing."""
    values = np.asarray(table[value], dtype=np.float64)
    wide, high = (
        min(max(0.32 * count, 1.6), LONGEST_SIDE) for count in (len(table.heads), len(table.layers))
    )
    ax = new_axes(ax, wide + (1.4 if colour_bar else 0.6), high + 0.75)
    finite = values[np.isfinite(values)]
    diverging = bool((finite < 0).any())
    largest = float(np.abs(finite).max(initial=0.0)) or 1.0
    limits = (-largest, largest) if diverging else (0.0, largest)
    image = ax.imshow(
        np.ma.masked_invalid(values),
        cmap=ramp(diverging),
        vmin=limits[0],
        vmax=limits[1],
        interpolation="nearest",
    )
    for side, names in (("x", table.heads), ("y", table.layers)):
        label_axis(
            ax,
            side,
            Axis(
                tuple(names), np.zeros(len(names), dtype=bool), np.zeros(len(names), dtype=np.int64)
            ),
            turned=False,
        )
    ax.set(xlabel="head", ylabel="layer")
    set_title(ax, f"{value}, {table.kind} attention")
    if colour_bar:
        bar_beside(ax, image, value)
    return ax


def plot_distances(table: HeadTable, ax: Any = None) -> Any:
    """Heads in the plane, near each other where they do alike: "3-7" is layer 3, head 7, and the colour is the layer."""
    places = np.asarray(table.places, dtype=np.float64)
    layers, heads = places.shape[:2]
    points, layer_of = places.reshape(-1, 2), np.repeat(np.arange(layers), heads)
    side = min(max(0.5 * np.sqrt(len(points)), 3.6), 9.0)
    ax = new_axes(ax, side + 0.9, side)
    dots = ax.scatter(*points.T, c=layer_of, cmap="viridis", vmin=0, vmax=max(layers - 1, 1), s=16)
    ax.set(xticks=[], yticks=[])
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.1)
    names = [f"{layer}-{head}" for layer in table.layers for head in table.heads]
    for place, name, (dx, dy, across) in zip(
        points, names, _free_sides(ax, points, names), strict=True
    ):
        style: dict[str, Any] = {
            "ha": across,
            "va": "center",
            "fontsize": SMALL - 1.5,
            "color": INK,
            "textcoords": "offset points",
        }
        ax.annotate(name, place, (dx, dy), **style, **plain([name])[1])
    bar = bar_beside(ax, dots, "layer")
    step = ceil(layers / 12)
    bar.set_ticks(range(0, layers, step), labels=list(table.layers)[::step])
    set_title(ax, f"heads by likeness, {table.kind} attention")
    return ax


def plot_attribution(a: Attribution, ax: Any = None, top: int | None = None) -> Any:
    """A bar for each unit in reading order, or for the ``top`` strongest; whiskers are standard errors, where the method gives them.

    Of an image: the heat of the patches over the picture, which is grey and pale so that nothing of its own can be taken for a score.
    Of an image beside a text: bars for both.

    >>> a.plot(top=10).figure.savefig("bars.svg")        # doctest: +SKIP
    """
    if top is not None and top < 1:
        raise SettingsError(f"top is the number of units to draw, at least 1, not {top}.")
    kept = np.sort(a.ranking()[:top])
    alone = a.passage.pixels is not None and a.passage.pictured.all()
    ax = _heat(a, kept, ax) if alone else _bars(a, kept, ax)
    left_out = (
        ""
        if len(kept) == len(a.scores)
        else f"\nthe {len(kept)} strongest of {len(a.scores)} units"
    )
    set_title(ax, f"{wording.value(a)}\n{a.method}{left_out}")
    return ax


def _bars(a: Attribution, kept: np.ndarray, ax: Any) -> Any:
    ax = new_axes(ax, 5.5, min(CELL * len(kept), 40.0) + 1.2)
    scores, spread = a.scores[kept], None if a.error is None else a.error.standard_error
    colours = [
        hex_of(LIGHT.unsigned if not a.signed else LIGHT.positive if s > 0 else LIGHT.negative)
        for s in scores
    ]
    whiskers = (
        {}
        if spread is None
        else {"xerr": spread[kept], "error_kw": {"ecolor": INK, "elinewidth": 1, "capsize": 2}}
    )
    ax.barh(np.arange(len(kept)), scores, color=colours, height=0.76, **whiskers)
    ax.axvline(0, color=INK, linewidth=0.8)
    parts = np.array([part for part, _, _ in a.passage.unit_spans])[kept]
    for second in np.flatnonzero(np.diff(parts)):
        ax.axhline(
            second + 0.5, color=GREY, linewidth=0.8, linestyle="--"
        )  # between the texts of a pair, or a text and a picture
    names = tuple(a.names[i] for i in kept)
    label_axis(ax, "y", Axis(names, np.zeros(len(kept), dtype=bool), parts))
    ax.set_ylim(len(kept) - 0.4, -0.6)  # read from the top
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize=SMALL)
    ax.spines[["top", "right", "left"]].set_visible(False)
    meaning = "score (+ for the target, − against it)" if a.signed else "score (without a sign)"
    ax.set_xlabel(
        meaning if spread is None else f"{meaning}; whiskers: standard error", fontsize=TEXT_SIZE
    )
    return ax


def _heat(a: Attribution, kept: np.ndarray, ax: Any) -> Any:
    assert a.passage.pixels is not None
    picture = screen(a.passage.pixels)
    high, wide = picture.shape[:2]
    scale = 4.0 / max(high, wide)
    ax = new_axes(ax, max(scale * wide, 2.0) + 0.9, max(scale * high, 1.0) + 0.6)
    area = (
        0,
        wide,
        high,
        0,
    )  # in pixels, from the upper left corner; the patches share it among them
    grey = 255 - FADED * (255 - picture @ np.array([0.299, 0.587, 0.114]))
    ax.imshow(grey, cmap="gray", vmin=0, vmax=255, extent=area, interpolation="nearest")
    heat = grid_of(a, np.where(np.isin(np.arange(len(a.scores)), kept), a.scores, 0.0))
    largest = float(np.abs(a.scores).max(initial=0.0)) or 1.0
    low = -largest if a.signed else 0.0
    image = ax.imshow(
        heat, cmap=_veil(a.signed), vmin=low, vmax=largest, extent=area, interpolation="nearest"
    )
    ax.set(xticks=[], yticks=[])
    bar_beside(ax, image, "score")
    return ax


def _weights(
    maps: AttentionMaps, layer: int | str, head: int | str, kind: str | None
) -> tuple[Float[np.ndarray, "from to"], str, str]:
    """The matrix that was asked for, its kind, and what it is called."""
    kind = kind or maps.kinds[0]
    if kind not in maps.kinds:
        raise unknown_name("kind of attention in these maps", kind, maps.kinds)
    names = maps.head_names(kind)
    at = _place("layer", layer, maps.layer_names(kind))
    of_layer = np.asarray(maps.weights[kind][at], dtype=np.float64)
    where = f"layer {maps.layer_names(kind)[at]}"
    if head == "mean" and "mean" not in names:
        return of_layer.mean(0), kind, f"{where}, mean of {len(names)} heads"
    chosen = _place("head", head, names)
    return (
        of_layer[chosen],
        kind,
        f"{where}, "
        + ("mean of the heads" if names[chosen] == "mean" else f"head {names[chosen]}"),
    )


def _place(what: str, asked: int | str, names: Sequence[str]) -> int:
    """Where a layer or head stands among those that were kept."""
    if str(asked) in names:
        return list(names).index(str(asked))
    if isinstance(asked, (int, np.integer)) and -len(names) <= asked < 0:
        return len(names) + int(asked)
    whole = list(names) == [str(i) for i in range(len(names))]
    known = f"0 to {len(names) - 1}" if whole and len(names) > 1 else ", ".join(names)
    raise SettingsError(
        f"{what} {asked!r} is outside the {len(names)} {what}{'s' if len(names) != 1 else ''} of these maps ({known})."
    )


@cache
def _veil(signed: bool) -> Any:
    """From clear to nearly opaque: what lies under a patch without a score stays to be seen."""
    from matplotlib.colors import LinearSegmentedColormap

    def tint(colour: RGB, opacity: float) -> tuple[float, ...]:
        return (*(c / 255 for c in colour), opacity)

    if not signed:
        return LinearSegmentedColormap.from_list(
            "whence-heat", [tint(LIGHT.unsigned, 0.0), tint(LIGHT.unsigned, VEIL)]
        )
    against, both = (
        tint(LIGHT.negative, VEIL),
        [(0.5, tint(LIGHT.negative, 0.0)), (0.5, tint(LIGHT.positive, 0.0))],
    )
    return LinearSegmentedColormap.from_list(
        "whence-heat", [(0.0, against), *both, (1.0, tint(LIGHT.positive, VEIL))]
    )


def _free_sides(
    ax: Any, points: Float[np.ndarray, "point 2"], names: Sequence[str]
) -> list[tuple[float, float, str]]:
    """For each point, where its name is nearest to it without lying on another name or point: offsets in points, and the alignment."""
    ax.apply_aspect()
    at = ax.transData.transform(points) * 72 / ax.figure.dpi
    taken = [(x - 2, y - 2, x + 2, y + 2) for x, y in at]
    out = []
    for (x, y), name in zip(at, names, strict=True):
        wide, high = 4.2 * len(name), 7.0
        sides = [
            (dx, dy)
            for far in (4.0, 9.0)
            for dx, dy in (
                (far, 0.0),
                (-far, 0.0),
                (0.0, far + 2),
                (0.0, -far - 2),
                (far, far),
                (-far, -far),
            )
        ]
        best = None
        for dx, dy in sides:
            left = x + dx - (0 if dx > 0 else wide if dx < 0 else wide / 2)
            box = (left, y + dy - high / 2, left + wide, y + dy + high / 2)
            covered = sum(_overlap(box, other) for other in taken)
            if best is None or covered < best[0]:
                best = (covered, dx, dy, box)
        assert best is not None
        _, dx, dy, box = best
        taken.append(box)
        out.append((dx, dy, "left" if dx > 0 else "right" if dx < 0 else "center"))
    return out


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return wide * high if wide > 0 and high > 0 else 0.0
