"""Passages of which units are gone for good: what a model is trained on, not only asked about.

They hold the ids that a game would give the model. Only removals that are made of tokens can be
trained on in this way: ``mask`` and ``delete``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool

from whence.core.errors import Unsupported
from whence.core.passage import SPECIAL, Passage
from whence.games.removals import chosen_removal, mask_id, start_id
from whence.models.model import Model

TRAINED = ("mask", "delete")


def trained_removal(model: Model, removal: str) -> str:
    """The removal by its full name, if texts without units can be trained on."""
    name = chosen_removal(model, removal)
    if name not in TRAINED:
        raise Unsupported(
            f"models are trained on texts whose units are removed by {' or '.join(TRAINED)}, which "
            f"leave tokens behind; not by {name!r}."
        )
    if name == "mask" and mask_id(model) is None:
        raise Unsupported("this model's tokenizer has no mask or unknown token; use 'delete'.")
    return name


def without(
    model: Model, passage: Passage, removed: Bool[np.ndarray, " unit"], removal: str
) -> Passage:
    """The passage, with some units masked or deleted.

    >>> import whence
    >>> model = whence.load("sentiment")
    >>> passage = model.encode("not bad at all")
    >>> without(model, passage, np.array([1, 0, 0, 1], bool), "mask").tokens
    ('[CLS]', '[MASK]', 'bad', 'at', '[MASK]', '[SEP]')
    >>> without(model, passage, np.array([1, 0, 0, 1], bool), "delete").tokens
    ('[CLS]', 'bad', 'at', '[SEP]')
    """
    if not removed.any():
        return passage
    gone = _tokens_of(passage, removed)
    if removal == "mask":
        hidden = mask_id(model)
        assert hidden is not None  # trained_removal has asked
        return _replaced(model, passage, gone, hidden)
    return _deleted(model, passage, gone, removed)


def pattern_of(
    model: Model, passage: Passage, removed: Bool[np.ndarray, " unit"], removal: str
) -> Passage:
    """The same, with every unit that stays replaced by one and the same token.

    Only where units were removed, or how many, is left to be read.
    """
    stays = _tokens_of(passage, ~removed)
    blank = _replaced(model, passage, stays, placeholder(model))
    return without(model, blank, removed, removal)


def placeholder(model: Model) -> int:
    """A token that says "a word", and is neither the mask nor special: the unknown one, or any."""
    tokenizer, hidden = model.tokenizer, mask_id(model)
    if tokenizer.unk_token_id is not None and tokenizer.unk_token_id != hidden:
        return int(tokenizer.unk_token_id)
    taken = {*tokenizer.all_special_ids, hidden}
    return next(number for number in range(len(tokenizer)) if number not in taken)


def _tokens_of(passage: Passage, units: Bool[np.ndarray, " unit"]) -> Bool[np.ndarray, " token"]:
    """The tokens of some units."""
    of_text = passage.unit_of >= 0
    chosen = np.zeros(len(passage), dtype=bool)
    chosen[of_text] = units[passage.unit_of[of_text]]
    return chosen


def _replaced(
    model: Model, passage: Passage, places: Bool[np.ndarray, " token"], token: int
) -> Passage:
    name = str(model.tokenizer.convert_ids_to_tokens(token))
    pairs = zip(passage.tokens, places.tolist(), strict=True)
    tokens = tuple(name if here else own for own, here in pairs)
    return replace(passage, ids=np.where(places, token, passage.ids), tokens=tokens)


def _deleted(
    model: Model,
    passage: Passage,
    gone: Bool[np.ndarray, " token"],
    removed: Bool[np.ndarray, " unit"],
) -> Passage:
    stays = np.flatnonzero(~gone)
    if not len(stays):
        return _only_start(model, passage)
    new_number = np.cumsum(~removed) - 1
    unit = passage.unit_of[stays]
    spans = _kept(passage.unit_spans, removed)
    return replace(
        passage,
        ids=passage.ids[stays],
        tokens=tuple(passage.tokens[t] for t in stays),
        spans=passage.spans[stays],
        parts=passage.parts[stays],
        types=None if passage.types is None else passage.types[stays],
        unit_of=np.where(unit >= 0, new_number[unit], SPECIAL),
        unit_spans=spans,
    )


def _kept(
    spans: Sequence[tuple[int, int, int]], removed: Bool[np.ndarray, " unit"]
) -> tuple[tuple[int, int, int], ...]:
    return tuple(span for span, is_gone in zip(spans, removed, strict=True) if not is_gone)


def _only_start(model: Model, passage: Passage) -> Passage:
    """Of a text of which nothing is left, not even a special token."""
    start = start_id(model)
    return replace(
        passage,
        ids=np.array([start]),
        tokens=(str(model.tokenizer.convert_ids_to_tokens(start)),),
        spans=np.zeros((1, 2), dtype=np.int64),
        parts=np.array([SPECIAL]),
        types=None if passage.types is None else np.zeros(1, dtype=np.int64),
        unit_of=np.array([SPECIAL]),
        unit_spans=(),
    )
