"""Batches: passages of like length as padded tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from whence.core.errors import InputError, Unsupported
from whence.core.passage import Passage
from whence.models.images import embedded_patches, reads_regions

if TYPE_CHECKING:
    from whence.models.model import Model


@dataclass(frozen=True)
class Batch:
    """Several passages as tensors, padded to one length, with the position at which each is read."""

    inputs: dict[str, Tensor]
    lengths: list[int]
    readout: Tensor | None


def batch_of(model: Model, passages: Sequence[Passage]) -> Batch:
    """Pad on the right, mask the padding, and note where each passage is read."""
    lengths = [len(p) for p in passages]
    if model.task == "image":
        pixels = torch.from_numpy(np.stack([p.pixels for p in passages if p.pixels is not None]))
        return Batch({"pixel_values": pixels.to(model.device, model.dtype)}, lengths, None)
    if model.task == "image-text":
        return Batch(_with_picture(model, passages), lengths, None)
    inputs = _ids_and_mask(model, [p.ids for p in passages], "")
    if passages[0].types is not None:
        inputs["token_type_ids"] = _padded(model, [p.types for p in passages], 0)
    readout: list[int] | None = None
    if model.is_encoder_decoder and model.task != "classification":
        replies = [
            [model.decoder_start]
            if p.reply is None
            else [model.decoder_start, *p.reply.still_open().ids.tolist()]
            for p in passages
        ]
        inputs |= _ids_and_mask(model, replies, "decoder_")
        readout = [len(r) - 1 for r in replies]
    elif model.task == "causal":
        readout = [n - 1 for n in lengths]
    elif model.task == "masked":
        readout = [p.readout or 0 for p in passages]
    return Batch(
        inputs, lengths, None if readout is None else torch.tensor(readout, device=model.device)
    )


def _with_picture(model: Model, passages: Sequence[Passage]) -> dict[str, Tensor]:
    """Texts and their images, of one size: padding would stand between the two, and no token would be where its passage has it."""
    if len({(int(p.of_text.sum()), len(p)) for p in passages}) > 1:
        raise Unsupported(
            "texts with images of several sizes do not share a batch; trace them one at a time, as whence.explain does."
        )
    inputs = _ids_and_mask(model, [p.ids[p.of_text] for p in passages], "")
    types = [p.types[p.of_text] for p in passages if p.types is not None]
    if types:
        inputs["token_type_ids"] = _padded(model, types, 0)
    if reads_regions(model):
        regions = [p.regions for p in passages if p.regions is not None]
        if len(regions) == len(passages):
            features, boxes = (
                np.stack([r.features for r in regions]),
                np.stack([r.boxes for r in regions]),
            )
            inputs["visual_feats"] = torch.from_numpy(features).to(model.device, model.dtype)
            inputs["visual_pos"] = torch.from_numpy(boxes).to(model.device, model.dtype)
            return inputs
    elif all(p.pixels is not None for p in passages):
        inputs["image_embeds"] = torch.cat(
            [embedded_patches(model, p.pixels) for p in passages if p.pixels is not None]
        )
        inputs["pixel_mask"] = torch.ones(
            inputs["image_embeds"].shape[:2], dtype=torch.int64, device=model.device
        )
        return inputs
    raise InputError(
        "this model reads a text with an image: model.encode(text, image=…) makes its passage."
    )


def _ids_and_mask(model: Model, rows: Sequence[Any], prefix: str) -> dict[str, Tensor]:
    ones = [np.ones(len(r), dtype=np.int64) for r in rows]
    return {
        f"{prefix}input_ids": _padded(model, rows, model.pad_id),
        f"{prefix}attention_mask": _padded(model, ones, 0),
    }


def _padded(model: Model, rows: Sequence[Any], value: int) -> Tensor:
    table = np.full((len(rows), max(len(r) for r in rows)), value, dtype=np.int64)
    for row, content in zip(table, rows, strict=True):
        row[: len(content)] = content
    return torch.from_numpy(table).to(model.device)


def groups_of(lengths: Sequence[int], tokens_per_batch: int) -> list[list[int]]:
    """Indices that share a batch: of like length, within a budget of padded tokens; each alone where the budget is nothing.

    >>> groups_of([5, 90, 6], 20)
    [[0, 2], [1]]
    """
    groups: list[list[int]] = []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if groups and lengths[i] * (len(groups[-1]) + 1) <= tokens_per_batch:
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups
