"""A bare model without a head: nothing to explain, but attention that can be shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from whence.core.passage import Passage
from whence.models.batches import Batch, batch_of_texts, batch_with_replies
from whence.models.limits import text_limit
from whence.models.readouts import decoder_position, last_unpadded, pooled
from whence.models.tasks.task import Task

if TYPE_CHECKING:
    from whence.models.model import Model


def _batch(model: Model, passages: Sequence[Passage]) -> Batch:
    if model.is_encoder_decoder:
        return batch_with_replies(model, passages)
    return batch_of_texts(model, passages)


def _no_labels(_model: Model) -> Mapping[int, str]:
    return {}


def _readout(model: Model, passage: Passage) -> int | None:
    if model.is_encoder_decoder:
        return decoder_position(model, passage)
    if model.is_causal:
        return last_unpadded(model, passage)
    return pooled(model, passage)


BARE = Task(
    name="bare",
    heads={"Model": "AutoModel"},
    unused_weights=("pooler",),
    limit=text_limit,
    batch=_batch,
    labels=_no_labels,
    has_head=False,
    readout=_readout,
)
