"""Where in a text a target is read: the word that a tagger tags, the unit that a mask covers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from whence.core.errors import InputError, PlaceError, TargetError
from whence.core.passage import Passage
from whence.core.target import Target
from whence.models.labels import Prediction
from whence.models.unbroken import unbroken
from whence.models.untouched import untouched
from whence.models.values import finite

if TYPE_CHECKING:
    from whence.models.model import Model

MOST_LISTED = 12  # words in an error message


@dataclass(frozen=True)
class Tag:
    """What a tagger says of one word. ``position`` is what ``Target(at=…)`` takes."""

    word: str
    position: int
    prediction: Prediction


def tags_of(model: Model, passage: Passage) -> list[Tag]:
    """The tag of every word, from one pass; each is read at the word's first token."""
    if not model.kind.tags_words:
        raise InputError(f"{type(model.hf).__name__} has no tag for each word.")
    batch = model.batch([passage])
    with model.lock, untouched(model.hf), unbroken(torch.inference_mode()):
        logits = finite(model.run(batch.inputs).logits)[0].double().cpu().numpy()
    words = _in_words(passage)
    tags = []
    for position, word in enumerate(words.names):
        row = logits[first_token(words, position)]
        tags.append(Tag(word, position, model.prediction(row)))
    return tags


def tagged(model: Model, passage: Passage, target: Target) -> Passage:
    """The passage, to be read at the first token of the word that the target names."""
    if target.at is not None:
        words = _in_words(passage)
        position = place_of(words.names, target.at)
        return replace(passage, readout=first_token(words, position))
    if passage.readout is not None:
        return passage
    raise TargetError(
        f"{model.name} has a tag for each word: say for which word it is to be explained, with "
        "Target(at=…), or --at on the command line. "
        f"By its number or as it is written: {_listed(tags_of(model, passage))}."
    )


def located(passage: Passage, target: Target) -> Target:
    """The target with the word at which the passage is read, and its number."""
    if passage.readout is None:
        return target
    words = _in_words(passage)
    position = int(words.unit_of[passage.readout])
    return replace(target, at=position, word=words.names[position])


def place_of(names: Sequence[str], at: int | str) -> int:
    """The number of a word, given as its number or as it is written.

    >>> place_of(["Anna", "met", "Anna"], "met"), place_of(["Anna", "met", "Anna"], 2)
    (1, 2)
    """
    if isinstance(at, str):
        places = [place for place, name in enumerate(names) if name == at]
        if len(places) == 1:
            return places[0]
        if not at.isdecimal():
            raise PlaceError(_not_one(names, at, places))
        at = int(at)
    if isinstance(at, bool) or not isinstance(at, (int, np.integer)):
        raise TargetError(f"at= is a word or its number, not the {type(at).__name__} {at!r}.")
    if not 0 <= at < len(names):
        raise PlaceError(
            f"at={at} is outside the {len(names)} units of this text, "
            f"which are counted from 0 to {len(names) - 1}."
        )
    return int(at)


def first_token(passage: Passage, unit: int) -> int:
    """The first token of a unit."""
    return int(np.flatnonzero(passage.unit_of == unit)[0])


def _not_one(names: Sequence[str], at: str, places: Sequence[int]) -> str:
    if places:
        numbers = " or ".join(f"at={place}" for place in places)
        return f"the word {at!r} stands {len(places)} times in this text: say {numbers}."
    listed = ", ".join(f"{place} {name!r}" for place, name in enumerate(names[:MOST_LISTED]))
    more = " …" if len(names) > MOST_LISTED else ""
    return f"no word of this text is {at!r}. Its words: {listed}{more}"


def _in_words(passage: Passage) -> Passage:
    """The passage as it is where its units are words or tokens, else cut into words."""
    if passage.kind in ("word", "token"):
        return passage
    return Passage.from_tokens(
        passage.text,
        passage.ids.tolist(),
        passage.tokens,
        [(int(start), int(end)) for start, end in passage.spans],
        passage.parts.tolist(),
        units="word",
        pair=passage.pair,
    )


def _listed(tags: Sequence[Tag]) -> str:
    """The words with their tags; of a long text, those with another tag than most words have."""
    shown = list(tags)
    if len(shown) > MOST_LISTED:
        usual = Counter(tag.prediction.label for tag in tags).most_common(1)[0][0]
        unusual = [tag for tag in tags if tag.prediction.label != usual]
        shown = (unusual or shown)[:MOST_LISTED]
    listed = ", ".join(f"{tag.position} {tag.word!r} {tag.prediction.label}" for tag in shown)
    if len(shown) < len(tags):
        return f"{listed}, and {len(tags) - len(shown)} others"
    return listed
