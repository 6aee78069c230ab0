"""Integrated gradients: gradients along the straight path from a baseline, by Gauss–Legendre quadrature."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.registry import Needs, method
from whence.core.scores import Scores
from whence.trace.baselines import Baseline, baseline_embeddings
from whence.trace.trace import Trace


@method("integrated-gradients", version=1, cites="sundararajan2017axiomatic")
@dataclass(frozen=True, slots=True)
class IntegratedGradients:
    """The path integral of the gradient from a baseline text to the text, times the way: sums to the change of the target.

    ``baseline`` stands for "no text": the vocabulary's ``mean`` embedding, that of the ``mask`` or ``pad`` token, or ``zero``.
    Special tokens stay as they are, so that everything is explained by the text's own tokens. The ``nodes`` are doubled until the
    completeness gap, the relative difference between the sum of scores and the change of the target, is at most ``tolerance``, or
    the next doubling would exceed ``max_nodes``. The gap reached is reported either way.
    """

    baseline: Baseline = "mean"
    nodes: int = 12
    tolerance: float = 0.01
    max_nodes: int = 192

    needs: ClassVar[Needs] = Needs.EMBEDDINGS | Needs.RERUNS
    signed: ClassVar[bool] = True

    def __call__(self, trace: Trace) -> Scores:
        scores = torch.zeros(trace.content.shape, dtype=torch.float64, device=trace.embeddings.device)
        gaps = []
        for i, passage in enumerate(trace.passages):
            scores[i, : len(passage)], gap = self._one(trace, i)
            gaps.append(gap)
        return Scores(scores, gap=gaps)

    def _one(self, trace: Trace, i: int) -> tuple[Float[Tensor, " token"], float]:
        x = trace.embeddings_of(i)
        start = baseline_embeddings(trace, i, self.baseline)
        at_start = trace.values_at(i, start[None])[0]
        change = float(trace.values[i].double() - at_start.double())
        nodes = self.nodes
        while True:
            place, weight = np.polynomial.legendre.leggauss(nodes)
            alpha = torch.from_numpy((place + 1) / 2).to(x)
            gradients = trace.gradients_at(i, start + alpha[:, None, None] * (x - start))
            mean = torch.einsum("n,ntd->td", torch.from_numpy(weight / 2).to(x.device), gradients.double())
            scores = (mean * (x - start).double()).sum(-1)
            gap = abs(float(scores.sum()) - change) / max(abs(change), 1e-12)
            if gap <= self.tolerance or 2 * nodes > self.max_nodes:
                return scores, gap
            nodes *= 2
