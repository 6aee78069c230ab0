"""A language model's head, run only at the places where a batch is read.

The head is a large part of a model with a large vocabulary, and it stands for nothing at most
places of a text: of a prompt of 64 tokens and 32 written ones, 32 are read, and of a next token
one. So what the model hands to its head is cut down to these places. That holds for any model whose
head treats each place by itself; whether it does is tried once for a model object, on a short text.
Another one computes the logits of all places, as it would by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from threading import get_ident
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from whence.core.errors import WhenceError
from whence.models.batches import Batch
from whence.models.conduct import outputs_differ, tolerance
from whence.models.passing import run
from whence.models.sample import samples_of_two_lengths
from whence.models.unbroken import each, in_one_piece, put_back, unbroken
from whence.models.untouched import untouched
from whence.models.writing import written_after

if TYPE_CHECKING:
    from whence.models.model import Model

WRITTEN = 2  # tokens of the text on which it is tried


@dataclass(frozen=True, eq=False)
class Pass:
    """One forward pass of a batch.

    ``batch`` says where the logits that were computed are read, and ``states`` is what the head was
    given there; None where it was given all places.
    """

    outputs: Any
    batch: Batch
    states: Float[Tensor, "row output width"] | None = None


def run_batch(model: Model, batch: Batch, **more: Any) -> Pass:
    """One forward pass, with logits only where the batch is read, if it says that this is right.

    >>> import whence
    >>> model = whence.load("writer")
    >>> passed = run_batch(model, model.batch([model.encode("Once upon a time")]))
    >>> passed.outputs.logits.shape[1]
    1
    """
    if not batch.speaks_where_read:
        return Pass(run(model.hf, batch.inputs, **more), batch)
    given: list[Tensor] = []
    with _only_where_read(model, batch, given):
        outputs = run(model.hf, batch.inputs, **more)
    if not given:
        return Pass(outputs, batch)
    (states,) = given
    places = torch.arange(states.shape[1], device=states.device).expand(states.shape[:2])
    assert batch.readout is not None
    own = replace(batch, readout=places.reshape(batch.readout.shape), speaks_where_read=False)
    return Pass(outputs, own, states)


@in_one_piece
def _only_where_read(model: Model, batch: Batch, given: list[Tensor]) -> Iterator[None]:
    """Cut down what the head is given to the places of the readout, and note it."""
    here, readout = get_ident(), batch.readout
    head = _head(model)
    assert head is not None  # else the batch does not ask for this
    assert readout is not None
    rows = torch.arange(len(readout), device=readout.device)[:, None]
    places = readout if readout.ndim == 2 else readout[:, None]
    size = len(readout), _places(batch)

    def pick(_module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        # another thread of the caller's runs the model
        if get_ident() != here or given or not args:
            return None
        states = args[0]
        if not isinstance(states, Tensor) or states.ndim != 3 or states.shape[:2] != size:
            return None
        given.append(states[rows, places])
        return given[0], *args[1:]

    handles: list[RemovableHandle] = []
    with put_back(lambda: each(RemovableHandle.remove, handles)):
        handles.append(head.register_forward_pre_hook(pick))
        yield


def _head(model: Model) -> nn.Module | None:
    """The module that makes logits of states, by the model's own word."""
    find = getattr(model.hf, "get_output_embeddings", None)
    head = find() if find is not None else None
    return head if isinstance(head, nn.Module) else None


def _places(batch: Batch) -> int:
    """How many tokens each row has on the side that writes."""
    ids = batch.inputs.get("decoder_input_ids")
    return (batch.inputs["input_ids"] if ids is None else ids).shape[1]


# by model object
_tried: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()


def speaks_where_read(model: Model) -> bool:
    """Whether the head says the same of some places as of all: two short passes tell, once.

    >>> import whence
    >>> speaks_where_read(whence.load("writer"))
    True
    """
    if not model.kind.generates:
        return False
    if model.hf not in _tried:
        with model.lock:
            _tried[model.hf] = _says_the_same(model)
    return _tried[model.hf]


def _says_the_same(model: Model) -> bool:
    if _head(model) is None:
        return False
    try:
        prompt = samples_of_two_lengths(model)[0]
        passage = written_after(model, prompt, prompt.ids[-WRITTEN:])
        batch = model.kind.batch(model, [passage])
        with untouched(model.hf), unbroken(torch.inference_mode()):
            everywhere = model.read(run(model.hf, batch.inputs), batch)
            passed = run_batch(model, replace(batch, speaks_where_read=True))
            if passed.states is None:
                return False
            where_read = model.read(passed.outputs, passed.batch)
    except WhenceError:
        return False
    if where_read.shape != everywhere.shape:
        return False
    return outputs_differ(where_read, everywhere) <= tolerance(model.dtype)
