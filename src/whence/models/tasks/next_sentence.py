"""Next-sentence prediction: whether a second text continues the first one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from whence.models.batches import batch_of_texts
from whence.models.limits import text_limit
from whence.models.readouts import pooled
from whence.models.tasks.task import Task

if TYPE_CHECKING:
    from whence.models.model import Model


def _labels(_model: Model) -> Mapping[int, str]:
    """As such heads are trained: 0 is the sentence that follows, 1 is one from elsewhere."""
    return {0: "next sentence", 1: "random sentence"}


NEXT_SENTENCE = Task(
    name="next-sentence",
    title="next-sentence prediction",
    heads={"ForNextSentencePrediction": "AutoModelForNextSentencePrediction"},
    limit=text_limit,
    batch=batch_of_texts,
    second_text="a sentence and the one that may follow it",
    no_windows="a pair of texts cannot be cut into windows. Use overflow='truncate'.",
    labels=_labels,
    has_classes=True,
    readout=pooled,
)
