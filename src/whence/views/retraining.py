"""The figure of remove and retrain: accuracy against the share of units that is gone."""

from __future__ import annotations

from typing import Any

from whence.core.roar import CONTROL, Roar, estimate
from whence.views.drawing import GREY, INK, TEXT_SIZE, legend_outside, new_axes, plain

# told apart by the colour-blind, and by their markers in print
COLOURS = ("#f3841c", "#549cde", "#7250b0", "#3a8f6b", "#c2396b", "#a58a1f", "#5f6b7a")
MARKERS = "osD^vP*"


def plot_roar(r: Roar, ax: Any = None) -> Any:
    """One line for each ranking, in a band of Student's 95 % intervals over seeds.

    Random rankings, the control, are grey; the dotted line is the most frequent label.

    >>> whence.roar(train, test, ["occlusion"]).plot()        # doctest: +SKIP
    """
    ax = new_axes(ax, 6.4, 3.8)
    removed = 100 * r.shares
    others = [name for name in r.accuracies if name != CONTROL]
    for name in [*others, *(n for n in r.accuracies if n == CONTROL)]:
        number = others.index(name) if name in others else 0
        colour = GREY if name == CONTROL else COLOURS[number % len(COLOURS)]
        marker = "x" if name == CONTROL else MARKERS[number % len(MARKERS)]
        of_shares = [estimate(column) for column in r.accuracies[name].T]
        mean = [one.mean for one in of_shares]
        if r.seeds > 1:
            # no accuracy lies beyond 0 and 1, though few seeds make intervals that do
            low = [max(0.0, one.low) for one in of_shares]
            high = [min(1.0, one.high) for one in of_shares]
            ax.fill_between(removed, low, high, color=colour, alpha=0.18, linewidth=0)
        (shown,), _ = plain([name])
        line = "--" if name == CONTROL else "-"
        ax.plot(removed, mean, line, color=colour, marker=marker, ms=4, lw=1.6, label=shown)
    ax.axhline(r.prior, color=INK, lw=0.9, ls=":", label="most frequent label")
    which = "least important units removed first, %" if r.keep else "units removed, %"
    ax.set_xlabel(which, fontsize=TEXT_SIZE)
    ax.set_ylabel("test accuracy, retrained", fontsize=TEXT_SIZE)
    legend_outside(ax, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax
