"""What is lost without a head: its output set to zero, behind the attention.

Of one text, all heads of a layer in one batch (``effects_of_heads``); of many texts, any sets of
heads, a different one in each row of a batch (``run_without``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.audit import Place
from whence.core.errors import InputError, Unsupported
from whence.core.passage import Passage
from whence.core.request import Ask
from whence.core.target import Target
from whence.models.model import Model
from whence.trace.attention import check_editable
from whence.trace.edits import Edit
from whence.trace.forecast import attention_shape
from whence.trace.reducers import Block, Join
from whence.trace.trace import RERUN_TOKENS, Trace, trace


def effects_of_heads(
    model: Model, passage: Passage, target: Target | str | int | None, seen: Trace
) -> dict[str, dict[str, np.ndarray]]:
    """By kind: the change of the target's value without each head, and of the probabilities.

    The change of the probabilities is their total variation (see ``output_change``), which a
    regression does not have. Costs one forward pass for each head, and one for the whole model.
    """
    shape = shape_of_heads(model)
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


def shape_of_heads(model: Model) -> dict[str, tuple[int, int]]:
    """Layers and heads of each kind, of a model whose heads can be switched off; else an error."""
    check_editable(model.hf)
    shape = attention_shape(model)
    if not shape:
        raise Unsupported(
            f"the heads of {type(model.hf).__name__} cannot be switched off one by one: "
            "its configuration does not say how many there are."
        )
    return shape


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
    rows = torch.arange(len(heads), device="cpu")
    return _switched_off(layer, kind, rows, heads, len(heads))


def without_sets(sets: Sequence[Collection[Place]]) -> list[Edit]:
    """Edits that switch off the heads ``sets[b]`` in row b of the batch.

    There is one for each layer at which a row loses a head. An empty set leaves its row whole.

    >>> edits = without_sets([{Place(0, 1), Place(2, 0)}, set(), {Place(0, 3)}])
    >>> [edit.layer for edit in edits]
    [0, 2]
    """
    by_layer: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for row, places in enumerate(sets):
        for place in places:
            if place.layer is None or place.head is None:
                raise InputError(f"{place} is no single head: name its layer and its head.")
            by_layer.setdefault((place.layer, place.kind), []).append((row, place.head))

    edits = []
    for layer, kind in sorted(by_layer):
        rows, heads = torch.tensor(by_layer[layer, kind], device="cpu").T
        edits.append(_switched_off(layer, kind or None, rows, heads, len(sets)))
    return edits


def _switched_off(layer: int, kind: str | None, rows: Tensor, heads: Tensor, batch: int) -> Edit:
    """An edit that switches off ``heads[i]`` in row ``rows[i]``, for each i."""

    def change(
        output: Float[Tensor, "batch query head dim"],
    ) -> Float[Tensor, "batch query head dim"]:
        _check_fits(output, layer, heads, batch)
        keep = output.new_ones(output.shape[0], 1, output.shape[2], 1)
        keep[rows, 0, heads] = 0
        return output * keep

    return Edit("without each head", "output", change, layer, None, kind)


def _check_fits(output: Tensor, layer: int, heads: Tensor, batch: int) -> None:
    """Heads that are there, in rows that are texts."""
    rows, _, count, _ = output.shape
    if rows != batch:
        raise Unsupported(
            f"attention has {rows} rows where {batch} texts went in, so heads cannot be switched "
            "off text by text."
        )
    last = int(heads.max())
    if int(heads.min()) < 0 or last >= count:
        raise InputError(
            f"layer {layer} has the heads 0 to {count - 1}, and head "
            f"{last if last >= count else int(heads.min())} was to be switched off."
        )


@dataclass(frozen=True)
class _OneWeight:
    """A weight of each head, which tells how many heads a layer has."""

    join: ClassVar[Join] = "first"

    def __call__(self, block: Block) -> Float[Tensor, "batch head"]:
        return block.weights[:, :, 0, 0].clone()


@dataclass(frozen=True, eq=False)
class Rows:
    """What the model said of some of the asks, by their numbers in the list that was given."""

    numbers: list[int]
    logits: Float[Tensor, "row label"]
    heads: tuple[Place, ...] = ()  # of the whole model: every one that it has


def run_whole(
    model: Model, asks: Sequence[Ask], tokens_per_batch: int = RERUN_TOKENS
) -> Iterator[Rows]:
    """What the whole model says, batch by batch, and which heads it has.

    It runs by the same arithmetic as ``run_without``, and not by its own fast attention, so that
    the two can be subtracted. One forward pass for each text, equal ones once in a batch.
    """
    shape_of_heads(model)
    for group in model.groups([ask.passage for ask in asks], tokens_per_batch):
        traced = trace(
            model,
            [asks[i] for i in group],
            reducers={"heads": _OneWeight()},
            attention_via="interface",
        )
        yield Rows(group, traced.logits, _heads_of(traced))


def _heads_of(traced: Trace) -> tuple[Place, ...]:
    """Every head, as a place; the kind is named where there are several."""
    per_kind = traced.reduced["heads"]
    places = []
    for kind, layers in per_kind.items():
        name = kind if len(per_kind) > 1 else ""
        for layer, weights in enumerate(layers):
            places += [Place(layer, head, name) for head in range(weights.shape[1])]
    return tuple(places)


def run_without(
    model: Model,
    asks: Sequence[Ask],
    sets: Sequence[Collection[Place]],
    tokens_per_batch: int = RERUN_TOKENS,
) -> Iterator[Rows]:
    """What the model says of ask i without the heads ``sets[i]``, batch by batch.

    No set is empty: ``run_whole`` is for that. Asks of several texts and sets share a batch, as far
    as the model allows that. One forward pass for each ask.
    """
    shape_of_heads(model)
    for group in model.groups([ask.passage for ask in asks], tokens_per_batch):
        edits = without_sets([sets[i] for i in group])
        traced = trace(model, [asks[i] for i in group], edits=edits, attention_via="interface")
        yield Rows(group, traced.logits)
