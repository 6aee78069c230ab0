"""The rows of attention that speak for the output."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.errors import SettingsError
from whence.trace.trace import Trace

Layers = int | Literal["last", "all"]
RowChoice = Literal["readout", "mean"]


def attention_rows(trace: Trace, layer: Layers, row: RowChoice) -> Float[Tensor, "layer batch head token"]:
    """Attention paid to each input token, at the chosen layers.

    ``readout`` takes the row of the token that the head reads (see ``Model.readout``), and the mean over rows where the model
    pools by the mean; ``mean`` takes the mean over rows anyway. An encoder-decoder speaks through its cross attention.
    """
    kind = "cross" if "cross" in trace.attentions else next(iter(trace.attentions))
    maps = trace.attentions[kind]
    if layer == "last":
        chosen = maps[-1:]
    elif layer == "all":
        chosen = maps
    elif -len(maps) <= layer < len(maps):
        chosen = (maps[layer],)
    else:
        raise SettingsError(f"layer {layer} is outside the {len(maps)} layers of {kind} attention (0 to {len(maps) - 1}, 'last' or 'all').")
    rows = []
    for i, passage in enumerate(trace.passages):
        at = trace.model.readout(passage)
        if row == "readout" and at is not None:
            rows.append(torch.stack([m[i, :, at] for m in chosen]))
        else:
            queries = len(passage) if kind != "cross" or at is None else at + 1
            rows.append(torch.stack([m[i, :, :queries].mean(1) for m in chosen]))
    return torch.stack(rows, 1)
