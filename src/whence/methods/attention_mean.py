"""Attention, averaged over heads."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from jaxtyping import Float
from torch import Tensor

from whence.core.registry import Needs, method
from whence.trace.rows import Layers, RowChoice, aggregated
from whence.trace.trace import Trace


@method("attention-mean", version=2, cites="lopardo2024attention")
@dataclass(frozen=True, slots=True)
class AttentionMean:
    """The attention that the read-out token gives to each token, averaged over heads (α-avg).

    ``layer`` is a number from 0, ``"last"``, or how the layers are brought together: ``"mean"``
    (also ``"all"``), ``"max"`` or ``"sum"`` entry by entry, ``"product"`` as matrices, later layers
    on the left. ``head`` takes one head instead of the mean. ``residual`` lets half of each token
    stay where it is. ``row`` is the read-out token's row, or the mean over all rows.
    """

    layer: Layers = "last"
    head: int | Literal["mean"] = "mean"
    residual: bool = False
    row: RowChoice = "readout"

    needs: ClassVar[Needs] = Needs.ATTENTION
    signed: ClassVar[bool] = False

    def __call__(self, trace: Trace) -> Float[Tensor, "ask token"]:
        return aggregated(trace, self.head, self.layer, self.residual, self.row)
