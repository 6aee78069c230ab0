"""The gradient, averaged over the embedding's entries."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from whence.core.registry import Needs, method
from whence.core.scores import ZERO_BY_CONSTRUCTION, Scores
from whence.trace.trace import Trace

# of float32 sums over a few hundred entries that cancel; a real mean is orders of magnitude larger
ROUNDING = 1e-5
# Said where the entries of each gradient sum to zero, but for rounding.
CONSTRUCTED_ZERO = (
    f"{ZERO_BY_CONSTRUCTION}: "
    "a layer norm after the embeddings makes the gradient's entries sum to zero"
)


@method(
    "gradient-mean",
    version=1,
    cites="lopardo2024attention",
    aliases=("g-avg", "gradient-average"),
)
@dataclass(frozen=True, slots=True)
class GradientMean:
    """The average entry of the gradient of each word (G-avg): zero by construction in most models.

    That is where a layer norm follows the embeddings (BERT, GPT-2, ViT …): adding a constant to
    every entry then changes nothing, so the entries of the gradient sum to zero, and what a
    computer returns is rounding. Such scores are set to zero and the result says so.
    """

    needs: ClassVar[Needs] = Needs.EMBEDDING_GRADIENTS
    signed: ClassVar[bool] = True
    price: ClassVar[str] = (
        "One forward and one backward pass, shared by all methods that use gradients."
    )
    misleads: ClassVar[str] = (
        "Behind a layer norm it is exactly zero. Elsewhere it is the slope along one "
        "direction that means nothing in particular."
    )
    merge: ClassVar[str] = "mean"

    def __call__(self, trace: Trace) -> list[Scores]:
        gradient = trace.embedding_gradients
        mean = gradient.mean(-1)
        size = gradient.abs().mean(-1)
        rounding = max(ROUNDING, 2.5 * torch.finfo(gradient.dtype).eps)
        is_rounding = mean.abs().amax(-1) <= rounding * size.amax(-1)
        scores = mean * (~is_rounding).to(mean.dtype)[:, None]
        notes = [CONSTRUCTED_ZERO if zero else "" for zero in is_rounding.tolist()]
        return Scores.rows(scores, notes=notes)
