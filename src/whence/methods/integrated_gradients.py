"""Integrated gradients: gradients along the straight path from a baseline to the text.

They are integrated by adaptive Gauss–Legendre quadrature. Along the path the target often changes
in one short stretch and is flat elsewhere, and evenly laid nodes are wasted on the flat. The
target's *values* tell where: they cost a third of a gradient, and between any two of them
completeness is known exactly. So a few values are scouted, panels are laid where the target moves,
each with a few Gauss–Legendre nodes, and the panel whose own completeness gap is largest is halved
until the whole gap is small enough.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.registry import Needs, Passes, method, setting
from whence.core.scores import Scores
from whence.trace.baselines import Baseline, baseline_embeddings
from whence.trace.trace import Trace

SCOUTS = 8  # stretches of the path whose change of the target is looked at first
PER_PANEL = 4  # nodes: exact for polynomials up to degree 7
FLAT_SHARE = 0.3  # of the panels laid evenly, so that no stretch is trusted blindly
LEAN = 64  # nodes at most, where a model is large or a budget small

Panel = tuple[float, float]


@method(
    "integrated-gradients",
    version=1,
    cites="sundararajan2017axiomatic",
    aliases=("ig",),
)
@dataclass(frozen=True, slots=True)
class IntegratedGradients:
    """Where the target's change comes from on the way from an empty text to this one; sums to it.

    Special tokens stay as they are, so that everything is explained by the text's own tokens.
    Points (Gauss–Legendre nodes) are added where they are missing until the completeness gap, the
    relative difference between the sum of scores and the change of the target, is at most
    ``tolerance`` (panel by panel, so that two misses cannot cancel), or ``max_nodes`` are spent.
    The gap is always reported.
    """

    baseline: Baseline = setting(
        "mean",
        "What stands for an empty text: the vocabulary's mean embedding, the mask or pad "
        "token's, or zero.",
    )
    nodes: int = setting(16, "At how many points of the way the gradient is taken at first.")
    tolerance: float = setting(
        0.01, "How large the completeness gap may be; above it, points are added."
    )
    max_nodes: int = setting(256, "At how many points the gradient is taken at most.")

    needs: ClassVar[Needs] = Needs.EMBEDDINGS | Needs.RERUNS
    signed: ClassVar[bool] = True
    price: ClassVar[str] = (
        "Eight forward passes, then 16 forward and backward passes, and more where the gap "
        "asks for it."
    )
    misleads: ClassVar[str] = (
        "The baseline is half of the answer: try two. A small completeness gap says that the "
        "sum is right, not that the explanation is."
    )

    def __post_init__(self) -> None:
        if not 1 <= self.nodes <= self.max_nodes:
            raise ValueError("nodes must be at least 1 and at most max_nodes")
        if self.tolerance < 0:
            raise ValueError("tolerance cannot be negative")

    def lean(self, units: int) -> dict[str, int]:
        del units
        return {"max_nodes": max(LEAN, self.nodes)}

    def passes(self, units: int) -> Passes:
        del units
        first = PER_PANEL * max(1, round(self.nodes / PER_PANEL))
        nodes = max(first, self.max_nodes)
        halvings = (nodes - first) // (2 * PER_PANEL)
        return Passes(forwards=SCOUTS + nodes + halvings, backwards=nodes, at_most=True)

    def __call__(self, trace: Trace) -> list[Scores]:
        scores = torch.zeros(
            trace.content.shape, dtype=torch.float64, device=trace.embeddings.device
        )
        changes = []
        notes = []
        for i, passage in enumerate(trace.passages):
            scores[i, : len(passage)], change, missed = self._integrate(trace, i)
            note = ""
            if missed > self.tolerance:
                note = (
                    f"parts of the path still miss {100 * missed:.2g} % of the target's change "
                    f"after max_nodes={self.max_nodes} points: allow more, or take another baseline"
                )
            changes.append(change)
            notes.append(note)
        return Scores.rows(scores, changes=changes, notes=notes)

    def _integrate(self, trace: Trace, i: int) -> tuple[Float[Tensor, " token"], float, float]:
        """Scores, the target's change that they explain, and the share of it that panels miss."""
        start = baseline_embeddings(trace, i, self.baseline)
        way = trace.embeddings_of(i) - start
        places = np.arange(SCOUTS) / SCOUTS
        values = dict(zip(places.tolist(), _values(trace, i, start, way, places), strict=True))
        values[1.0] = float(trace.values[i])
        change = values[1.0] - values[0.0]
        panels = lay_panels(values, max(1, round(self.nodes / PER_PANEL)))
        parts = dict(zip(panels, _panel_scores(trace, i, start, way, panels), strict=True))
        spent = PER_PANEL * len(panels)
        while True:
            gaps = {}
            for (a, b), part in parts.items():
                gaps[a, b] = abs(float(part.sum()) - (values[b] - values[a]))
            missed = sum(gaps.values()) / max(abs(change), 1e-12)
            if missed <= self.tolerance or spent + 2 * PER_PANEL > self.max_nodes:
                return torch.stack(list(parts.values())).sum(0), change, missed
            a, b = max(gaps, key=lambda panel: gaps[panel])
            middle = (a + b) / 2
            (values[middle],) = _values(trace, i, start, way, np.array([middle]))
            del parts[a, b]
            halves = [(a, middle), (middle, b)]
            spent += 2 * PER_PANEL
            parts |= dict(zip(halves, _panel_scores(trace, i, start, way, halves), strict=True))


