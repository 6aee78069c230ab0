"""What is lost without a head: its output set to zero, one head at a time, all heads of a layer in one batch."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.errors import Unsupported
from whence.core.passage import Passage
from whence.core.target import Target
from whence.models.model import Model
from whence.trace.attention import can_observe
from whence.trace.edits import Edit
from whence.trace.forecast import attention_shape
from whence.trace.trace import Trace, trace


def effects_of_heads(
    model: Model, passage: Passage, target: Target | str | int | None, seen: Trace
) -> dict[str, dict[str, np.ndarray]]:
    """By kind: the change of the target's value without each head, and the total variation of the probabilities.

    Costs one forward pass for each head, and one for the whole model.
    """
    shape = attention_shape(model)
    if not shape or not can_observe(model.hf):
        raise Unsupported(
            f"the heads of {type(model.hf).__name__} cannot be switched off one by one: its attention cannot be edited."
        )
    plain = trace(model, [passage], target)
    wanted = list(plain.targets)
    before = model.probabilities(plain.logits.double())[0]
    out = {}
    for kind, layers in seen.layers.items():
        count = shape[kind][1]
        value, output = np.zeros((len(layers), count)), np.zeros((len(layers), count))
        for layer in layers:
            for group in torch.arange(count).split(count if model.pads else 1):
                t = trace(
                    model,
                    [passage] * len(group),
                    wanted * len(group),
                    edits=[without(layer.index, kind, group)],
                )
                heads = group.numpy()
                value[layer.index, heads] = (
                    (t.values.double() - plain.values.double()).cpu().numpy()
                )
                change = (model.probabilities(t.logits.double()) - before).abs()
                output[layer.index, heads] = (
                    (change.amax(-1) if model.several_labels else 0.5 * change.sum(-1))
                    .cpu()
                    .numpy()
                )
        out[kind] = (
            {"value_change": value}
            if model.is_regression
            else {"value_change": value, "output_change": output}
        )
    return out


def without(layer: int, kind: str, heads: Tensor) -> Edit:
    """An edit that switches off ``heads[b]`` in row b of the batch."""

    def change(
        output: Float[Tensor, "batch query head dim"],
    ) -> Float[Tensor, "batch query head dim"]:
        keep = output.new_ones(output.shape[0], 1, output.shape[2], 1)
        keep[torch.arange(len(heads)), 0, heads] = 0
        return output * keep

    return Edit("without each head", "output", change, layer, None, kind)
