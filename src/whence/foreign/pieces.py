"""Scores from other tools, laid on a passage's units by the characters that they were given for.

Another tool cuts the text in its own way: lime at ``\\W+``, shap at its tokenizer's pieces, captum at the model's tokens. Characters are
common ground. A piece inside a unit gives it its score; several pieces add up; a piece over several units is split among them by the
characters that it has in each, white space not counted, so that the sum is kept. Nothing of lime, shap or captum is imported: their
results are known by what they carry.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from whence.core.errors import InputError, SettingsError
from whence.core.passage import Passage

Spans = Sequence[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Foreign:
    """What another tool found, on our units: a column of scores for each output that it explained.

    ``outputs`` says what the tool calls each column (index, name; None where it does not tell), ``totals`` what it holds the output to be
    on the whole text. ``outside`` is the score of pieces that lie in no unit: special tokens, above all. ``unscored`` counts units that
    no piece touches; their score is 0.
    """

    units: Float[np.ndarray, "unit column"]
    outside: Float[np.ndarray, " column"]
    unscored: int = 0
    outputs: tuple[tuple[int | None, str | None], ...] = ((None, None),)
    totals: Float[np.ndarray, " column"] | None = None
    method: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


def placed(
    passage: Passage,
    places: Sequence[Spans],
    scores: Float[np.ndarray, "piece column"],
    names: Sequence[str],
    **more: Any,
) -> Foreign:
    """Lay pieces on units. A piece with several places (a word that occurs twice) counts at each, but once in a unit."""
    bad = np.flatnonzero(~np.isfinite(scores).all(1))
    if len(bad):
        i = int(bad[0])
        raise InputError(
            f"score {i} of {len(scores)} (of {names[i]!r}) is not finite: {scores[i].tolist()}."
        )
    piece, unit, share = shares(places, passage)
    units = np.zeros((len(passage.unit_spans), scores.shape[1]))
    np.add.at(units, unit, share[:, None] * scores[piece])
    nowhere = np.setdiff1d(np.arange(len(scores)), piece)
    return Foreign(units, scores[nowhere].sum(0), len(units) - len(np.unique(unit)), **more)


def shares(
    places: Sequence[Spans], passage: Passage
) -> tuple[Int[np.ndarray, " share"], Int[np.ndarray, " share"], Float[np.ndarray, " share"]]:
    """Piece, unit, and how much of the piece lies in the unit: by characters, of which white space counts only where there is no other."""
    text, owner = characters(passage)
    d = len(passage.unit_spans)
    piece_of = np.repeat(np.arange(len(places)), [len(spans) for spans in places])
    ends = (
        np.array([span for spans in places for span in spans], dtype=np.int64)
        .reshape(-1, 2)
        .clip(0, len(text))
    )
    size = ends[:, 1] - ends[:, 0]
    span = np.repeat(np.arange(len(ends)), size)
    character = np.arange(len(span)) + np.repeat(ends[:, 0] - np.cumsum(size) + size, size)
    inside = owner[character] >= 0
    seen = inside & ~np.array([c.isspace() for c in text], dtype=bool)[character]
    counted = np.where(np.bincount(span, seen, minlength=len(ends))[span] > 0, seen, inside)
    keys, counts = np.unique(span[counted] * d + owner[character[counted]], return_counts=True)
    share = counts / np.bincount(span[counted], minlength=len(ends))[keys // d]
    # a word that a unit has twice is one feature, there or not
    keys, at = np.unique(piece_of[keys // d] * d + keys % d, return_inverse=True)
    largest = np.zeros(len(keys))
    np.maximum.at(largest, at, share)
    return keys // d, keys % d, largest


def of_tokens(
    row: Float[np.ndarray, " score"],
    passage: Passage,
    content: np.ndarray,
    merge: str,
    of_units: bool,
) -> Foreign:
    """One score a unit, or a token, with or without the special ones. The counts cannot be confused: a unit has at least one token."""
    bad = np.flatnonzero(~np.isfinite(row))
    if len(bad):
        raise InputError(f"score {bad[0]} of {len(row)} is not finite: {row[bad[0]]}.")
    if of_units:
        only_sums(merge)
        return Foreign(row[:, None], np.zeros(1))
    every = row
    if len(row) != len(passage):
        every = np.zeros(len(passage))
        every[content] = row
    return Foreign(passage.merge(every, merge)[:, None], np.array([every[~content].sum()]))


def only_sums(merge: str) -> None:
    """Raise where another rule of merging was asked for than the one that pieces have."""
    if merge != "sum":
        raise SettingsError(
            f"merge={merge!r} is a rule for the model's own tokens; scores of units and of other pieces are summed."
        )


def characters(passage: Passage) -> tuple[str, Int[np.ndarray, " character"]]:
    """The text (its pair on a new line) and the unit of each character, -1 for none."""
    if not passage.text:
        raise InputError("this passage is an image: give one score for each of its patches.")
    text = passage.text if passage.pair is None else f"{passage.text}\n{passage.pair}"
    owner = np.full(len(text), -1, dtype=np.int64)
    texts = [u for u, pictured in enumerate(passage.pictured) if not pictured]
    for u, (a, b) in zip(texts, unit_places(passage), strict=True):
        owner[a:b] = u
    return text, owner


def unit_places(passage: Passage) -> list[tuple[int, int]]:
    """Where each unit lies in both texts, as ``characters`` joins them."""
    second = len(passage.text) + 1
    spans = zip(passage.unit_spans, passage.pictured, strict=True)
    return [
        (part * second + a, part * second + b) for (part, a, b), pictured in spans if not pictured
    ]


def checked(spans: Sequence[Sequence[int]], passage: Passage) -> list[tuple[int, int]]:
    """(start, end) in the text, or (part, start, end) in a pair, as places in the two together."""
    characters(passage)
    lengths = [len(passage.text), *([] if passage.pair is None else [len(passage.pair)])]
    found = []
    for span in spans:
        part, a, b = span if len(span) == 3 else (0, *span) if len(span) == 2 else (-1, 0, 0)
        if not (0 <= part < len(lengths) and 0 <= a <= b <= lengths[part]):
            ends = " and ".join(map(str, lengths))
            raise InputError(
                f"the span {tuple(span)} is none of this text: (start, end), of a pair (part, start, end), with {ends} characters."
            )
        found.append((int(part * (lengths[0] + 1) + a), int(part * (lengths[0] + 1) + b)))
    return found


def aligned(tokens: Sequence[str], passage: Passage) -> list[tuple[int, int]]:
    """Where pieces in reading order stand: one behind the other if they make up the text, else each at the next place where it fits."""
    text, _ = characters(passage)
    whole = "".join(tokens)
    start = text.find(whole)
    if whole.strip() and start >= 0:
        ends = [start, *(start + np.cumsum([len(t) for t in tokens])).tolist()]
        return list(pairwise(ends))
    special = {
        t for t, is_special in zip(passage.tokens, passage.special, strict=True) if is_special
    }
    found, here = [], 0
    for i, token in enumerate(tokens):
        piece = token.strip()
        behind = next(i for i in range(here, len(text) + 1) if not text[i : i + 1].isspace())
        start = (
            behind if text.startswith(piece, behind) else next(occurrences(piece, text, here), None)
        )
        if start is None and piece not in special:
            raise InputError(
                f"token {i}, {token!r}, is not found in the text behind character {here} ({short(text[here:])}). Give the tokens as the "
                "model has them (model.encode(text).tokens), as they stand in the text, or by their characters: spans=[(start, end), …]."
            )
        if start is None or not piece:
            found.append((here, here))
        else:
            here = start + len(piece)
            found.append((start, here))
    return found


def occurrences(word: str, text: str, start: int = 0) -> Iterator[int]:
    """Where a word begins that is no part of a longer one."""
    at = text.find(word, start) if word else -1
    while at >= 0:
        end = at + len(word)
        joined_left = at > 0 and in_word(text[at - 1]) and in_word(word[0])
        joined_right = end < len(text) and (
            unicodedata.category(text[end])[0] == "M" or (in_word(word[-1]) and in_word(text[end]))
        )
        if not joined_left and not joined_right:
            yield at
        at = text.find(word, at + 1)


def in_word(character: str) -> bool:
    """Whether a word may go on with this character; a combining mark belongs to the letter before it."""
    return character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M"


def numbers(scores: Any, what: str) -> np.ndarray:
    """A list, an array, a tensor, or the tuple of one tensor that captum gives, as numbers of double precision."""
    tensor: Any = scores[0] if isinstance(scores, (list, tuple)) and len(scores) == 1 else scores
    if hasattr(tensor, "detach") and tensor.ndim:
        scores = tensor.detach().cpu().double().numpy()  # double first: numpy has no bfloat16
    try:
        return np.array(scores, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise InputError(
            f"the {what} are not numbers, one for each piece: {str(problem).rstrip('.')}."
        ) from problem


def one_row(scores: np.ndarray, wanted: set[int]) -> Float[np.ndarray, " score"]:
    """One number for each of the ``wanted`` counts of pieces: a batch of one is opened, embeddings' dimensions are summed."""
    shape = " × ".join(map(str, scores.shape)) or "a single number"
    if scores.ndim > 1 and scores.shape[0] == 1 and (scores.ndim == 3 or scores.shape[1] in wanted):
        scores = scores[0]
    if scores.ndim == 2 and scores.shape[0] in wanted:
        scores = scores.sum(-1)
    if scores.ndim != 1:
        counts = " or ".join(map(str, sorted(wanted)))
        raise InputError(
            f"scores are {counts} numbers, or as captum gives them for one text, 1 × {counts} (× dimensions); these are {shape}."
        )
    return scores


def short(text: str) -> str:
    """The beginning of a text, for an error message."""
    return repr(text if len(text) <= 40 else f"{text[:40]}…")
