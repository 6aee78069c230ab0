"""Gradient times input."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from whence.core.registry import Needs, method
from whence.trace.trace import Trace


@method("gradient-x-input", version=1, cites="denil2014extraction")
@dataclass(frozen=True, slots=True)
class GradientXInput:
    """The target's gradient with respect to each token's embedding, dotted with it (G×I)."""

    needs: ClassVar[Needs] = Needs.EMBEDDING_GRADIENTS
    signed: ClassVar[bool] = True

    def __call__(self, trace: Trace) -> Float[Tensor, "ask token"]:
        return (trace.embedding_gradients * trace.embeddings).sum(-1)
