"""Figures of what can be said about methods: the curves of one's evidence, the agreement of all."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from whence.core.agreement import Agreement
from whence.core.attribution import Attribution
from whence.core.comparison import Comparison
from whence.core.errors import InputError, SettingsError, unknown_name
from whence.core.evidence import Band
from whence.views import verdicts, wording
from whence.views.agreeing import similar_together
from whence.views.curves import drawable
from whence.views.drawing import (
    GREY,
    INK,
    SMALL,
    TEXT_SIZE,
    bar_beside,
    hex_of,
    legend_outside,
    new_axes,
    plain,
    ramp,
    set_title,
)
from whence.views.palette import LIGHT, RGB, ink

# Said in the legend of a figure of curves.
DELETION = "units taken out, first of the ranking first"
# Said in the legend of a figure of curves.
INSERTION = "units put back, first of the ranking first"
CELL = 0.38  # inches for a number in a cell
LOWEST = {"correlation": -1.0, "overlap": 0.0}


# ---------------------------------------------------------------------- evidence


def plot_evidence(a: Attribution, ax: Any = None, removal: str | None = None) -> Any:
    """Deletion and insertion curves of one removal: the first, unless one is named.

    The bands hold 95 % of the random rankings.

    >>> a.plot_evidence(removal="delete").figure.savefig("evidence.pdf")        # doctest: +SKIP
    """
    drawn = {t.removal: t for t in verdicts.trials(a) if drawable(t) is not None}
    if not drawn:
        raise InputError(
            f"{a.method} has no deletion and insertion curves to draw: "
            "its evidence was not computed, or has too few units."
        )
    if removal is not None and removal not in drawn:
        raise unknown_name("removal in this evidence", removal, drawn)
    trial = drawn[removal or next(iter(drawn))]
    curves = drawable(trial)
    assert curves is not None

    ax = new_axes(ax, 5.0, 3.8)
    steps = np.asarray(curves.steps, dtype=np.float64)
    _draw_curve(ax, steps, curves.deletion, curves.random_deletion, LIGHT.negative, DELETION)
    _draw_curve(ax, steps, curves.insertion, curves.random_insertion, LIGHT.positive, INSERTION)
    _label_curves(ax, steps, a)
    rulings = {ruling.removal: ruling for ruling in verdicts.by_removal(a)}
    name = wording.visible(trial.removal)
    set_title(ax, f"{a.method}, removal {name}\n{rulings[name].sentence()}")
    return ax


def _draw_curve(
    ax: Any,
    steps: Float[np.ndarray, " step"],
    values: tuple[float, ...],
    band: Band,
    colour: RGB,
    label: str,
) -> None:
    """The ranking's line over the random rankings' band and their mean."""
    low, mean, high = np.asarray(band, dtype=np.float64).T
    shade = hex_of(colour)
    ax.fill_between(steps, low, high, color=shade, alpha=0.18, linewidth=0)
    ax.plot(steps, mean, color=shade, linewidth=0.9, linestyle=(0, (2, 3)))
    ax.plot(steps, values, color=shade, linewidth=2, label=label)


def _label_curves(ax: Any, steps: Float[np.ndarray, " step"], a: Attribution) -> None:
    """Said below every figure of curves. ``units; bands: 95 % of random rankings``"""
    ax.set_xlim(steps[0], steps[-1])
    ax.set_xlabel("units; bands: 95 % of random rankings", fontsize=TEXT_SIZE)
    (shown,), style = plain([a.target.describe()])
    ax.set_ylabel(shown, fontsize=TEXT_SIZE, **style)
    ax.tick_params(labelsize=SMALL)
    ax.spines[["top", "right"]].set_visible(False)
    ax.xaxis.get_major_locator().set_params(integer=True)
    legend_outside(ax, loc="upper left", bbox_to_anchor=(0, -0.16), borderaxespad=0.6)


# ---------------------------------------------------------------------- agreement


def plot_agreement(
    c: Comparison, ax: Any = None, of: str = "correlation", k: int = 5, colour_bar: bool = True
) -> Any:
    """The rank correlation of every two methods, or their top ``k`` units' overlap, with numbers.

    Similar methods stand together.

    Said above a figure of agreement. ``How far methods agree: rank correlation``
    """
    if of not in LOWEST:
        raise SettingsError(f"of is 'correlation' or 'overlap', not {of!r}.")
    agreement = c.agreement(k)
    order = similar_together(agreement.correlation)
    names = [agreement.methods[i] for i in order]
    whole = agreement.correlation if of == "correlation" else agreement.overlap
    matrix = whole[np.ix_(order, order)]

    side = max(CELL * len(order), 1.6)
    beside = 2.9 if colour_bar else 2.0
    ax = new_axes(ax, side + beside, side + 1.9)
    image = ax.imshow(
        np.ma.masked_invalid(matrix),
        cmap=ramp(diverging=of == "correlation"),
        vmin=LOWEST[of],
        vmax=1.0,
        interpolation="nearest",
    )
    _name_methods(ax, names)
    _write_numbers(ax, matrix, of)

    title = _title(agreement, of)
    set_title(ax, f"How far methods agree: {title}\n{wording.value(c.first)}")
    if colour_bar:
        bar_beside(ax, image, title.split(",")[0])
    return ax


def _title(agreement: Agreement, of: str) -> str:
    """Said above a figure of agreement, of the overlap with what chance gives.

    ``top 5 units in common, by chance 50 %``
    """
    if of == "correlation":
        return "rank correlation"
    return f"top {agreement.k} units in common, by chance {wording.share(agreement.chance)}"


def _name_methods(ax: Any, methods: list[str]) -> None:
    names, style = plain(methods)
    ax.set_xticks(range(len(names)), labels=names, fontsize=SMALL, rotation=90, **style)
    ax.set_yticks(range(len(names)), labels=names, fontsize=SMALL, **style)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def _write_numbers(ax: Any, matrix: Float[np.ndarray, "method method"], of: str) -> None:
    """The number of each cell, in a colour that can be read on it."""
    shown = wording.correlation if of == "correlation" else wording.share
    for (i, j), value in np.ndenumerate(matrix):
        number = {"ha": "center", "va": "center", "fontsize": SMALL - 1.5}
        ax.text(j, i, shown(float(value)), color=_ink(float(value), of), **number)


def _ink(value: float, of: str) -> str:
    if np.isnan(value):
        return GREY
    colours = ramp(diverging=of == "correlation")
    ground = colours((value - LOWEST[of]) / (1.0 - LOWEST[of]))
    red, green, blue = (round(255 * part) for part in ground[:3])
    black_or_white = ink((red, green, blue))
    return INK if black_or_white == (0, 0, 0) else hex_of(black_or_white)