def _values(
    trace: Trace,
    i: int,
    start: Float[Tensor, "token dim"],
    way: Float[Tensor, "token dim"],
    places: Float[np.ndarray, " place"],
) -> list[float]:
    """The target's value at places of the path, 0 at the baseline and 1 at the text."""
    points = start + torch.from_numpy(places).to(way)[:, None, None] * way
    return trace.values_at(i, points).double().tolist()


def _panel_scores(
    trace: Trace,
    i: int,
    start: Float[Tensor, "token dim"],
    way: Float[Tensor, "token dim"],
    panels: Sequence[Panel],
) -> Float[Tensor, "panel token"]:
    """Each panel's part of the integral, by Gauss–Legendre nodes inside it; all in one batch."""
    node, weight = np.polynomial.legendre.leggauss(PER_PANEL)
    ends = np.array(panels)
    length = ends[:, 1:] - ends[:, :1]
    places = ends[:, :1] + length * (node + 1) / 2
    weights = torch.from_numpy(length * weight / 2).to(way.device)
    points = start + torch.from_numpy(places.ravel()).to(way)[:, None, None] * way
    slopes = trace.gradients_at(i, points)
    along = torch.einsum("ntd,td->nt", slopes, way).double().unflatten(0, places.shape)
    return torch.einsum("pn,pnt->pt", weights, along)


def lay_panels(values: dict[float, float], count: int) -> list[Panel]:
    """Cut the path at scouted places into at most ``count`` panels.

    The target changes about equally much in each of them.

    >>> lay_panels({0.0: 0.0, 0.25: 0.0, 0.5: 1.0, 0.75: 2.0, 1.0: 2.0}, 2)
    [(0.0, 0.5), (0.5, 1.0)]
    """
    places = np.array(sorted(values))
    change = np.abs(np.diff([values[p] for p in places.tolist()]))
    smooth = np.convolve(np.pad(change, 1, mode="edge"), [0.25, 0.5, 0.25], "valid")
    even = np.full(len(smooth), 1 / len(smooth))
    density = even
    if smooth.sum() > 0:
        density = FLAT_SHARE * even + (1 - FLAT_SHARE) * smooth / smooth.sum()
    reached = np.concatenate([[0.0], np.cumsum(density)])
    wanted = np.interp(np.arange(1, count) / count, reached, places)
    cuts = sorted({float(places[np.abs(places - w).argmin()]) for w in wanted} - {0.0, 1.0})
    return list(zip([0.0, *cuts], [*cuts, 1.0], strict=True))
