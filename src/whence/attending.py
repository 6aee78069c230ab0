"""attend: the attention of every layer and head, as arrays over tokens or words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch

from whence.core.errors import InputError
from whence.core.maps import AttentionMaps, axis_of, membership
from whence.core.passage import Passage
from whence.core.registry import Needs
from whence.models.model import Model, Overflow
from whence.trace.reducers import ToUnits
from whence.trace.trace import Via, trace


def attend(
    model: Model,
    text: Any,
    *,
    pair: str | None = None,
    reply: str | None = None,
    units: Literal["word", "token", "sentence"] = "word",
    overflow: Overflow = "error",
    attention_via: Via = "auto",
) -> AttentionMaps:
    """The attention of every layer and head on one text, as arrays; sub-words merged into words.

    For an encoder-decoder, ``reply`` is the decoder's text, and there are three kinds of maps: encoder, decoder, cross.

    >>> import whence
    >>> maps = whence.attend(whence.load("sentiment"), "not bad")
    >>> bool(abs(maps.weights["encoder"].sum(-1) - 1).max() < 1e-5)
    True
    """
    if overflow == "window":
        raise InputError("attention maps are of one run; overflow is 'error' or 'truncate'.")
    if isinstance(text, Passage):
        passage = model.fitted(text, overflow)
        if units not in ("word", "token", passage.kind):
            raise InputError(f"this passage was cut into units of kind {passage.kind!r}; encode its text with units={units!r} instead.")
    else:
        passage = model.encode(text, pair, units=units, reply=reply, overflow=overflow)
    source = torch.from_numpy(membership(passage, units))[None].to(model.device)
    start, side = _decoder_side(model, passage)
    answer = None if side is None else torch.from_numpy(membership(side, units, before=1))[None].to(model.device)
    t = trace(
        model,
        [passage],
        needs=Needs.NOTHING,
        reducer=ToUnits(source.to(model.dtype), None if answer is None else answer.to(model.dtype)),
        attention_via=attention_via,
    )
    own = axis_of(passage, units)
    replied = own if side is None else axis_of(side, units, before=(start,))
    return AttentionMaps(
        passage=passage,
        weights={k: np.stack([m[0].float().cpu().numpy() for m in maps]) for k, maps in t.attentions.items()},
        from_axis={k: own if k == "encoder" or side is None else replied for k in t.attentions},
        to_axis={k: replied if k == "decoder" and side is not None else own for k in t.attentions},
        modules={k: tuple(layer.module for layer in layers) for k, layers in t.layers.items()},
    )


def _decoder_side(model: Model, passage: Passage) -> tuple[str, Passage | None]:
    """What stands on the decoder's side: its start token, and the reply (nothing, or a classifier's own text, moved on by one)."""
    if not model.is_encoder_decoder:
        return "", None
    start = str(model.tokenizer.convert_ids_to_tokens(int(model.decoder_start)))
    if model.task == "classification":
        keep = np.arange(len(passage) - 1)
        moved = replace(
            passage,
            ids=passage.ids[keep],
            tokens=passage.tokens[:-1],
            spans=passage.spans[keep],
            parts=passage.parts[keep],
            unit_of=passage.unit_of[keep],
        )
        return start, moved
    empty = replace(passage, ids=passage.ids[:0], tokens=(), spans=passage.spans[:0], parts=passage.parts[:0], unit_of=passage.unit_of[:0])
    return start, empty if passage.reply is None else passage.reply.still_open()
