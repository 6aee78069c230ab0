"""Integrated gradients: gradients along the straight path from a baseline to the text.

They are integrated by adaptive Gauss–Legendre quadrature. Along the path the target often changes
in one short stretch and is flat elsewhere, and evenly laid nodes are wasted on the flat. The
target's *values* tell where: they cost a third of a gradient, and between any two of them
completeness is known exactly. So a few values are scouted, panels are laid where the target moves,
each with a few Gauss–Legendre nodes, and the panel whose own completeness gap is largest is halved
until the whole gap is small enough. Where that takes long, it is asked what stands in the way: the
rounding of the model's numbers, jumps, which are cut out, or a path that is rough.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch

from whence.core.percent import figures
from whence.core.registry import Needs, Passes, method, setting
from whence.core.scores import Scores
from whence.trace.baselines import AnyBaseline, baseline_embeddings, chosen_baseline
from whence.trace.integral import Integral
from whence.trace.path import (
    DEPTH,
    JOLTS,
    PER_PANEL,
    Jump,
    Panel,
    Path,
    parts_of_all,
    values_of_all,
)
from whence.trace.routers import chooses
from whence.trace.trace import Trace

SCOUTS = 8  # stretches of the path whose change of the target is looked at first
FLAT_SHARE = 0.3  # of the panels laid evenly, so that no stretch is trusted blindly
LEAN = 64  # nodes at most, where a model is large or a budget small
LOOK = 32  # nodes, after which it is asked what stands in the way; most paths are done before
NODES_OF_A_SEARCH = 32  # for so many nodes that are allowed, a jump is looked for in one panel
HELPS = 0.5  # of what was missed, that twice the nodes may miss, or more of them do not help


@method(
    "integrated-gradients",
    version=2,
    cites="sundararajan2017axiomatic",
    aliases=("ig",),
)
@dataclass(frozen=True, slots=True)
class IntegratedGradients:
    """Where the target's change comes from on the way from an empty text to this one; sums to it.

    Special tokens stay as they are, so that everything is explained by the text's own tokens.
    Points (Gauss–Legendre nodes) are added where they are missing until the completeness gap, the
    relative difference between the sum of scores and the change of the target, is at most
    ``tolerance`` (panel by panel, so that two misses cannot cancel), or ``max_nodes`` are spent, or
    more of them do not help. The gap is always reported. Where the tolerance is not met, the note
    says why: the model's own rounding, jumps of the target (a router that switches experts), or a
    path that is too rough for so few points.
    """

    baseline: AnyBaseline = setting(
        "auto",
        "What stands for an empty text: the vocabulary's mean embedding, the mask or pad "
        "token's, or zero; auto takes the mask token's where there is one, else the mean.",
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

    def within(self, units: int, passes: int) -> dict[str, int]:
        """So many nodes that the passes suffice, and the first ones at least."""
        for nodes in range(self.max_nodes, self.nodes, -PER_PANEL):
            if replace(self, max_nodes=nodes).passes(units).weight <= passes:
                return {"max_nodes": nodes}
        return {"max_nodes": self.nodes}

    def passes(self, units: int) -> Passes:
        del units
        first = PER_PANEL * max(1, round(self.nodes / PER_PANEL))
        nodes = max(first, self.max_nodes)
        halvings = (nodes - first) // (2 * PER_PANEL)
        looks = 0
        if nodes >= LOOK + 2 * PER_PANEL:
            looks = JOLTS + DEPTH * self._searches
        return Passes(forwards=SCOUTS + nodes + halvings + looks, backwards=nodes, at_most=True)

    @property
    def _searches(self) -> int:
        return self.max_nodes // NODES_OF_A_SEARCH

    def as_run(self, trace: Trace) -> dict[str, str]:
        """What ``auto`` stood for."""
        return {"baseline": chosen_baseline(trace.model, self.baseline)}

    def __call__(self, trace: Trace) -> list[Scores]:
        scores = torch.zeros(
            trace.content.shape, dtype=torch.float64, device=trace.embeddings.device
        )
        by_ask: dict[int, Integral] = {}
        for asks in trace.about_one_passage():
            by_ask |= zip(asks, self._begun(trace, asks), strict=True)
        integrals = [self._refined(by_ask[i]) for i in range(len(trace.passages))]
        for i, passage in enumerate(trace.passages):
            scores[i, : len(passage)] = integrals[i].tokens
        return Scores.rows(
            scores,
            changes=[integral.smooth_change for integral in integrals],
            notes=[self._note(trace, integral) for integral in integrals],
            details=[integral.detail() for integral in integrals],
        )

    def _begun(self, trace: Trace, asks: Sequence[int]) -> list[Integral]:
        """The first panels of asks about one passage, which are the same for all of them.

        Of a written text the path is that of the ask with the most tokens before its output; what
        stands behind an output does not change it, and gets no score.
        """
        widest = max(asks, key=lambda i: int(trace.content[i].sum()))
        start = baseline_embeddings(trace, widest, chosen_baseline(trace.model, self.baseline))
        way = trace.embeddings_of(widest) - start
        paths = [Path(trace, i, start, way) for i in asks]
        places = np.arange(SCOUTS) / SCOUTS
        values_of_asks = []
        for i, scouted in zip(asks, values_of_all(paths, places), strict=True):
            values = dict(zip(places.tolist(), scouted, strict=True))
            values_of_asks.append({**values, 1.0: float(trace.values[i])})
        panels = lay_panels(values_of_asks, max(1, round(self.nodes / PER_PANEL)))
        integrals = []
        parts_of_asks = parts_of_all(paths, panels)
        for path, values, parts in zip(paths, values_of_asks, parts_of_asks, strict=True):
            integrals.append(Integral(path, values, dict(zip(panels, parts, strict=True))))
        return integrals

    def _refined(self, integral: Integral) -> Integral:
        """More points where they are missing, until the tolerance is met or they do not help."""
        searches = self._searches
        look_at = LOOK
        missed_before = np.inf
        while True:
            missed = integral.missed()
            if missed <= self.tolerance:
                return integral.stopped("met")
            if integral.is_rounding():
                return integral.stopped("rounding")
            if integral.nodes + 2 * PER_PANEL > self.max_nodes:
                return integral.stopped("spent")
            if integral.nodes >= look_at:
                if missed > HELPS * missed_before:
                    return integral.stopped("slow")
                searches -= integral.look(self.tolerance, -(-searches // 2), self.max_nodes)
                # what a look cuts out changes what is left to do, and earns another try
                missed_before = integral.missed()
                look_at = 2 * integral.nodes
                continue
            integral.halve_the_worst()

    def _note(self, trace: Trace, integral: Integral) -> str:
        """Why the tolerance was not met; nothing where it was, and there were no jumps.

        Said where the tolerance was not met, or the path has jumps. ``parts of the path still miss
        8 % of the target's change after max_nodes=1000 points: allow more, or take another
        baseline``
        """
        has_router = chooses(trace.model.hf)
        sentences = []
        if integral.jumps:
            sentences.append(jumps_in_words(integral.jumps, integral.change, has_router))
        missed = (
            f"parts of the path still miss {figures(integral.missed(), 2)} % of the target's change"
        )
        if integral.stop == "rounding":
            kind = str(integral.path.way.dtype).removeprefix("torch.")
            remedy = "; in float64 they would" if kind != "float64" else ""
            sentences.append(
                f"{missed}: that is the model's own rounding in {kind}, its value is uncertain by "
                f"{integral.rounding:.1g}, and more points do not help{remedy}"
            )
        elif integral.stop != "met":
            points = f"after max_nodes={self.max_nodes} points"
            if integral.stop == "slow":
                points = f"after {integral.nodes} points, and twice as many hardly helped"
            sentences.append(f"{missed} {points}{self._obstacle(integral, has_router)}")
        return ". ".join(sentences)

    def _obstacle(self, integral: Integral, has_router: bool) -> str:
        """What seems to stand in the way of more exact scores, and what to do.

        Said where the points were spent or did not help. ``: allow more, or take another baseline``
        """
        if integral.jumps:
            return ": more such jumps, or too few points"
        remedy = ": allow more, or take another baseline"
        if has_router:
            return (
                "; the model chooses among experts by size, so that it is not continuous where the "
                f"choice switches{remedy}"
            )
        if integral.swing() > 2:
            return (
                f"; on the way the target moves up and down by {integral.swing():.2g} times its "
                f"change{remedy}"
            )
        return remedy


def jumps_in_words(jumps: list[Jump], change: float, has_router: bool) -> str:
    """What jumps are, where they lie and what they are worth.

    Said where the target jumps on the path. ``the model is not continuous along the path: the
    target jumps once, near 0.25 of the way, by -25 % of its change, which belongs to no word;
    scores explain the rest``

    >>> jumps_in_words([Jump(0.25, 0.2501, -0.5)], 2.0, has_router=True)
    'the model is not continuous along the path, as its router switches experts: the target jumps \
once, near 0.25 of the way, by -25 % of its change, which belongs to no word; scores explain the \
rest'
    """
    why = ", as its router switches experts" if has_router else ""
    places = sorted(jump.before for jump in jumps)
    net = sum(jump.size for jump in jumps) / (change or 1e-12)
    where = f"once, near {places[0]:.2g} of the way, by"
    if len(jumps) > 1:
        where = (
            f"at least {len(jumps)} times between {places[0]:.2g} and {places[-1]:.2g} of the way, "
            "together by"
        )
    return (
        f"the model is not continuous along the path{why}: the target jumps {where} "
        f"{figures(net, 2)} % of its change, which belongs to no word; scores explain the rest"
    )


def lay_panels(values_of_asks: Sequence[dict[float, float]], count: int) -> list[Panel]:
    """Cut the path at scouted places into at most ``count`` panels.

    The target changes about equally much in each of them; of several targets, on average.

    >>> lay_panels([{0.0: 0.0, 0.25: 0.0, 0.5: 1.0, 0.75: 2.0, 1.0: 2.0}], 2)
    [(0.0, 0.5), (0.5, 1.0)]
    """
    places = np.array(sorted(values_of_asks[0]))
    even = np.full(len(places) - 1, 1 / (len(places) - 1))
    densities = []
    for values in values_of_asks:
        change = np.abs(np.diff([values[p] for p in places.tolist()]))
        smooth = np.convolve(np.pad(change, 1, mode="edge"), [0.25, 0.5, 0.25], "valid")
        density = even
        if smooth.sum() > 0:
            density = FLAT_SHARE * even + (1 - FLAT_SHARE) * smooth / smooth.sum()
        densities.append(density)
    reached = np.concatenate([[0.0], np.cumsum(np.mean(densities, axis=0))])
    wanted = np.interp(np.arange(1, count) / count, reached, places)
    cuts = sorted({float(places[np.abs(places - w).argmin()]) for w in wanted} - {0.0, 1.0})
    return list(zip([0.0, *cuts], [*cuts, 1.0], strict=True))
