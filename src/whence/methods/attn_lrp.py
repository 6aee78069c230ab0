"""Layer-wise relevance propagation with rules for attention."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from whence.core.registry import Needs, Passes, method
from whence.core.scores import Scores
from whence.trace.lrp.rules import AttnLRP, Softmax
from whence.trace.lrp.run import embedding_relevance
from whence.trace.trace import Trace


@method("attn-lrp", version=1, cites="achtibat2024attnlrp")
@dataclass(frozen=True, slots=True)
class AttnLrp:
    """The target's value, handed down by layers in shares until it lies on the tokens (AttnLRP).

    ``softmax`` is ``"taylor"``, the paper's rule, or ``"constant"``, which takes attention as given
    (CP-LRP) and then loses nothing but to biases and positions. ``epsilon`` steadies the shares of
    sums near zero, and absorbs some relevance.
    """

    softmax: Softmax = "taylor"
    epsilon: float = 0.0

    needs: ClassVar[Needs] = Needs.EMBEDDINGS | Needs.RERUNS | Needs.ATTENTION_GRAPH
    signed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.epsilon < 0:
            raise ValueError("epsilon cannot be negative")

    def passes(self, units: int) -> Passes:
        del units
        return Passes(forwards=1, backwards=1)  # a run of its own, for relevance to pass through

    def __call__(self, trace: Trace) -> list[Scores]:
        scores = torch.zeros_like(trace.content, dtype=trace.embeddings.dtype)
        rules = AttnLRP(self.softmax, self.epsilon)
        elsewhere = "biases, positions, softmax"
        if trace.model.is_encoder_decoder:
            elsewhere += ", the decoder's own tokens"
        handed = []
        notes = []
        for i, passage in enumerate(trace.passages):
            relevance = embedding_relevance(trace, i, rules)
            is_content = trace.content[i, : len(passage)]
            scores[i, : len(passage)] = relevance.tokens
            special = float(relevance.tokens[~is_content].sum())
            absorbed = relevance.handed - float(relevance.tokens.sum())
            handed.append(relevance.handed)
            notes.append(
                f"of {relevance.handed:.3g} handed down, special tokens hold {special:.2g}; "
                f"{elsewhere} hold {absorbed:.2g}"
            )
        return Scores.rows(scores, changes=handed, notes=notes)
