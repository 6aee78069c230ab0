"""Hidden states at a block: read, or changed, while the model runs.

The hidden state of layer 3 is what block 3 hands on, before any norm that may follow: the residual
stream after that block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import get_ident
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from whence.core.errors import InputError, ModelError, Unsupported
from whence.core.passage import Passage
from whence.models.batches import Batch
from whence.models.blocks import block_at, blocks_of, side_of
from whence.models.model import TOKENS_PER_BATCH, Model
from whence.models.speaking import speaks_where_read
from whence.models.state import has_run
from whence.models.unbroken import each, in_one_piece, put_back, unbroken
from whence.models.untouched import untouched
from whence.trace.edits import Edit

Change = Callable[[Tensor], Tensor]
Sink = Callable[[Tensor], None]


def hidden_at(
    model: Model,
    passages: Sequence[Passage],
    layer: int,
    kind: str | None = None,
    *,
    tokens_per_batch: int = TOKENS_PER_BATCH,
) -> list[Float[Tensor, "token dim"]]:
    """The hidden states of each passage after a block, one row for each token, without padding.

    Special tokens are in their places. The model runs no further than that block.

    >>> import whence
    >>> model = whence.load("writer")
    >>> hidden_at(model, [model.encode("Once upon a time")], 3)[0].shape
    torch.Size([5, 192])
    """
    block_at(model, layer, kind)
    states: dict[int, Tensor] = {}
    with model.lock, untouched(model.hf), unbroken(torch.inference_mode()):
        for group in model.groups(passages, tokens_per_batch):
            batch = model.batch([passages[i] for i in group])
            rows = _states_of(model, batch, layer, kind)
            lengths = _lengths(model, batch, kind)
            _check_rows(model, rows, lengths)
            for i, row, length in zip(group, rows, lengths, strict=True):
                states[i] = row[:length]
    with unbroken(torch.inference_mode(False)):
        # copies made here are plain tensors, of which gradients may be taken
        return [states[i].clone() for i in range(len(passages))]


@contextmanager
def reading(model: Model, layer: int, sink: Sink, kind: str | None = None) -> Iterator[None]:
    """Let ``sink`` see the hidden states of every pass in the block: "batch token dim".

    With a cache, as in ``generate``, a pass has the new tokens only.

    >>> import whence
    >>> model, shapes = whence.load("writer"), []
    >>> with reading(model, 0, lambda h: shapes.append(tuple(h.shape))):
    ...     prediction = model.predict(["Once upon a time"])
    >>> shapes
    [(1, 5, 192)]
    """

    def see(states: Tensor) -> Tensor:
        sink(states.detach())
        return states

    with editing(model, layer, see, kind):
        yield


@contextmanager
def editing(model: Model, layer: int, change: Change, kind: str | None = None) -> Iterator[None]:
    """Let ``change`` replace the hidden states of every pass in the block: "batch token dim".

    The model stays locked for this thread, and is afterwards what it was, whatever happens.

    >>> import whence
    >>> model = whence.load("writer")
    >>> with editing(model, 3, lambda h: 0 * h):
    ...     changed = model.predict(["Once upon a time"])[0]
    >>> model.predict(["Once upon a time"])[0].label == changed.label
    False
    """
    block_at(model, layer, kind)
    # the head of a model is tried once, by passes that are not the caller's: not in this block
    speaks_where_read(model)
    with model.lock, untouched(model.hf), _hooked(model, layer, change, kind):
        yield


@contextmanager
def hidden_edits(model: Model, edits: Sequence[Edit]) -> Iterator[None]:
    """The edits of hidden states among these, for one pass of a trace."""
    own = [edit for edit in edits if edit.where == "hidden"]
    if not own:
        yield
        return
    places = []
    for edit in own:
        layers = range(len(blocks_of(model, edit.kind)))
        if edit.layer is not None:
            block_at(model, edit.layer, edit.kind)
            layers = range(edit.layer, edit.layer + 1)
        places += [(layer, edit.change, edit.kind) for layer in layers]
    with unbroken(*[_hooked(model, *place) for place in places]):
        yield


class _Enough(Exception):
    """The block has run, and nothing after it is wanted."""


def _states_of(
    model: Model, batch: Batch, layer: int, kind: str | None
) -> Float[Tensor, "row token dim"]:
    """One pass, which ends at the block."""
    seen: list[Tensor] = []
    # the first pass of a model is watched from its beginning to its end
    runs_on = not has_run(model.hf)

    def see(states: Tensor) -> Tensor:
        seen.append(states)
        if runs_on:
            return states
        raise _Enough

    with _hooked(model, layer, see, kind), suppress(_Enough):
        model.run(batch.inputs)
    if not seen:
        raise ModelError(
            f"{type(model.hf).__name__} never called block {layer}, so that there are no hidden "
            "states to read."
        )
    return seen[0]


@in_one_piece
def _hooked(model: Model, layer: int, change: Change, kind: str | None = None) -> Iterator[None]:
    """Hooks that let ``change`` see what the block hands on, in this thread alone."""
    blocks = blocks_of(model, kind)
    block = blocks[layer]
    turns = [i for i, other in enumerate(blocks) if other is block]
    own_turn = turns.index(layer)  # a block may run for several layers in turn
    here = get_ident()
    calls = [0]

    def begin(_module: nn.Module, _args: Any) -> None:
        if get_ident() == here:
            calls[0] = 0

    def on_output(_module: nn.Module, _args: Any, output: Any) -> Any:
        # another thread of the caller's runs the model
        if get_ident() != here:
            return output
        turn = calls[0] % len(turns)
        calls[0] += 1
        return _changed(model, output, change) if turn == own_turn else output

    handles: list[RemovableHandle] = []
    with put_back(lambda: each(RemovableHandle.remove, handles)):
        handles.append(model.hf.register_forward_pre_hook(begin))
        handles.append(block.register_forward_hook(on_output))
        yield


def _changed(model: Model, output: Any, change: Change) -> Any:
    """What a block hands on, with its hidden states changed: they come first, or are all of it."""
    states = output[0] if isinstance(output, (tuple, list)) and output else output
    if not isinstance(states, Tensor) or states.ndim != 3:
        what = tuple(states.shape) if isinstance(states, Tensor) else type(states).__name__
        raise Unsupported(
            f"a block of {type(model.hf).__name__} hands on {what}, which is not one vector for "
            "each token of each text."
        )
    changed = change(states)
    if not isinstance(changed, Tensor) or changed.shape != states.shape:
        what = tuple(changed.shape) if isinstance(changed, Tensor) else type(changed).__name__
        raise InputError(
            f"a change of hidden states of shape {tuple(states.shape)} gave back {what}; it must "
            "give back a tensor of the same shape."
        )
    if changed is states:
        return output
    changed = changed.to(states)
    if isinstance(output, (tuple, list)):
        return type(output)([changed, *output[1:]])
    return changed


def _lengths(model: Model, batch: Batch, kind: str | None) -> list[int]:
    """How many tokens each row has on that side, without padding."""
    name = "attention_mask"
    if model.is_encoder_decoder and side_of(model, kind) == "decoder":
        name = "decoder_attention_mask"
    mask = batch.inputs.get(name)
    if mask is None or mask.ndim != 2 or len(mask) != len(batch.lengths):
        return list(batch.lengths)
    return mask.sum(1).tolist()


def _check_rows(model: Model, rows: Tensor, lengths: Sequence[int]) -> None:
    """Refuse hidden states that do not stand for the tokens that went in."""
    if len(rows) == len(lengths) and rows.shape[1] >= max(lengths):
        return
    raise Unsupported(
        f"the hidden states of {type(model.hf).__name__} have the shape {tuple(rows.shape)} for "
        f"{len(lengths)} texts of up to {max(lengths)} tokens: not one vector for each token, as "
        "tokens are pooled, or the choices of a text are read apart."
    )
