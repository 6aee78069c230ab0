"""Batches: passages of like length as padded tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from whence.core.passage import Passage

if TYPE_CHECKING:
    from whence.models.model import Model


@dataclass(frozen=True)
class Batch:
    """Several passages as tensors, padded to one length, and the position where each is read.

    Of written texts there is a position for each output. ``sources`` says how many tokens of each
    passage are the encoder's, where the others are the decoder's. ``speaks_where_read`` asks for
    logits at these positions alone (``models/speaking.py``).
    """

    inputs: dict[str, Tensor]
    lengths: list[int]
    readout: Tensor | None
    sources: list[int] | None = None
    speaks_where_read: bool = False


def batch_of_texts(
    model: Model,
    passages: Sequence[Passage],
    readout: Sequence[int] | Sequence[list[int]] | None = None,
) -> Batch:
    """Pad on the right, mask the padding, and note where each passage is read."""
    types = []
    if passages[0].types is not None:
        types = [p.types for p in passages]

    inputs = text_inputs(model, [p.ids for p in passages], types)
    lengths = [len(p) for p in passages]
    if readout is None:
        return Batch(inputs, lengths, None)
    return Batch(inputs, lengths, torch.tensor(_of_one_length(readout), device=model.device))


def _of_one_length(readout: Sequence[Any]) -> list[Any]:
    """Positions as they are; of texts with unequal numbers of outputs the last one is repeated."""
    if not isinstance(readout[0], list):
        return list(readout)
    most = max(map(len, readout))
    return [positions + positions[-1:] * (most - len(positions)) for positions in readout]


def before_outputs(passage: Passage) -> list[int]:
    """The token before each written one: there the model says what comes next."""
    assert passage.written is not None
    return list(range(passage.written - 1, len(passage) - 1))


def batch_with_replies(model: Model, passages: Sequence[Passage]) -> Batch:
    """The texts for the encoder, and for the decoder its start token and what it replied so far."""
    if passages[0].written is not None:
        return _batch_of_written(model, passages)
    replies = []
    for passage in passages:
        reply = [model.decoder_start]
        if passage.reply is not None:
            reply += passage.reply.still_open().ids.tolist()
        replies.append(reply)

    texts = batch_of_texts(model, passages, readout=[len(reply) - 1 for reply in replies])
    inputs = texts.inputs | _ids_and_mask(model, replies, "decoder_")
    return Batch(inputs, texts.lengths, texts.readout)


def _batch_of_written(model: Model, passages: Sequence[Passage]) -> Batch:
    """The texts for the encoder, and for the decoder its start token and all that was written."""
    sources = []
    for passage in passages:
        assert passage.written is not None
        sources.append(passage.written - 1)

    pairs = list(zip(passages, sources, strict=True))
    types = []
    if passages[0].types is not None:
        types = [p.types[:source] for p, source in pairs if p.types is not None]
    inputs = text_inputs(model, [p.ids[:source] for p, source in pairs], types)
    inputs |= _ids_and_mask(model, [p.ids[source:] for p, source in pairs], "decoder_")
    readout = _of_one_length([list(range(p.outputs)) for p in passages])
    lengths = [len(p) for p in passages]
    return Batch(inputs, lengths, torch.tensor(readout, device=model.device), sources)


def text_inputs(model: Model, ids: Sequence[Any], types: Sequence[Any]) -> dict[str, Tensor]:
    """What a model is given of texts.

    ``types`` are the segments of their tokens; none where the model does not read them.
    """
    inputs = _ids_and_mask(model, ids, "")
    if types:
        inputs["token_type_ids"] = _padded(model, types, 0)
    return inputs


def _ids_and_mask(model: Model, rows: Sequence[Any], prefix: str) -> dict[str, Tensor]:
    ones = [np.ones(len(row), dtype=np.int64) for row in rows]
    return {
        f"{prefix}input_ids": _padded(model, rows, model.pad_id),
        f"{prefix}attention_mask": _padded(model, ones, 0),
    }


def _padded(model: Model, rows: Sequence[Any], value: int) -> Tensor:
    longest = max(len(row) for row in rows)
    table = np.full((len(rows), longest), value, dtype=np.int64)
    for row, content in zip(table, rows, strict=True):
        row[: len(content)] = content
    return torch.from_numpy(table).to(model.device)


def groups_of(lengths: Sequence[int], tokens_per_batch: int) -> list[list[int]]:
    """Indices that share a batch: of like length, within a budget of padded tokens.

    Where the budget is nothing, each is alone.

    >>> groups_of([5, 90, 6], 20)
    [[0, 2], [1]]
    """
    shortest_first = sorted(range(len(lengths)), key=lambda i: lengths[i])
    groups: list[list[int]] = []
    for i in shortest_first:
        if groups and lengths[i] * (len(groups[-1]) + 1) <= tokens_per_batch:
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


def groups_of_one_length(lengths: Sequence[int], tokens_per_batch: int) -> list[list[int]]:
    """The same, where only rows of exactly one length share a batch.

    >>> groups_of_one_length([5, 6, 5], 20)
    [[0, 2], [1]]
    """
    of_length: dict[int, list[int]] = {}
    for i, length in enumerate(lengths):
        of_length.setdefault(length, []).append(i)

    groups: list[list[int]] = []
    for length in sorted(of_length):
        alike = of_length[length]
        at_once = max(1, tokens_per_batch // max(1, length))
        groups += [alike[first : first + at_once] for first in range(0, len(alike), at_once)]
    return groups
