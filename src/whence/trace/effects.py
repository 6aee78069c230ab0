"""What is lost without a head: its output set to zero, all heads of a layer in one batch."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.errors import Unsupported
from whence.core.passage import Passage
from whence.core.request import Ask
from whence.core.target import Target
from whence.models.model import Model
from whence.trace.attention import check_editable
from whence.trace.edits import Edit
from whence.trace.forecast import attention_shape
from whence.trace.trace import Trace, trace


def effects_of_heads(
    model: Model, passage: Passage, target: Target | str | int | None, seen: Trace
) -> dict[str, dict[str, np.ndarray]]:
    """By kind: the change of the target's value without each head, and of the probabilities.

    The change of the probabilities is their total variation (see ``output_change``), which a
    regression does not have. Costs one forward pass for each head, and one for the whole model.
    """
    shape = attention_shape(model)
    check_editable(model.hf)
    if not shape:
        raise Unsupported(
            f"the heads of {type(model.hf).__name__} cannot be switched off one by one: "
            "its configuration does not say how many there are."
        )
    plain = trace(model, [passage], target)
    effects = {}
    for kind, layers in seen.layers.items():
        heads = shape[kind][1]
        value = np.zeros((len(layers), heads))
        output = np.zeros((len(layers), heads))
        for layer in layers:
            at_once = heads if model.shares_batches else 1
            for group in torch.arange(heads, device="cpu").split(at_once):
                changed = _run_without(plain, layer.index, kind, group)
                where = layer.index, group.numpy()
                value[where] = _value_change(plain, changed)
                output[where] = _output_change(plain, changed)

        effects[kind] = {"value_change": value}
        if not model.is_regression:
            effects[kind]["output_change"] = output
    return effects


def _run_without(plain: Trace, layer: int, kind: str, heads: Tensor) -> Trace:
    """The passage once for each head, without that head."""
    ask = Ask(plain.passages[0], plain.targets[0])
    return trace(plain.model, [ask] * len(heads), edits=[without(layer, kind, heads)])


def _value_change(plain: Trace, changed: Trace) -> Float[np.ndarray, " head"]:
    change = changed.values.double() - plain.values.double()
    return change.cpu().numpy()


def _output_change(plain: Trace, changed: Trace) -> Float[np.ndarray, " head"]:
    change = plain.model.change(plain.logits.double(), changed.logits.double())
    return change.cpu().numpy()


def without(layer: int, kind: str, heads: Tensor) -> Edit:
    """An edit that switches off ``heads[b]`` in row b of the batch."""

    def change(
        output: Float[Tensor, "batch query head dim"],
    ) -> Float[Tensor, "batch query head dim"]:
        keep = output.new_ones(output.shape[0], 1, output.shape[2], 1)
        keep[torch.arange(len(heads), device="cpu"), 0, heads] = 0
        return output * keep

    return Edit("without each head", "output", change, layer, None, kind)
