"""Figures of evidence and agreement: lines through their points, numbers in their cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from tests.views.conftest import NO_VERDICT, OWN, compared, judged, made
from tests.views.test_figures import labels, pixels_of
from whence.core.errors import InputError, SettingsError, UnknownName
from whence.views.evidence_figures import plot_agreement, plot_evidence
from whence.views.palette import LIGHT

TEXT = "the food is great but the service is not bad"


@pytest.fixture
def ax():
    return Figure(figsize=(6, 6), layout="constrained").subplots()


def test_curves_and_bands_are_the_evidence_of_the_removal_asked_for(ax):
    a = judged(compared(TEXT))["gradient-l2"]
    assert plot_evidence(a, ax, "delete") is ax
    trial = a.evidence.trial("delete")
    solid = {
        tuple(to_rgb(line.get_color())): line for line in ax.lines if line.get_linestyle() == "-"
    }
    for kind, colour in (("deletion", LIGHT.negative), ("insertion", LIGHT.positive)):
        line = solid[tuple(c / 255 for c in colour)]
        assert tuple(line.get_xdata()) == trial.curves.steps
        assert tuple(line.get_ydata()) == pytest.approx(getattr(trial.curves, kind))
    assert len(ax.collections) == 2
    band = ax.collections[0].get_paths()[0].vertices
    low, _, high = np.array(trial.curves.random_deletion).T
    assert (band[:, 1].min(), band[:, 1].max()) == pytest.approx((low.min(), high.max()))
    assert f"removal delete\n{trial.verdict}: beats" in ax.get_title(loc="left")
    pixels_of(ax.figure)


def test_the_first_removal_is_drawn_unless_named(ax):
    plot_evidence(judged(compared(TEXT)).first, ax)
    assert "removal mask" in ax.get_title(loc="left")


def test_without_curves_the_error_says_so(ax):
    for evidence in (None, OWN, NO_VERDICT):
        with pytest.raises(InputError, match="toy has no deletion and insertion curves"):
            plot_evidence(made(TEXT, evidence=evidence), ax)
    with pytest.raises(UnknownName, match="no removal in this evidence named 'pad'"):
        plot_evidence(judged(compared(TEXT)).first, ax, "pad")


@pytest.mark.parametrize("of", ["correlation", "overlap"])
def test_numbers_stand_in_their_cells(ax, of):
    c = compared(TEXT, 5)
    plot_agreement(c, ax, of=of, k=3)
    g = c.agreement(3)
    shown = {(t.get_position()): t.get_text() for t in ax.texts}
    order = [g.methods.index(name) for name in labels(ax.xaxis)]
    assert labels(ax.xaxis) == labels(ax.yaxis)
    for x, i in enumerate(order):
        for y, j in enumerate(order):
            value = getattr(g, of)[j, i]
            assert shown[(x, y)] == (
                f"{value:.2f}".replace("-", "−")
                if of == "correlation"
                else f"{value:.0%}".replace("%", " %")
            )
    assert ax.images[0].get_clim() == ((-1, 1) if of == "correlation" else (0, 1))
    pixels_of(ax.figure)


def test_a_method_that_ranks_nothing_is_grey_with_a_dash(ax):
    c = compared(TEXT, 3)
    flat = replace(c["gradient-l1"], scores=np.zeros(10))
    plot_agreement(replace(c, attributions={**c.attributions, "gradient-l1": flat}), ax)
    assert labels(ax.xaxis)[-1] == "gradient-l1"
    assert {t.get_text() for t in ax.texts if t.get_position()[0] == 2} == {"–"}
    assert ax.images[0].get_array().mask[:, -1].all()


def test_names_are_no_formulas(ax):
    c = compared(TEXT, 2)
    plot_agreement(replace(c, attributions={"$a_b$": c.first, "x^2": c["attention-mean"]}), ax)
    assert set(labels(ax.xaxis)) == {"$a_b$", "x^2"}
    pixels_of(ax.figure)


def test_what_is_not_to_be_drawn(ax):
    with pytest.raises(SettingsError, match="'correlation' or 'overlap', not 'both'"):
        plot_agreement(compared(TEXT, 2), ax, of="both")


def test_results_draw_themselves(ax):
    c = judged(compared(TEXT))
    assert c.first.plot_evidence(ax, removal="delete") is ax
    assert "removal delete" in ax.get_title(loc="left")
    other = Figure(layout="constrained").subplots()
    assert c.plot_agreement(other, of="overlap", k=3) is other
    assert "top 3 units in common" in other.get_title(loc="left")


def test_a_legend_is_not_cut_off_in_axes_that_were_given():
    """A figure of the caller's has no room below its axes, unless it lays itself out."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    a = judged(compared("so very good"))["gradient-x-input"]
    for layout in (None, "constrained", "compressed"):
        drawn = a.plot_evidence(ax=pyplot.subplots(layout=layout)[1])
        drawn.figure.canvas.draw()
        legend, whole = drawn.get_legend().get_window_extent(), drawn.figure.bbox
        assert legend.x0 >= whole.x0
        assert legend.y0 >= whole.y0
        assert legend.x1 <= whole.x1
        assert legend.y1 <= whole.y1
        pyplot.close(drawn.figure)
