"""Layer-wise relevance propagation with rules for attention."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from whence.core.registry import Needs, method
from whence.core.scores import Scores
from whence.trace.lrp.rules import AttnLRP, Softmax
from whence.trace.lrp.run import embedding_relevance
from whence.trace.trace import Trace


@method("attn-lrp", version=1, cites="achtibat2024attnlrp")
@dataclass(frozen=True, slots=True)
class AttnLrp:
    """The target's value, handed down from layer to layer in shares, until it lies on the tokens (AttnLRP).

    ``softmax`` is ``"taylor"``, the paper's rule, or ``"constant"``, which takes attention as given (CP-LRP) and then loses nothing
    but to biases and positions. ``epsilon`` steadies the shares of sums near zero, and absorbs some relevance.
    """

    softmax: Softmax = "taylor"
    epsilon: float = 0.0

    needs: ClassVar[Needs] = Needs.EMBEDDINGS | Needs.RERUNS | Needs.ATTENTION_GRAPH
    signed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.epsilon < 0:
            raise ValueError("epsilon cannot be negative")

    def __call__(self, trace: Trace) -> list[Scores]:
        scores = torch.zeros_like(trace.content, dtype=trace.embeddings.dtype)
        handed, notes = [], []
        for i, passage in enumerate(trace.passages):
            found = embedding_relevance(trace, i, AttnLRP(self.softmax, self.epsilon))
            scores[i, : len(passage)] = found.tokens
            special = float(found.tokens[~trace.content[i, : len(passage)]].sum())
            handed.append(found.handed)
            absorbed = found.handed - float(found.tokens.sum())
            elsewhere = "biases, positions, softmax" + (
                ", the decoder's own tokens" if trace.model.is_encoder_decoder else ""
            )
            notes.append(
                f"of {found.handed:.3g} handed down, special tokens hold {special:.2g}; {elsewhere} hold {absorbed:.2g}"
            )
        return Scores.rows(scores, changes=handed, notes=notes)
