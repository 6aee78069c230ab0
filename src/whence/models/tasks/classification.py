"""Sequence classification: one of some classes, or a number, for a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whence.core.passage import Passage
from whence.models.batches import batch_of_texts
from whence.models.labels import classes
from whence.models.limits import text_limit
from whence.models.readouts import last_unpadded, pooled
from whence.models.tasks.task import Task

if TYPE_CHECKING:
    from whence.models.model import Model


def _readout(model: Model, passage: Passage) -> int | None:
    if model.is_encoder_decoder:
        return len(passage) - 1
    if model.is_causal:
        return last_unpadded(model, passage)
    return pooled(model, passage)


def _pads(model: Model) -> bool:
    """A decoder that classifies finds its last token by the pad id, and refuses if it has none."""
    return not model.is_causal or model.config.get_text_config().pad_token_id is not None


CLASSIFICATION = Task(
    name="classification",
    title="sequence classification",
    heads={"ForSequenceClassification": "AutoModelForSequenceClassification"},
    limit=text_limit,
    batch=batch_of_texts,
    pads=_pads,
    reads_twice=True,
    labels=classes,
    has_classes=True,
    readout=_readout,
)
