"""Gradient times input."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from whence.core.registry import Needs, method
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
    """

    needs: ClassVar[Needs] = Needs.EMBEDDING_GRADIENTS
    signed: ClassVar[bool] = True
    price: ClassVar[str] = (
        "One forward and one backward pass, shared by all methods that use gradients."
    )
    misleads: ClassVar[str] = (
        "The slope at the text may say little about what happens further away. In models like "
        "BERT it is exactly the negative of what positions and segments get: read it with "
        "care there."
    )

    def __call__(self, trace: Trace) -> Float[Tensor, "ask token"]:
        return (trace.embedding_gradients * trace.embeddings).sum(-1)
