"""The attention arbiter: of all ways to read attention, the most faithful one on this text."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float

from whence.core.errors import SettingsError, Unsupported
from whence.core.registry import Needs, Passes, method
from whence.core.scores import Scores
from whence.metrics.held_out import held_out_evidence, subsets
from whence.trace.baselines import Baseline
from whence.trace.configurations import (
    BASELINE,
    Configuration,
    best_of,
    configurations,
    ranked_faithful_truthfulness,
    readings,
)
from whence.trace.removals import drops
from whence.trace.trace import Trace


@method("attention-arbiter", version=1, cites="mylonas2022attention")
@dataclass(frozen=True, slots=True)
class AttentionArbiter:
    """The reading of attention (layer × head × matrix operation) that is most faithful here.

    Units are removed one at a time: their embeddings are replaced by the ``baseline``'s. Each
    configuration is scored by the target's drops over its ranks (ranked faithful truthfulness), and
    the best is returned. The search would grade itself on these drops, so the winner is then tried
    on ``held_out`` random removals of several units, beside shuffled copies of its own scores: that
    is the evidence. ``layers``, ``heads`` and ``matrix`` fix a part of the configuration instead of
    searching it (``whence.arbitrate`` finds one for a label or a data set).
    """

    layers: int | Literal["search", "mean", "product"] = "search"
    heads: int | Literal["search", "mean"] = "search"
    matrix: Literal["search", "from", "to", "mean-columns", "max-columns"] = "search"
    baseline: Baseline = "mean"
    held_out: int = 32
    seed: int = 0

    needs: ClassVar[Needs] = Needs.ATTENTION | Needs.EMBEDDINGS | Needs.RERUNS
    signed: ClassVar[bool] = False
    only_for: ClassVar[str] = (
        "readings that the model has: no product of cross attention, no column of a causal model"
    )

    def __post_init__(self) -> None:
        if self.held_out < 0 or self.held_out in (1, 2):
            raise ValueError(
                "held_out is a number of removals: 0 for none, or 3 and more, as fewer tell nothing"
            )

    def passes(self, units: int) -> Passes:
        return Passes(forwards=units + self.held_out, at_most=True)

    def __call__(self, trace: Trace) -> list[Scores]:
        candidates = [c for c in configurations(trace) if self._fits(c)]
        if not candidates:
            raise self._no_candidate(trace)
        return [self._judge(trace, i, candidates) for i in range(len(trace.passages))]

    def _fits(self, c: Configuration) -> bool:
        return (
            self.layers in ("search", c.layers)
            and self.heads in ("search", c.heads)
            and self.matrix in ("search", c.matrix)
        )

    def _no_candidate(self, trace: Trace) -> SettingsError | Unsupported:
        layers = sorted({str(c.layers) for c in configurations(trace)})
        heads = sorted({str(c.heads) for c in configurations(trace)})
        message = (
            f"no configuration of this model has layers={self.layers!r}, heads={self.heads!r}, "
            f"matrix={self.matrix!r}; layers are {', '.join(layers)} and heads {', '.join(heads)}."
        )
        if isinstance(self.layers, int) or isinstance(self.heads, int):
            return SettingsError(message)
        return Unsupported(message)

    def _judge(self, trace: Trace, i: int, candidates: list[Configuration]) -> Scores:
        """The best reading of passage ``i``, tried on removals that the search never saw."""
        weights = readings(trace, i, candidates)
        best, note = self._search(trace, i, candidates, weights)
        passage = trace.passages[i]
        rng = np.random.default_rng([self.seed, *passage.digest])
        removed = subsets(len(passage.units), self.held_out, rng)
        evidence = None
        if len(removed):
            plain = readings(trace, i, [BASELINE])[0]
            fallen = drops(trace, i, removed, self.baseline)
            evidence = held_out_evidence(weights[best], plain, removed, fallen, rng)
        if evidence is not None:
            (trial,) = evidence.trials
            note += (
                f"; on {len(removed)} held-out removals r = {trial.statistic:.2f}, {trial.verdict} "
                f"({trial.random_low:.2f} to {trial.random_high:.2f})"
            )
        return Scores(units=weights[best], note=note, evidence=evidence)

    def _search(
        self,
        trace: Trace,
        i: int,
        candidates: list[Configuration],
        weights: Float[np.ndarray, "configuration unit"],
    ) -> tuple[int, str]:
        """The candidate with the best ranked faithful truthfulness, and a note on the search."""
        if len(candidates) == 1:
            return 0, f"configuration: {candidates[0]}"
        one_each = np.eye(len(trace.passages[i].units), dtype=bool)
        faithful = ranked_faithful_truthfulness(weights, drops(trace, i, one_each, self.baseline))
        best = best_of(faithful)
        note = f"best of {len(candidates)} configurations: {candidates[best]}"
        measured = f"RFT {faithful[best]:.3g}"
        if BASELINE in candidates:
            measured += f", {BASELINE}: {faithful[candidates.index(BASELINE)]:.3g}"
        return best, f"{note} ({measured})"
