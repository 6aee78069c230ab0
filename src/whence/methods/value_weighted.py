"""Attention weighted by the size of what it reads."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from whence.core.registry import Needs, method, setting
from whence.trace.rows import EntrywiseLayers, RowChoice, layers_together, speaking_rows
from whence.trace.trace import Trace


@method(
    "value-weighted",
    version=1,
    cites="kobayashi2020attention",
    aliases=("value-weighted-attention", "norm-based-attention"),
)
@dataclass(frozen=True, slots=True)
class ValueWeighted:
    """Attention times the size of what is read (the value vector), averaged over heads.

    So a large weight on nothing counts nothing. The norm is that of the head's own value, before
    the output projection.
    """

    layer: EntrywiseLayers = setting(
        "last",
        "The layer: a number from 0, last, or how all layers are combined: mean (or all), "
        "max, sum.",
    )
    row: RowChoice = setting(
        "readout",
        "Whose attention is read: that of the token that the output is read from (readout), "
        "or the mean over all tokens.",
    )

    needs: ClassVar[Needs] = Needs.VALUE_WEIGHTED
    signed: ClassVar[bool] = False
    price: ClassVar[str] = "One forward pass; no backward pass."
    misleads: ClassVar[str] = (
        "It has no sign and does not depend on the target: it says how much was read where. "
        "Scores are not comparable between layers or models."
    )

    def __call__(self, trace: Trace) -> Float[Tensor, "ask token"]:
        rows = speaking_rows(trace, trace.value_weighted, self.layer, self.row)
        return layers_together(rows, self.layer)
