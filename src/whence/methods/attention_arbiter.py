"""The attention arbiter: of all ways to read attention, the one that a faithfulness measure likes best on this text."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float

from whence.core.errors import SettingsError, Unsupported
from whence.core.held_out import held_out_evidence, subsets
from whence.core.registry import Needs, method
from whence.core.scores import Scores
from whence.trace.baselines import Baseline
from whence.trace.configurations import BASELINE, Configuration, best_of, configurations, ranked_faithful_truthfulness, readings
from whence.trace.removals import drops
from whence.trace.trace import Trace


@method("attention-arbiter", version=1, cites="mylonas2022attention")
@dataclass(frozen=True, slots=True)
class AttentionArbiter:
    """The reading of attention (layer × head × matrix operation) with the best ranked faithful truthfulness on this text.

    Units are removed one at a time (their embeddings replaced by the ``baseline``'s), each configuration is scored by the drops over
    its ranks, and the best is returned. As the search would grade itself on these drops, the winner is then tried on ``held_out``
    random removals of several units, beside shuffled copies of its own scores: that is the evidence. ``layers``, ``heads`` and
    ``matrix`` fix a part of the configuration (``whence.arbitrate`` finds one for a label or a data set) instead of searching it.
    """

    layers: int | Literal["search", "mean", "product"] = "search"
    heads: int | Literal["search", "mean"] = "search"
    matrix: Literal["search", "from", "to", "mean-columns", "max-columns"] = "search"
    baseline: Baseline = "mean"
    held_out: int = 32
    seed: int = 0

    needs: ClassVar[Needs] = Needs.ATTENTION | Needs.EMBEDDINGS | Needs.RERUNS
    signed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.held_out < 0 or self.held_out in (1, 2):
            raise ValueError("held_out is a number of removals: 0 for none, or 3 and more, as fewer tell nothing")

    def __call__(self, trace: Trace) -> Scores:
        wanted = [c for c in configurations(trace) if self._fits(c)]
        if not wanted:
            known = sorted({str(c.layers) for c in configurations(trace)}), sorted({str(c.heads) for c in configurations(trace)})
            numbered = [n for n in (self.layers, self.heads) if isinstance(n, int)]
            raise (SettingsError if numbered else Unsupported)(
                f"no configuration of this model has layers={self.layers!r}, heads={self.heads!r}, matrix={self.matrix!r}; "
                f"layers are {', '.join(known[0])} and heads {', '.join(known[1])}."
            )
        scores = torch.zeros(trace.content.shape, dtype=torch.float64)
        notes, evidence = [], []
        for i, passage in enumerate(trace.passages):
            weights, note, found = self._judge(trace, i, wanted)
            _, first = np.unique(passage.unit_of, return_index=True)
            first = first[passage.unit_of[first] >= 0]
            scores[i, first] = torch.from_numpy(weights)
            notes.append(note)
            evidence.append(found)
        return Scores(scores, notes=notes, evidence=evidence)

    def _fits(self, c: Configuration) -> bool:
        return self.layers in ("search", c.layers) and self.heads in ("search", c.heads) and self.matrix in ("search", c.matrix)

    def _judge(self, trace: Trace, i: int, wanted: list[Configuration]) -> tuple[Float[np.ndarray, " unit"], str, Any]:
        """The best configuration's scores, a note on the search, and the evidence from removals that it never saw."""
        passage = trace.passages[i]
        d = len(passage.unit_spans)
        best, note = 0, f"configuration: {wanted[0]}"
        weights = readings(trace, i, wanted)
        if len(wanted) > 1:
            faithful = ranked_faithful_truthfulness(weights, drops(trace, i, np.eye(d, dtype=bool), self.baseline))
            best = best_of(faithful)
            note = f"best of {len(wanted)} configurations: {wanted[best]} (RFT {faithful[best]:.3g}"
            note += f", {BASELINE}: {faithful[wanted.index(BASELINE)]:.3g})" if BASELINE in wanted else ")"
        rng = np.random.default_rng([self.seed, *passage.digest])
        removed = subsets(d, self.held_out, rng)
        found = None
        if len(removed):
            plain = readings(trace, i, [BASELINE])[0]
            found = held_out_evidence(weights[best], plain, removed, drops(trace, i, removed, self.baseline), rng)
        if found is not None:
            note += (
                f"; on {len(removed)} held-out removals r = {found['value']:.2f}, {found['verdict']} "
                f"({found['random_low']:.2f} to {found['random_high']:.2f})"
            )
        return weights[best], note, found
