"""Attention, the largest over heads."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.passage import Passage
from whence.core.registry import Needs, method
from whence.core.scores import Scores
from whence.trace.rows import Layers, RowChoice, aggregated, attention_rows, layers_together
from whence.trace.trace import Trace


@method("attention-max", version=2, cites="schwenke2021show")
@dataclass(frozen=True, slots=True)
class AttentionMax:
    """The largest attention weight that any head of the read-out token gives to each word (α-max).

    The pieces of a split word are summed first, head by head: a word's score is the largest share
    that one head gives it. ``layer`` is a number from 0, ``"last"``, or how the layers are brought
    together: ``"max"`` (also ``"all"``), ``"mean"`` or ``"sum"`` entry by entry, ``"product"`` as
    matrices of the largest head's weights, later layers on the left. ``residual`` lets half of each
    token stay where it is; with it, and with a product, the pieces of a word are summed last.
    ``row`` is the read-out token's row, or the mean over all rows.
    """

    layer: Layers = "last"
    residual: bool = False
    row: RowChoice = "readout"

    needs: ClassVar[Needs] = Needs.ATTENTION
    signed: ClassVar[bool] = False

    def __call__(self, trace: Trace) -> Float[Tensor, "ask token"] | list[Scores]:
        layer = "max" if self.layer == "all" else self.layer
        if layer == "product" or self.residual:
            return aggregated(trace, "max", layer, self.residual, self.row)
        rows = attention_rows(trace, self.layer, self.row)
        scores = []
        for i, passage in enumerate(trace.passages):
            by_unit = _summed_over_units(rows[:, i, :, : len(passage)], passage)
            largest = layers_together(by_unit.amax(1), layer)
            scores.append(Scores(units=largest.double().cpu().numpy()))
        return scores


def _summed_over_units(
    rows: Float[Tensor, "layer head token"], passage: Passage
) -> Float[Tensor, "layer head unit"]:
    tokens = torch.tensor(np.flatnonzero(passage.unit_of >= 0), device=rows.device)
    unit = torch.tensor(passage.unit_of, device=rows.device)[tokens]
    empty = rows.new_zeros(*rows.shape[:2], len(passage.units))
    return empty.index_add_(-1, unit, rows[..., tokens])
