"""The embeddings of a model's input: seen and replaced on their way in, and the mean of its vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor, nn

from whence.core.errors import ModelError
from whence.models.model import Batch, Model


@contextmanager
def embedded(model: Model, batch: Batch, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Let ``change`` see, and replace, the embeddings of the input tokens. The ids still go in, as poolers and positions read them."""
    hooked, here = model.input_embeddings, get_ident()
    leaf: list[Tensor] = []

    def on_input(_module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor:
        if (
            get_ident() != here
        ):  # another thread of the caller's runs the model: its embeddings are not ours to see or change
            return output
        if leaf:
            return on_decoder(_module, args, output)
        changed = change(output)
        leaf.append(changed if changed.shape == output.shape else changed[:, -output.shape[1] :])
        return leaf[0]

    def on_decoder(_module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor:
        if get_ident() != here:
            return output
        ids = batch.inputs.get("input_ids")
        twice = model.task == "classification"
        shifted = (
            twice
            and args
            and ids is not None
            and args[0].shape == ids.shape
            and bool((args[0][:, 1:] == ids[:, :-1]).all())
        )
        if (
            shifted and leaf
        ):  # a sequence-to-sequence classifier reads the text twice, the second time one place to the right
            return torch.cat([output[:, :1], leaf[0][:, :-1]], 1)
        return output.detach().requires_grad_(
            torch.is_grad_enabled()
        )  # so that gradients reach the decoder's own attention too

    handles = [hooked.register_forward_hook(on_input)]
    decoder = model.decoder_embeddings
    if decoder is not None and decoder is not hooked:
        handles.append(decoder.register_forward_hook(on_decoder))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
    if not leaf:
        raise ModelError(
            f"{type(model.hf).__name__} never called its input embeddings, so there is nothing to attribute to."
        )


_means: WeakKeyDictionary[nn.Module, tuple[tuple[int, int], Tensor]] = WeakKeyDictionary()


def mean_embedding(model: Model) -> Float[Tensor, " dim"]:
    """The mean over the vocabulary of what the embedding module gives out (some scale it). Remembered until the table changes."""
    table = model.input_embeddings.get_parameter("weight")
    version = (table.data_ptr(), table._version)
    known = _means.get(model.input_embeddings)
    if known is None or known[0] != version:
        known = _means[model.input_embeddings] = (version, _mean_of_outputs(model, len(table)))
    return known[1]


def _mean_of_outputs(model: Model, size: int) -> Float[Tensor, " dim"]:
    with model.lock, torch.no_grad():
        pieces = torch.arange(size, device=model.device).split(4096)
        return (
            torch.stack(
                [model.input_embeddings(ids[None])[0].sum(0, dtype=torch.float64) for ids in pieces]
            ).sum(0)
            / size
        )
