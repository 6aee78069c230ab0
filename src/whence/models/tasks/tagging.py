"""Token classification: a tag for each word of a text. What is explained is the tag of one word.

As is usual, a word's tag is read at its first token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from whence.core.passage import Passage
from whence.models.batches import Batch, batch_of_texts
from whence.models.labels import classes
from whence.models.limits import text_limit
from whence.models.readouts import same_token
from whence.models.tasks.task import Task

if TYPE_CHECKING:
    from whence.models.model import Model


def _batch(model: Model, passages: Sequence[Passage]) -> Batch:
    return batch_of_texts(model, passages, [p.readout or 0 for p in passages])


def _readout(_model: Model, passage: Passage) -> int | None:
    return passage.readout


TAGGING = Task(
    name="token-classification",
    title="token classification",
    heads={"ForTokenClassification": "AutoModelForTokenClassification"},
    limit=text_limit,
    batch=_batch,
    no_windows=(
        "windows average one class over the text, and a tag is of one word. Shorten the text "
        "around the word, or use overflow='truncate'."
    ),
    labels=classes,
    has_classes=True,
    tags_words=True,
    readout=_readout,
    readout_after_removal=same_token,
)
