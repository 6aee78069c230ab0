"""Multiple choice: which of several texts goes best with a first one.

The model reads the first text once with each choice, and gives each of these readings one logit.
The passage holds all of them, one behind the other: a word of the first text is one unit, whose
tokens stand in every reading, and a word of a choice stands in one. So a removed word of the first
text is gone from all readings, as it should be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from whence.core.errors import Unsupported
from whence.core.passage import Passage
from whence.core.registry import ANY_ATTENTION, Needs
from whence.models.batches import Batch
from whence.models.labels import Called, named
from whence.models.limits import text_limit
from whence.models.tasks.task import Task

if TYPE_CHECKING:
    from whence.models.model import Model


def _batch(model: Model, passages: Sequence[Passage]) -> Batch:
    """The readings of each passage, side by side."""
    shapes = {(len(p.choices), len(p)) for p in passages}
    if len(shapes) > 1:
        raise Unsupported(
            "questions with several numbers or lengths of choices do not share a batch; "
            "trace them one at a time, as whence.explain does."
        )
    ((choices, length),) = shapes
    shape = (len(passages), choices, length // max(1, choices))

    def stacked(rows: Sequence[Sequence[int]]) -> torch.Tensor:
        return torch.tensor([list(row) for row in rows], device=model.device).reshape(shape)

    inputs = {
        "input_ids": stacked([p.ids.tolist() for p in passages]),
        "attention_mask": stacked([_seen(model, p) for p in passages]),
    }
    types = [p.types for p in passages if p.types is not None]
    if types:
        inputs["token_type_ids"] = stacked([row.tolist() for row in types])
    return Batch(inputs, [len(p) for p in passages], None)


def _seen(model: Model, passage: Passage) -> list[int]:
    """1 for every token but the padding behind (or before) the shorter choices."""
    padding = passage.special & (passage.ids == model.pad_id)
    return (~padding).astype(int).tolist()


def _labels(_model: Model) -> Mapping[int, str]:
    """They are the choices of a question, and not of a model."""
    return {}


def _choices(_model: Model, passage: Passage) -> Mapping[int, str]:
    names = named(dict(enumerate(passage.choices)), len(passage.choices))
    return Called(names, "choices of this question")


def _never_pads(_model: Model) -> bool:
    """Two questions seldom have as many choices, of one length."""
    return False


def _readout(_model: Model, _passage: Passage) -> None:
    """There is one in each reading."""
    return


def _unseen(model: Model, needs: Needs) -> str | None:
    if not needs & (ANY_ATTENTION | Needs.ATTENTION_GRAPH | Needs.HIDDEN_STATES):
        return None
    return (
        f"{type(model.hf).__name__} reads each choice in a pass of its own, so that there is no "
        "one map of attention over the question and all choices; use a gradient method, or one "
        "that removes words (occlusion, lime, shapley)."
    )


CHOICE = Task(
    name="multiple-choice",
    title="multiple choice",
    heads={"ForMultipleChoice": "AutoModelForMultipleChoice"},
    limit=text_limit,
    batch=_batch,
    pads=_never_pads,
    stacks=True,
    second_text="a question and its choices, two at least",
    offers_choices=True,
    no_windows="a question with its choices cannot be cut into windows. Shorten the question.",
    labels=_labels,
    labels_of=_choices,
    has_classes=True,
    readout=_readout,
    unseen=_unseen,
    removals=("mask", "mean", "zero"),
    no_removal=(
        "all choices are read side by side at one length, so that nothing can {removal} there; "
        "use 'mask', 'mean' or 'zero'."
    ),
)
