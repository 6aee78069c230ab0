"""Attention, the largest over heads."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.passage import Passage
from whence.core.registry import Needs, method, setting
from whence.core.scores import Scores
from whence.trace.rows import Layers, RowChoice, aggregated, attention_rows, layers_together
from whence.trace.trace import Trace


@method("attention-max", version=2, cites="schwenke2021show", aliases=("max-attention",))
@dataclass(frozen=True, slots=True)
class AttentionMax:
    """The largest attention weight that any head gives to a word where the output is read (α-max).

    The pieces of a split word are summed first, head by head: a word's score is the largest share
    that one head gives it. ``layer="product"`` multiplies matrices of the largest head's weights,
    later layers on the left; with it, and with ``residual``, the pieces of a word are summed last.
    """

    layer: Layers = setting(
        "last",
        "The layer: a number from 0, last, or how all layers are combined: max (or all), "
        "mean, sum, product.",
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
        "It has no sign and does not depend on the target: it says where the model looked. "
        "One head out of many is enough for a large score, whether or not the output uses "
        "that head."
    )

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
