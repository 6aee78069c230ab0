"""Attention, the largest over heads."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from whence.core.registry import Needs, method
from whence.trace.rows import Layers, RowChoice, attention_rows
from whence.trace.trace import Trace


@method("attention-max", version=1, cites="schwenke2021show")
@dataclass(frozen=True, slots=True)
class AttentionMax:
    """The largest attention weight that any head of the read-out token gives to each token (α-max).

    ``layer`` is a number from 0, ``"last"``, or ``"all"`` for the largest over layers too. ``row`` is the read-out token's row, or the
    mean over all rows.
    """

    layer: Layers = "last"
    row: RowChoice = "readout"

    needs: ClassVar[Needs] = Needs.ATTENTION
    signed: ClassVar[bool] = False

    def __call__(self, trace: Trace) -> Float[Tensor, "batch token"]:
        return attention_rows(trace, self.layer, self.row).amax((0, 2))
