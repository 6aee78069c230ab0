"""Figures of what can be said about methods: curves of the evidence for one, and the agreement of several."""

from __future__ import annotations

from typing import Any

import numpy as np

from whence.core.attribution import Attribution
from whence.core.comparison import Comparison
from whence.core.errors import InputError, SettingsError, unknown_name
from whence.views import verdicts, wording
from whence.views.agreeing import similar_together
from whence.views.curves import has_curves
from whence.views.drawing import (
    GREY,
    INK,
    SMALL,
    TEXT_SIZE,
    bar_beside,
    hex_of,
    new_axes,
    plain,
    ramp,
    set_title,
)
from whence.views.palette import LIGHT, ink

COLOURS = {"deletion": LIGHT.negative, "insertion": LIGHT.positive}
LABELS = {
    "deletion": "units taken out, first of the ranking first",
    "insertion": "units put back, first of the ranking first",
}
CELL = 0.38  # inches for a number in a cell


def plot_evidence(a: Attribution, ax: Any = None, removal: str | None = None) -> Any:
    """Deletion and insertion curves of one removal (the first, unless named) over the band of 95 % of the random rankings.

    >>> a.plot_evidence(removal="delete").figure.savefig("evidence.pdf")        # doctest: +SKIP
    """
    drawn = {name: found for name, found in verdicts.removals(a).items() if has_curves(found)}
    if not drawn:
        raise InputError(
            f"{a.method} has no deletion and insertion curves to draw: its evidence was not computed, or has too few units."
        )
    if removal is not None and removal not in drawn:
        raise unknown_name("removal in this evidence", removal, drawn)
    removal = removal or next(iter(drawn))
    found, verdict = drawn[removal], next(v for v in verdicts.by_removal(a) if v.removal == removal)
    ax = new_axes(ax, 5.0, 3.8)
    steps = np.asarray(found["steps"], dtype=np.float64)
    for kind, colour in COLOURS.items():
        band = np.asarray(found[f"random_{kind}"], dtype=np.float64)
        ax.fill_between(
            steps, band[:, 0], band[:, 2], color=hex_of(colour), alpha=0.18, linewidth=0
        )
        ax.plot(steps, band[:, 1], color=hex_of(colour), linewidth=0.9, linestyle=(0, (2, 3)))
        ax.plot(steps, found[kind], color=hex_of(colour), linewidth=2, label=LABELS[kind])
    ax.set_xlim(steps[0], steps[-1])
    ax.set_xlabel("units; bands: 95 % of random rankings", fontsize=TEXT_SIZE)
    (shown,), style = plain([a.target.describe()])
    ax.set_ylabel(shown, fontsize=TEXT_SIZE, **style)
    ax.tick_params(labelsize=SMALL)
    ax.spines[["top", "right"]].set_visible(False)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(
        fontsize=SMALL,
        frameon=False,
        loc="upper left",
        bbox_to_anchor=(0, -0.16),
        borderaxespad=0.6,
    )
    set_title(ax, f"{a.method}, removal {removal}\n{verdict.sentence()}")
    return ax


def plot_agreement(
    c: Comparison, ax: Any = None, of: str = "correlation", k: int = 5, colour_bar: bool = True
) -> Any:
    """The rank correlation of every two methods, or their top ``k`` units' overlap, with the numbers; similar methods stand together."""
    if of not in ("correlation", "overlap"):
        raise SettingsError(f"of is 'correlation' or 'overlap', not {of!r}.")
    found = c.agreement(k)
    order = similar_together(found.correlation)
    matrix = (found.correlation if of == "correlation" else found.overlap)[np.ix_(order, order)]
    side = max(CELL * len(order), 1.6)
    ax = new_axes(ax, side + (2.9 if colour_bar else 2.0), side + 1.9)
    colours = ramp(diverging=of == "correlation")
    low = -1.0 if of == "correlation" else 0.0
    image = ax.imshow(
        np.ma.masked_invalid(matrix), cmap=colours, vmin=low, vmax=1.0, interpolation="nearest"
    )
    names, style = plain([found.methods[i] for i in order])
    ax.set_xticks(range(len(names)), labels=names, fontsize=SMALL, rotation=90, **style)
    ax.set_yticks(range(len(names)), labels=names, fontsize=SMALL, **style)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    shown = wording.correlation if of == "correlation" else wording.share
    for (i, j), value in np.ndenumerate(matrix):
        r, g, b = (round(255 * part) for part in colours((value - low) / (1.0 - low))[:3])
        tint = GREY if np.isnan(value) else hex_of(ink((r, g, b)))
        ax.text(
            j,
            i,
            shown(float(value)),
            ha="center",
            va="center",
            fontsize=SMALL - 1.5,
            color=INK if tint == "#000000" else tint,
        )
    title = (
        "rank correlation"
        if of == "correlation"
        else f"top {found.k} units in common, by chance {wording.share(found.chance)}"
    )
    set_title(ax, f"{wording.value(c.first)}\n{title}")
    if colour_bar:
        bar_beside(ax, image, title.split(",")[0])
    return ax
