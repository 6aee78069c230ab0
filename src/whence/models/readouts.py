"""Where a model's output is read: the token whose row of attention speaks for it, and its logits.

The tasks choose among these functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from whence.core.errors import Unsupported
from whence.core.passage import Passage
from whence.models.batches import Batch

if TYPE_CHECKING:
    from whence.models.model import Model


# Where a head was found to read: the token of this number, the last one, or all of them.
Readout = int | Literal["last", "all"]


def found(place: Readout, passage: Passage) -> int | None:
    """The token that stands there in a passage; None for all of them."""
    if place == "all":
        return None
    if place == "last":
        return len(passage) - 1
    return min(place, len(passage) - 1)


def pooled(model: Model, _passage: Passage) -> int | None:
    """The classification token in front; None where the head reads the mean of all tokens."""
    config = model.config
    pools_by_mean = getattr(config, "classifier_pooling", "cls") == "mean"
    if pools_by_mean or getattr(config, "use_mean_pooling", False):
        return None
    return 0


def last_token(_model: Model, passage: Passage) -> int:
    """The last token of a decoder that writes."""
    return len(passage) - 1


def last_unpadded(model: Model, passage: Passage) -> int:
    """The token that a decoder with another head reads: its last one that is no padding.

    It looks for the padding's id, so that a text which ends in that very token is read before it.
    """
    pad = model.config.get_text_config().pad_token_id
    if pad is None:
        return len(passage) - 1
    return int(np.flatnonzero(passage.ids != pad)[-1])


def decoder_position(_model: Model, passage: Passage) -> int:
    """The place on the decoder's side that writes next: its start token, or the reply's end."""
    if passage.reply is None:
        return 0
    return len(passage.reply.still_open())


def rows_read(model: Model, outputs: Any, batch: Batch) -> Float[Tensor, "batch *output label"]:
    """The logits of each passage, at its readout where there is one for each token."""
    return at_readout(model, getattr(outputs, "logits", None), batch)


def at_readout(
    model: Model, logits: Tensor | None, batch: Batch
) -> Float[Tensor, "batch *output label"]:
    """The logits at each passage's readout; an error where the model has none.

    Of written texts they are those at every output.
    """
    if logits is None:
        raise Unsupported(
            f"{type(model.hf).__name__} has no head, so there is no logit to explain; "
            "only attention can be shown."
        )
    readout = batch.readout
    if readout is None:
        return logits
    row = torch.arange(len(logits), device=logits.device)
    if readout.ndim == 1:
        return logits[row, readout]
    if readout.shape == logits.shape[:2]:
        every = torch.arange(readout.shape[1], device=readout.device)
        if bool((readout == every).all()):
            return logits  # of a vocabulary, a copy would be the largest thing of all
    return logits[row[:, None], readout]


def unmoved(
    _passage: Passage, _tokens: Int[np.ndarray, "mask place"], _seen: Bool[np.ndarray, "mask place"]
) -> None:
    """The readout stays where it is, whatever is removed."""
    return


def last_seen(
    _passage: Passage, _tokens: Int[np.ndarray, "mask place"], seen: Bool[np.ndarray, "mask place"]
) -> Int[np.ndarray, " mask"]:
    """The last place of each row that the model sees."""
    return seen.shape[1] - 1 - np.argmax(seen[:, ::-1], axis=1)


def same_token(
    passage: Passage, tokens: Int[np.ndarray, "mask place"], _seen: Bool[np.ndarray, "mask place"]
) -> Int[np.ndarray, " mask"] | None:
    """The place to which the passage's own readout moved in each row."""
    if passage.readout is None:
        return None
    return np.argmax(tokens == passage.readout, axis=1)
