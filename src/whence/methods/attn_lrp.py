"""Layer-wise relevance propagation with rules for attention."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from whence.core.registry import Needs, Passes, method, setting
from whence.core.scores import Scores
from whence.trace.lrp.rules import AttnLRP, Softmax
from whence.trace.lrp.run import embedding_relevance
from whence.trace.trace import Trace


@method(
    "attn-lrp",
    version=1,
    cites="achtibat2024attnlrp",
    aliases=("lrp", "attention-lrp", "layer-wise-relevance-propagation"),
)
@dataclass(frozen=True, slots=True)
class AttnLrp:
    """The target's value, handed back layer by layer until it lies on the words (AttnLRP).

    With ``softmax="constant"`` (CP-LRP) nothing is lost but to biases and positions.
    """

    softmax: Softmax = setting(
        "taylor",
        "What happens where attention is computed: taylor hands relevance through it by the "
        "paper's rule, constant takes attention as given.",
    )
    epsilon: float = setting(
        0.0, "Steadies shares of sums near zero, and loses some relevance for it."
    )

    needs: ClassVar[Needs] = Needs.EMBEDDINGS | Needs.RERUNS | Needs.ATTENTION_GRAPH
    signed: ClassVar[bool] = True
    price: ClassVar[str] = (
        "One forward and one backward pass for each passage, beside the shared forward pass."
    )
    misleads: ClassVar[str] = (
        "Biases, positions and the softmax keep a part, so the scores may sum to much less "
        "than the target, or to more: see the completeness gap. Trust the order of the words "
        "before their sum."
    )

    def __post_init__(self) -> None:
        if self.epsilon < 0:
            raise ValueError("epsilon cannot be negative")

    def passes(self, units: int) -> Passes:
        del units
        return Passes(forwards=1, backwards=1)  # a run of its own, for relevance to pass through

    def __call__(self, trace: Trace) -> list[Scores]:
        """Said of every text: where the relevance went.

        ``of 2.31 to be shared out, the units got 1.9, special tokens 0.3, and biases, positions and
        the softmax kept 0.11``
        """
        scores = torch.zeros_like(trace.content, dtype=trace.embeddings.dtype)
        rules = AttnLRP(self.softmax, self.epsilon)
        elsewhere = "biases, positions and the softmax"
        if trace.model.is_encoder_decoder:
            elsewhere = "biases, positions, the softmax and the decoder's own tokens"
        handed = []
        notes = []
        for i, passage in enumerate(trace.passages):
            relevance = embedding_relevance(trace, i, rules)
            is_content = trace.content[i, : len(passage)]
            scores[i, : len(passage)] = relevance.tokens
            words = float(relevance.tokens[is_content].sum())
            special = float(relevance.tokens[~is_content].sum())
            absorbed = relevance.handed - words - special
            handed.append(relevance.handed)
            notes.append(
                f"of {relevance.handed:.3g} to be shared out, the units got {words:.2g}, "
                f"special tokens {special:.2g}, and {elsewhere} kept {absorbed:.2g}"
            )
        return Scores.rows(scores, changes=handed, notes=notes)
