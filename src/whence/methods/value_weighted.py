"""Attention weighted by the size of what it reads."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.registry import Needs, method
from whence.trace.rows import (
    EntrywiseLayers,
    RowChoice,
    chosen_layers,
    layers_together,
    readout_row,
    speaking_kind,
)
from whence.trace.trace import Trace


@method("value-weighted", version=1, cites="kobayashi2020attention")
@dataclass(frozen=True, slots=True)
class ValueWeighted:
    """Attention times the norm of the value vector that it weights, averaged over heads.

    So a large weight on nothing counts nothing. ``layer`` is a number from 0, ``"last"``, or how
    layers are brought together, entry by entry (``"all"`` is their mean). ``row`` is the read-out
    token's row, or the mean over all rows. The norm is that of the head's own value, before the
    output projection.
    """

    layer: EntrywiseLayers = "last"
    row: RowChoice = "readout"

    needs: ClassVar[Needs] = Needs.VALUE_WEIGHTED
    signed: ClassVar[bool] = False

    def __call__(self, trace: Trace) -> Float[Tensor, "ask token"]:
        kind = speaking_kind(tuple(trace.value_weighted))
        maps = trace.value_weighted[kind]
        chosen = [maps[n] for n in chosen_layers(len(maps), self.layer, kind)]
        rows = []
        for i in range(len(trace.passages)):
            by_layer = [readout_row(trace, i, layer[i], self.row, kind) for layer in chosen]
            rows.append(torch.stack(by_layer))
        return layers_together(torch.stack(rows, 1), self.layer)
