"""The attention arbiter: of all ways to read attention, the most faithful one on this text."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float

from whence.core.errors import SettingsError, Unsupported
from whence.core.registry import SEED, Needs, Passes, method, setting
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


@method("attention-arbiter", version=1, cites="mylonas2022attention", aliases=("arbiter",))
@dataclass(frozen=True, slots=True)
class AttentionArbiter:
    """The way of reading attention (layer, head, row or column) that fits this text best.

    Units are removed one at a time: their embeddings are replaced by the ``baseline``'s. Each
    reading of attention is scored by how far the target falls for the units that it ranks first
    (ranked faithful truthfulness), and the best is returned. The search would grade itself on these
    falls, so the winner is then tried on ``held_out`` random removals of several units, beside
    shuffled copies of its own scores: that is the evidence. ``layers``, ``heads`` and ``matrix``
    fix a part of the reading instead of searching it (``whence.arbitrate`` finds one for a label or
    a data set).
    """

    layers: int | Literal["search", "mean", "product"] = setting(
        "search", "The layer to read, or the mean or product of all layers; search tries every one."
    )
    heads: int | Literal["search", "mean"] = setting(
        "search", "The head to read, or the mean of all heads; search tries every one."
    )
    matrix: Literal["search", "from", "to", "mean-columns", "max-columns"] = setting(
        "search",
        "What to read off a map: the row (from) or column (to) of the token that the output "
        "is read from, or the mean or largest of each column; search tries every one.",
    )
    baseline: Baseline = setting(
        "mean",
        "What a removed word's embedding is replaced by: the vocabulary's mean, the mask or "
        "pad token's, or zero.",
    )
    held_out: int = setting(
        32, "How many removals that the search never saw test its winner; 0 for none."
    )
    seed: int = setting(0, SEED)

    needs: ClassVar[Needs] = Needs.ATTENTION | Needs.EMBEDDINGS | Needs.RERUNS
    signed: ClassVar[bool] = False
    only_for: ClassVar[str] = (
        "readings that the model has: no product of cross attention, no column of a causal model"
    )
    price: ClassVar[str] = (
        "One forward pass with all attention maps kept, one for each unit, and 32 for the "
        "test; no backward pass."
    )
    misleads: ClassVar[str] = (
        "The best of hundreds of readings looks good by chance alone: trust the test on "
        "unseen removals, not the search. Another text gets another head."
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
        """The best reading of passage ``i``, tried on removals that the search never saw.

        Said of the test where removals were held out. ``attention read as asked: rows of layer 2;
        tested on 32 removals that the search did not see: correlation 0.61 with their effect, where
        random scores get -0.35 to 0.36: better than random``
        """
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
                f"; tested on {len(removed)} removals that the search did not see: correlation "
                f"{trial.statistic:.2f} with their effect, where random scores get "
                f"{trial.random_low:.2f} to {trial.random_high:.2f}: {trial.verdict}"
            )
        return Scores(units=weights[best], note=note, evidence=evidence)

    def _search(
        self,
        trace: Trace,
        i: int,
        candidates: list[Configuration],
        weights: Float[np.ndarray, "configuration unit"],
    ) -> tuple[int, str]:
        """The candidate with the best ranked faithful truthfulness, and a note on the search.

        Said of the reading that was found, or that it was asked for alone. ``attention read as
        asked: rows of layer 2``
        """
        if len(candidates) == 1:
            return 0, f"attention read as asked: {candidates[0]}"
        one_each = np.eye(len(trace.passages[i].units), dtype=bool)
        faithful = ranked_faithful_truthfulness(weights, drops(trace, i, one_each, self.baseline))
        best = best_of(faithful)
        measured = f"{faithful[best]:.3g} by ranked faithful truthfulness"
        if BASELINE in candidates:
            plain = faithful[candidates.index(BASELINE)]
            measured += f", the plain mean of all layers and heads {plain:.3g}"
        note = (
            f"of {len(candidates)} ways to read attention, this one fits single removals best: "
            f"{candidates[best]} ({measured})"
        )
        return best, note
