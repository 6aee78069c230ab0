"""Attention, averaged over heads."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from whence.core.registry import Needs, method
from whence.trace.rows import Layers, RowChoice, attention_rows
from whence.trace.trace import Trace


@method("attention-mean", version=1, cites="lopardo2024attention")
@dataclass(frozen=True, slots=True)
class AttentionMean:
    """The attention weight that the read-out token gives to each token, averaged over heads (α-avg).

    ``layer`` is a number from 0, ``"last"``, or ``"all"`` for the mean over layers. ``row`` is the read-out token's row, or the
    mean over all rows.
    """

    layer: Layers = "last"
    row: RowChoice = "readout"

    needs: ClassVar[Needs] = Needs.ATTENTION
    signed: ClassVar[bool] = False

    def __call__(self, trace: Trace) -> Float[Tensor, "batch token"]:
        return attention_rows(trace, self.layer, self.row).mean((0, 2))
