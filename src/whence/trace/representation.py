"""What the head of a classifier reads: one vector for each text.

It is the input of the last linear map whose outputs are as many as the labels, found while the
model runs, whatever its family calls it.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import get_ident
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from whence.core.errors import Unsupported
from whence.models.batches import Batch
from whence.models.model import Model
from whence.models.unbroken import each, in_one_piece, put_back

Call = tuple[Tensor, Tensor]  # what a linear map was given, and what it made of it


@in_one_piece
def _calls_of_heads(model: Model, calls: list[Call]) -> Iterator[None]:
    """Note what every linear map with as many outputs as labels is given, in order."""
    here, labels = get_ident(), len(model.labels)

    def note(_module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if get_ident() == here and args and isinstance(output, Tensor):
            calls.append((args[0].detach(), output.detach()))

    handles: list[RemovableHandle] = []
    with put_back(lambda: each(RemovableHandle.remove, handles)):
        for module in model.hf.modules():
            if isinstance(module, nn.Linear) and module.out_features == labels:
                handles.append(module.register_forward_hook(note))
        yield


def representations(model: Model, batch: Batch) -> Float[Tensor, "row width"]:
    """The vectors that the head reads for the rows of a batch, from one forward pass.

    To be called under the model's lock, with the model untouched and in inference mode.
    """
    calls: list[Call] = []
    with _calls_of_heads(model, calls):
        logits = model.read(model.run(batch.inputs), batch)
    if not calls:
        raise Unsupported(
            f"{type(model.hf).__name__} has no linear map to its {len(model.labels)} labels, so "
            "there is no one vector that its head reads; the gauge is for classifiers with such "
            "a head."
        )
    given, scores = calls[-1]
    if given.ndim == 2 and len(given) == len(logits):
        return given.double()
    if given.ndim == 3 and len(given) == len(logits):
        return _where_read(model, given, scores, logits)
    raise Unsupported(
        f"the head of {type(model.hf).__name__} reads a tensor of shape {tuple(given.shape)} for "
        f"{len(logits)} texts, which is not one vector for each of them."
    )


def _where_read(
    model: Model,
    given: Float[Tensor, "row token width"],
    scores: Float[Tensor, "row token label"],
    logits: Float[Tensor, "row label"],
) -> Float[Tensor, "row width"]:
    """Where the head scores every token, as a decoder's does: the token that the logits are of."""
    distance = (scores - logits[:, None]).abs().amax(-1)  # row token
    if bool((distance.amin(1) > 0).any()):
        raise Unsupported(
            f"{type(model.hf).__name__} scores every token, and its logits are those of none of "
            "them, so there is no one vector that its head reads."
        )
    # several tokens of equal scores are equal for the head: the last is the one that decoders read
    last = scores.shape[1] - 1 - distance.flip(1).argmin(1)
    return given[torch.arange(len(given), device=given.device), last].double()
