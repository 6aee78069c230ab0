"""A causal language model: the next token after a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from whence.core.passage import Passage
from whence.models.batches import Batch, batch_of_texts, before_outputs
from whence.models.labels import vocabulary
from whence.models.limits import text_limit
from whence.models.readouts import last_seen, last_token
from whence.models.tasks.task import NO_WINDOWS_OF_TOKENS, Task

if TYPE_CHECKING:
    from whence.models.model import Model


def _batch(model: Model, passages: Sequence[Passage]) -> Batch:
    if passages[0].written is not None:
        return batch_of_texts(model, passages, [before_outputs(p) for p in passages])
    return batch_of_texts(model, passages, [len(p) - 1 for p in passages])


CAUSAL = Task(
    name="causal",
    title="causal LM",
    heads={"ForCausalLM": "AutoModelForCausalLM", "LMHeadModel": "AutoModelForCausalLM"},
    limit=text_limit,
    batch=_batch,
    no_windows=NO_WINDOWS_OF_TOKENS,
    labels=vocabulary,
    generates=True,
    readout=last_token,
    readout_after_removal=last_seen,
)
