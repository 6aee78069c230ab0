"""The first look at a model: two passes that answer four questions, where all is well.

A text runs alone, with one token exchanged by its embedding. The same text, with that token
exchanged by its id, runs padded beside a longer one. A model that says the same of both repeats
itself, minds neither padding nor batch-mates, and knows nothing of a token but its embedding. Where
it does not, nothing is concluded here, and the checks find out one by one what fails.
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from whence.core.errors import WhenceError
from whence.core.passage import Passage
from whence.core.registry import Needs
from whence.core.target import Target
from whence.models.conduct import (
    HOLDS,
    Finding,
    answers,
    is_one_each,
    known,
    outputs_differ,
    remember,
    tolerance,
    two_different_tokens,
)
from whence.models.model import Model
from whence.models.sample import SHORTEST, samples_of_two_lengths
from whence.models.state import draws, look_again
from whence.trace.edits import Edit
from whence.trace.trace import Trace, trace

OF_PASSES = ("repeats", "padding", "batch-mates")


def look_at_passes(model: Model) -> None:
    """Note that the model repeats itself and minds no company, if two passes show it."""
    texts = _texts(model, OF_PASSES)
    if texts is None:
        return
    short, longer = texts
    try:
        among_others = _undrawn(model, [short, longer])
        if among_others is not None:
            _note_if_same(model, OF_PASSES, answers(model, [short])[0], among_others)
    except WhenceError:
        return  # the checks will say which of the passes cannot be run


def look_at_embeddings(model: Model, needs: Needs) -> Trace | None:
    """The same, and that embeddings are all that it reads; the trace by which this was seen."""
    texts = _texts(model, (*OF_PASSES, "embeddings"))
    if texts is None:
        return None
    short, longer = texts
    places = two_different_tokens(model, short)
    if places is None:
        return None
    at, other = places
    ids = short.ids.copy()
    ids[at] = ids[other]
    shapes: list[tuple[int, ...]] = []

    def exchange(vectors: Tensor) -> Tensor:
        shapes.append(tuple(vectors.shape))
        if not is_one_each(shapes[0], [len(short)]):
            return vectors
        changed = vectors.clone()
        changed[:, at] = vectors[:, other]
        return changed

    try:
        by_id = _undrawn(model, [replace(short, ids=ids), longer])
        if by_id is None:
            return None
        edit = Edit("exchange", "embeddings", exchange)
        by_vector = trace(model, [short], Target(), needs, edits=[edit])
    except WhenceError:
        return None  # the checks will say what cannot be run
    if not is_one_each(shapes[0], [len(short)]):
        return None
    if not _note_if_same(model, (*OF_PASSES, "embeddings"), by_vector.logits[0], by_id):
        return None
    # what ran is the text with its token exchanged
    return replace(by_vector, passages=(replace(by_vector.passages[0], ids=ids),))


def _texts(model: Model, questions: tuple[str, ...]) -> list[Passage] | None:
    """A short text and a longer one; None where nothing is to be asked in this way."""
    if any(known(model, name) for name in questions):
        return None
    kind = model.kind
    if not kind.has_head or not kind.reads_text or kind.reads_image or not kind.pads(model):
        return None
    texts = samples_of_two_lengths(model, tokens=SHORTEST)
    return texts if len({len(text) for text in texts}) == 2 else None


def _undrawn(model: Model, passages: list[Passage]) -> Tensor | None:
    """What the model says of the first passage among others; None for one that draws.

    Nothing of ours is hooked in this pass, so whatever is drawn the model drew.
    """
    look_again(model.hf)
    among_others = answers(model, passages)[0]
    return None if draws(model.hf) else among_others


def _note_if_same(
    model: Model, questions: tuple[str, ...], alone: Tensor, among_others: Tensor
) -> bool:
    """Remember that all of this holds, if the two are the same."""
    if alone.ndim != 1:
        return False
    # of a question each text has labels of its own, and a batch as many as the longest
    width = min(len(alone), len(among_others))
    difference = outputs_differ(alone[:width], among_others[:width])
    if not difference <= tolerance(model.dtype):
        return False
    for name in questions:
        remember(model, Finding(name, True, HOLDS[name], difference))
    return True
