"""Attention, averaged over heads."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from jaxtyping import Float
from torch import Tensor

from whence.core.registry import Needs, method, setting
from whence.trace.rows import Layers, RowChoice, aggregated
from whence.trace.trace import Trace


@method(
    "attention-mean",
    version=2,
    cites="lopardo2024attention",
    aliases=("attention", "mean-attention", "raw-attention"),
)
@dataclass(frozen=True, slots=True)
class AttentionMean:
    """How much attention each word gets where the output is read, averaged over heads (α-avg).

    ``layer="product"`` multiplies the layers as matrices, later layers on the left.
    """

    layer: Layers = setting(
        "last",
        "The layer: a number from 0, last, or how all layers are combined: mean (or all), "
        "max, sum, product.",
    )
    head: int | Literal["mean"] = setting(
        "mean", "One head, by its number from 0, or the mean over all heads."
    )
    residual: bool = setting(
        False,
        "Whether half of each token stays where it is, as a guess at the residual connection.",
    )
    row: RowChoice = setting(
        "readout",
        "Whose attention is read: that of the token that the output is read from (readout), "
        "or the mean over all tokens.",
    )

    needs: ClassVar[Needs] = Needs.ATTENTION
    signed: ClassVar[bool] = False
    price: ClassVar[str] = "One forward pass, with attention maps kept; no backward pass."
    misleads: ClassVar[str] = (
        "It has no sign and does not depend on the target: it says where the model looked, "
        "not what it concluded. Much of it goes to special tokens."
    )

    def __call__(self, trace: Trace) -> Float[Tensor, "ask token"]:
        return aggregated(trace, self.head, self.layer, self.residual, self.row)
