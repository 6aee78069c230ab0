"""Gradient times input."""

from dataclasses import dataclass
from typing import ClassVar

from whence.core.registry import Needs, method
from whence.core.scores import FREE_OF_LENGTH, Scores
from whence.trace.cancelling import cancel
from whence.trace.trace import Trace


@method(
    "gradient-x-input",
    version=1,
    cites="denil2014extraction",
    aliases=("input-x-gradient", "grad-x-input", "gradient-times-input", "gxi"),
)
@dataclass(frozen=True, slots=True)
class GradientXInput:
    """What the target would lose if a word's embedding shrank to zero, by the slope (G×I).

    It is the target's gradient with respect to each token's embedding, dotted with the embedding.
    Where the embeddings go straight into a norm (DeBERTa-v3, ModernBERT, Funnel …) that is zero:
    the terms cancel, and what a computer returns is rounding. Such scores are set to zero and the
    result says so.
    """

    needs: ClassVar[Needs] = Needs.EMBEDDING_GRADIENTS
    signed: ClassVar[bool] = True
    price: ClassVar[str] = (
        "One forward and one backward pass, shared by all methods that use gradients."
    )
    misleads: ClassVar[str] = (
        "The slope at the text may say little about what happens further away. In models like "
        "BERT it is exactly the negative of what positions and segments get: read it with "
        "care there. Where a norm follows the embeddings at once it is zero."
    )

    def __call__(self, trace: Trace) -> list[Scores]:
        terms = trace.embedding_gradients * trace.embeddings
        is_zero = cancel(terms)
        scores = terms.sum(-1).masked_fill(is_zero[:, None], 0.0)
        notes = [FREE_OF_LENGTH if zero else "" for zero in is_zero.tolist()]
        return Scores.rows(scores, notes=notes)
