"""A task object: everything that differs between a classifier, a language model, an image model and
a model without a head. The rest of whence asks it, and never compares the task's name.

A task is a record of facts and of functions. The functions take the model; a task keeps no state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Int
from torch import Tensor

from whence.core.passage import Passage
from whence.core.registry import Needs
from whence.core.target import Target
from whence.models.batches import Batch
from whence.models.readouts import rows_read, unmoved

if TYPE_CHECKING:
    from whence.models.model import Model

# What can become of a unit of text that is taken away, in the order of preference.
TEXT_REMOVALS = ("mask", "delete", "pad", "mean", "zero", "infill")

NO_WINDOWS_OF_TOKENS = (
    "windows average one class over the text; a language model predicts a token after each. "
    "Use overflow='truncate'."
)


def always_pads(_model: Model) -> bool:
    """Most models ignore padding, so that passages of several lengths may share a batch."""
    return True


def everything_seen(_model: Model, _needs: Needs) -> None:
    """Most models show their embeddings and their attention, token by token."""
    return


def labels_of_model(model: Model, _passage: Passage) -> Mapping[int, str]:
    """Most models have the same labels for every text."""
    return model.labels


def read_as_it_is(_model: Model, passage: Passage, _target: Target) -> Passage:
    """Most passages are read at a place that does not depend on the label."""
    return passage


def nothing_covered(
    _model: Model, _passage: Passage, _kept: Bool[np.ndarray, "mask token"], _removal: str
) -> Mapping[str, Tensor]:
    """Most units are removed from the tokens or their embeddings, and not from the pixels."""
    return {}


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """What one task makes different. ``model.kind`` is the task object of a loaded model."""

    name: str
    # how a sentence about supported heads calls it; empty where it is not listed
    title: str = ""
    # how the name of a model's class ends: the class of transformers that loads such a model
    heads: Mapping[str, str]
    # families (a configuration's model_type) of which no other head than this task's can be read
    families: tuple[str, ...] = ()
    # parts of the names of weights that are not used, so that a checkpoint may lack them
    unused_weights: tuple[str, ...] = ()

    # ---- what goes in

    reads_text: bool = True
    reads_image: bool = False
    # how many tokens the positions allow; None where they have no end
    limit: Callable[[Model], int | None]
    batch: Callable[[Model, Sequence[Passage]], Batch]
    # whether passages of several lengths may share a batch
    pads: Callable[[Model], bool] = always_pads
    # only an encoder-decoder does this
    two_sided: bool = False
    # the decoder of an encoder-decoder reads the text a second time, and no reply
    reads_twice: bool = False
    # it reads two texts, and this says which: "a question and the text that holds the answer"
    second_text: str = ""
    # the second text is several choices, of which the model takes one
    offers_choices: bool = False
    # rows of one length may share a batch, even where passages of several lengths may not
    stacks: bool = False
    # why a long text cannot be cut into windows; None where it can
    no_windows: str | None = None

    # ---- what comes out

    # what a target can be
    labels: Callable[[Model], Mapping[int, str]]
    # the same for one passage, where its text says what the labels are
    labels_of: Callable[[Model, Passage], Mapping[int, str]] = labels_of_model
    # the labels are classes, and not the tokens of a vocabulary
    has_classes: bool = False
    # there is a number to explain
    has_head: bool = True
    # it writes text, token after token
    generates: bool = False
    # it predicts at a unit under the mask token
    fills_a_mask: bool = False
    # it has a tag for each word, and a target says of which
    tags_words: bool = False
    # the logits of each passage, from the model's outputs
    read: Callable[[Model, Any, Batch], Tensor] = rows_read
    # the token from which the head reads a passage; None where it reads the mean of all
    readout: Callable[[Model, Passage], int | None]
    # the passage with the place where this label is read
    at_target: Callable[[Model, Passage, Target], Passage] = read_as_it_is
    # why methods with such needs cannot work on this model; None where they can
    unseen: Callable[[Model, Needs], str | None] = everything_seen

    # ---- what can be taken away

    # in the order of preference; empty where nothing can be removed
    removals: tuple[str, ...] = TEXT_REMOVALS
    # why another removal is refused; may name the {architecture} and the {removal}
    no_removal: str = ""
    # The place of the readout in each row, given the tokens that stand at the row's places and
    # which of them are seen; None where it stays where it was.
    readout_after_removal: Callable[
        [Passage, Int[np.ndarray, "mask place"], Bool[np.ndarray, "mask place"]],
        Int[np.ndarray, " mask"] | None,
    ] = unmoved
    # inputs that hide what each row does not keep, where embeddings cannot
    covered: Callable[
        [Model, Passage, Bool[np.ndarray, "mask token"], str], Mapping[str, Tensor]
    ] = nothing_covered
