"""A neighbour of a text: one word exchanged for another that the model reads much alike.

The other word is drawn from those whose embeddings in the model's own table are nearest, so that
no second model with the same vocabulary is needed. Ids are exchanged, one for one: every unit of
the text stays where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Int

from whence.core.errors import Unsupported
from whence.core.passage import Passage
from whence.models.model import Model

NEAREST = 10  # of these tokens one is drawn
TRIES = 5  # words of a text that are tried until one leaves the prediction as it was


@dataclass(frozen=True, eq=False)
class Neighbour:
    """A changed text, and which of its units are changed."""

    passage: Passage
    changed: Bool[np.ndarray, " unit"]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """A neighbour of each text, or the reason why there is none; and the passes that were paid."""

    of_texts: Sequence[Neighbour | str]
    forwards: int


@runtime_checkable
class TextChange(Protocol):
    """Another text in place of each text, with as many units."""

    def __call__(self, model: Model, passages: Sequence[Passage]) -> Neighbours:
        """The changed texts, of which the model says what it said of the first."""
        ...


@dataclass(frozen=True)
class OneWordOther:
    """One word of the text exchanged for another, so that the predicted label stays.

    It is a word that is one token. Where an exchange changes the prediction, another word is tried,
    up to five of them. ``number`` tells the neighbours of a text apart.

    >>> import whence
    >>> model = whence.load("sentiment")
    >>> here = model.encode("a truly wonderful and moving little film")
    >>> (other,) = OneWordOther(number=0)(model, [here]).of_texts
    >>> len(other.passage.units) == len(here.units), int(other.changed.sum())
    (True, 1)
    """

    number: int = 0

    def __call__(self, model: Model, passages: Sequence[Passage]) -> Neighbours:
        """One neighbour of each text; a few passes of each, in batches, try the prediction."""
        words = _Words.of(model)
        of_texts: list[Neighbour | str] = ["no word of this text is one token."] * len(passages)
        generators = {}
        waiting: dict[int, list[int]] = {}
        for i, passage in enumerate(passages):
            generators[i] = np.random.default_rng([self.number, *passage.digest])
            tokens = words.exchangeable(passage)
            if len(tokens):
                waiting[i] = generators[i].permutation(tokens)[:TRIES].tolist()

        labels = {}
        forwards = 0
        if waiting:
            said = model.logits([passages[i] for i in waiting])
            labels = dict(zip(waiting, said.argmax(1).tolist(), strict=True))
            forwards += len(waiting)
        while waiting:
            others = {
                i: words.exchanged(passages[i], tokens.pop(0), generators[i])
                for i, tokens in waiting.items()
            }
            said = model.logits([other.passage for other in others.values()])
            forwards += len(others)
            for (i, other), label in zip(others.items(), said.argmax(1).tolist(), strict=True):
                if label == labels[i]:
                    of_texts[i] = other
                    del waiting[i]
                elif not waiting[i]:
                    of_texts[i] = "every word that was exchanged changed the prediction."
                    del waiting[i]
        return Neighbours(of_texts, forwards)


@dataclass(frozen=True, eq=False)
class _Words:
    """The tokens of a vocabulary that may stand for one another."""

    model: Model
    strings: tuple[str, ...]
    is_word: Bool[np.ndarray, " token"]

    @classmethod
    def of(cls, model: Model) -> _Words:
        size = model.embedded_ids
        if not model.kind.reads_text or model.kind.reads_image or size is None:
            raise Unsupported(
                f"{type(model.hf).__name__} has no table of tokens from which another word could "
                "be taken."
            )
        if model.kind.offers_choices or model.kind.second_text:
            raise Unsupported(
                f"what {type(model.hf).__name__} can answer is in its text, so a word of it cannot "
                "be exchanged and the answer stay the same."
            )
        size = min(size, len(model.tokenizer))
        strings = tuple(map(str, model.tokenizer.convert_ids_to_tokens(list(range(size)))))
        is_word = np.array([_letters(string).isalpha() for string in strings])
        is_word[[i for i in model.tokenizer.all_special_ids if i < size]] = False
        return cls(model, strings, is_word)

    def exchangeable(self, passage: Passage) -> Int[np.ndarray, " place"]:
        """The places of tokens that are a whole unit of letters, and not where a head reads."""
        of_units = passage.unit_of[passage.unit_of >= 0]
        counts = np.bincount(of_units, minlength=len(passage.units))
        places = []
        for place, (unit, token) in enumerate(zip(passage.unit_of, passage.ids, strict=True)):
            is_known = 0 <= token < len(self.is_word) and self.is_word[token]
            if unit >= 0 and counts[unit] == 1 and is_known and place != passage.readout:
                places.append(place)
        return np.array(places, dtype=np.int64)

    def exchanged(self, passage: Passage, place: int, random: np.random.Generator) -> Neighbour:
        """The passage with the token at a place exchanged for one of its nearest."""
        nearest = self._nearest(int(passage.ids[place]))
        other = int(random.choice(nearest))
        ids = passage.ids.copy()
        ids[place] = other
        tokens = list(passage.tokens)
        tokens[place] = self.strings[other]
        changed = np.arange(len(passage.units)) == passage.unit_of[place]
        return Neighbour(replace(passage, ids=ids, tokens=tuple(tokens)), changed)

    def _nearest(self, token: int) -> Int[np.ndarray, " other"]:
        """The words whose embeddings point most nearly the same way, and that begin alike.

        A token that begins a word is not exchanged for one that goes on with it.
        """
        begins = _beginning(self.strings[token])
        fits = self.is_word & np.array([_beginning(s) == begins for s in self.strings])
        fits[token] = False
        table = self.model.input_embeddings.get_parameter("weight").detach()[: len(fits)]
        candidates = torch.as_tensor(np.flatnonzero(fits), device=table.device)
        cosine = torch.cosine_similarity(table[candidates].double(), table[token].double()[None])
        best = cosine.topk(min(NEAREST, len(candidates))).indices
        return candidates[best].cpu().numpy()


def _letters(token: str) -> str:
    """A token's string without what marks a beginning (Ġ, ▁) or a continuation (##)."""
    return token.removeprefix("##").lstrip("Ġ▁")


def _beginning(token: str) -> str:
    return token[: len(token) - len(_letters(token))]
