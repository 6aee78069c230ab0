"""A masked language model: the token that stands under the mask token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from whence.core.passage import Passage
from whence.models.batches import Batch, batch_of_texts
from whence.models.labels import vocabulary
from whence.models.limits import text_limit
from whence.models.readouts import same_token
from whence.models.tasks.task import NO_WINDOWS_OF_TOKENS, Task

if TYPE_CHECKING:
    from whence.models.model import Model


def _batch(model: Model, passages: Sequence[Passage]) -> Batch:
    return batch_of_texts(model, passages, [p.readout or 0 for p in passages])


def _readout(_model: Model, passage: Passage) -> int | None:
    return passage.readout


MASKED = Task(
    name="masked",
    title="masked LM",
    heads={"ForMaskedLM": "AutoModelForMaskedLM"},
    limit=text_limit,
    batch=_batch,
    no_windows=NO_WINDOWS_OF_TOKENS,
    labels=vocabulary,
    fills_a_mask=True,
    readout=_readout,
    readout_after_removal=same_token,
)
