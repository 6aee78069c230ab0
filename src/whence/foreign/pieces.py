"""Scores from other tools, laid on a passage's units by the characters that they were given for.

Another tool cuts the text in its own way: lime at ``\\W+``, shap at its tokenizer's pieces, captum
at the model's tokens. What all of them share are the characters of the text.

- A piece inside a unit gives the unit its score.
- Several pieces in one unit add up.
- A piece over several units is split among them by the characters that it has in each, white space
  not counted, so that the sum is kept.

Nothing of lime, shap or captum is imported: their results are recognised by the attributes that
they have.
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
LONGEST_QUOTE = 40  # characters of a text that an error message repeats


@dataclass(frozen=True, eq=False)
class PlacedScores:
    """What another tool found, on our units: a column of scores for each output that it explained.

    ``outputs`` says what the tool calls each column: its index and its name, None where it does not
    tell. ``totals`` is what the tool holds each output to be on the whole text. ``outside`` is the
    score of pieces that lie in no unit, which are mostly special tokens. ``unscored`` counts the
    units that no piece touches; their score is 0.
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
) -> PlacedScores:
    """Lay pieces on units; ``places`` has the spans of each piece, ``names`` are for errors.

    A piece with several places (a word that occurs twice) counts at each of them, but only once in
    one unit.
    """
    not_finite = np.flatnonzero(~np.isfinite(scores).all(1))
    if len(not_finite):
        i = int(not_finite[0])
        raise InputError(
            f"score {i} of {len(scores)} (of {names[i]!r}) is not finite: {scores[i].tolist()}."
        )

    piece, unit, share = shares(places, passage)
    units = np.zeros((len(passage.unit_spans), scores.shape[1]))
    np.add.at(units, unit, share[:, None] * scores[piece])

    nowhere = np.setdiff1d(np.arange(len(scores)), piece)
    return PlacedScores(
        units,
        outside=scores[nowhere].sum(0),
        unscored=len(units) - len(np.unique(unit)),
    )


def shares(
    places: Sequence[Spans], passage: Passage
) -> tuple[Int[np.ndarray, " share"], Int[np.ndarray, " share"], Float[np.ndarray, " share"]]:
    """Piece, unit, and how much of the piece lies in the unit, for each two that meet.

    The share is counted in characters. White space counts only in a span that has nothing else.
    """
    text, unit_of = characters(passage)
    unit_count = len(passage.unit_spans)

    # the spans of all pieces in one list, and the piece of each
    piece_of = np.repeat(np.arange(len(places)), [len(spans) for spans in places])
    every_span = [span for spans in places for span in spans]
    ends = np.array(every_span, dtype=np.int64).reshape(-1, 2).clip(0, len(text))
    starts, sizes = ends[:, 0], ends[:, 1] - ends[:, 0]

    # every character of every span, and the span that it is in
    span = np.repeat(np.arange(len(ends)), sizes)
    before = np.cumsum(sizes) - sizes
    character = np.arange(len(span)) + np.repeat(starts - before, sizes)

    # the characters that count
    inside = unit_of[character] >= 0
    is_space = np.array([c.isspace() for c in text], dtype=bool)
    visible = inside & ~is_space[character]
    has_visible = np.bincount(span, visible, minlength=len(ends)) > 0
    counts = np.where(has_visible[span], visible, inside)

    # how much of each span lies in each unit; one key stands for (span, unit)
    key_of_character = span[counts] * unit_count + unit_of[character[counts]]
    keys, in_unit = np.unique(key_of_character, return_counts=True)
    in_span = np.bincount(span[counts], minlength=len(ends))
    share = in_unit / in_span[keys // unit_count]

    # spans of one piece in one unit are one: a word that a unit has twice is there, or it is not
    key_of_piece = piece_of[keys // unit_count] * unit_count + keys % unit_count
    keys, position = np.unique(key_of_piece, return_inverse=True)
    largest = np.zeros(len(keys))
    np.maximum.at(largest, position, share)
    return keys // unit_count, keys % unit_count, largest


def of_units(row: Float[np.ndarray, " unit"]) -> PlacedScores:
    """One score for each unit: they are on the units already."""
    _check_finite(row)
    return PlacedScores(row[:, None], outside=np.zeros(1))


def of_tokens(row: Float[np.ndarray, " token"], passage: Passage, merge: str) -> PlacedScores:
    """One score for each token of the model, with or without the special ones.

    The two counts cannot be confused where there are special tokens, and where there are none they
    mean the same.
    """
    _check_finite(row)
    content = passage.unit_of >= 0
    of_all = row
    if len(row) != len(passage):
        of_all = np.zeros(len(passage))
        of_all[content] = row

    units = passage.merge(of_all, merge)
    outside = of_all[~content].sum()
    return PlacedScores(units[:, None], outside=np.array([outside]))


def _check_finite(row: Float[np.ndarray, " score"]) -> None:
    not_finite = np.flatnonzero(~np.isfinite(row))
    if len(not_finite):
        i = not_finite[0]
        raise InputError(f"score {i} of {len(row)} is not finite: {row[i]}.")


def only_sums(merge: str) -> None:
    """Refuse another rule of merging than the sum, which is the only one that pieces have."""
    if merge != "sum":
        raise SettingsError(
            f"merge={merge!r} is a rule for the model's own tokens; "
            "scores of units and of other pieces are summed."
        )


def characters(passage: Passage) -> tuple[str, Int[np.ndarray, " character"]]:
    """The text (its pair on a new line) and the unit of each character, -1 for none."""
    if not passage.text:
        raise InputError("this passage is an image: give one score for each of its patches.")
    text = passage.text
    if passage.pair is not None:
        text = f"{passage.text}\n{passage.pair}"

    unit_of = np.full(len(text), -1, dtype=np.int64)
    units_of_text = [u for u, pictured in enumerate(passage.pictured) if not pictured]
    for unit, (start, end) in zip(units_of_text, unit_places(passage), strict=True):
        unit_of[start:end] = unit
    return text, unit_of


def unit_places(passage: Passage) -> list[tuple[int, int]]:
    """Where each unit lies in both texts, as ``characters`` joins them."""
    second = len(passage.text) + 1
    places = []
    for (part, start, end), pictured in zip(passage.unit_spans, passage.pictured, strict=True):
        if not pictured:
            offset = part * second
            places.append((offset + start, offset + end))
    return places


def checked(spans: Sequence[Sequence[int]], passage: Passage) -> list[tuple[int, int]]:
    """(start, end) in the text, or (part, start, end) in a pair, as places in the two together."""
    characters(passage)  # refuses an image
    lengths = [len(passage.text)]
    if passage.pair is not None:
        lengths.append(len(passage.pair))

    places = []
    for span in spans:
        if not _lies_within(span, lengths):
            ends = " and ".join(map(str, lengths))
            raise InputError(
                f"the span {tuple(span)} is none of this text: "
                f"(start, end), of a pair (part, start, end), with {ends} characters."
            )
        part, start, end = _with_part(span)
        offset = part * (lengths[0] + 1)
        places.append((int(offset + start), int(offset + end)))
    return places


def _with_part(span: Sequence[int]) -> tuple[int, int, int]:
    if len(span) == 2:
        return 0, span[0], span[1]
    part, start, end = span
    return part, start, end


def _lies_within(span: Sequence[int], lengths: Sequence[int]) -> bool:
    """Whether a span names a part of the text and stays within it."""
    if len(span) not in (2, 3):
        return False
    part, start, end = _with_part(span)
    return 0 <= part < len(lengths) and 0 <= start <= end <= lengths[part]


def aligned(tokens: Sequence[str], passage: Passage) -> list[tuple[int, int]]:
    """Where pieces in reading order stand in the text.

    Pieces that make up the text stand one behind the other; otherwise each is looked for behind the
    one before it.
    """
    text, _ = characters(passage)
    whole = "".join(tokens)
    start = text.find(whole)
    if whole.strip() and start >= 0:
        lengths = [len(t) for t in tokens]
        ends = start + np.cumsum(lengths)
        return list(pairwise([start, *ends.tolist()]))
    return _found_one_by_one(tokens, text, _special_tokens(passage))


def _found_one_by_one(tokens: Sequence[str], text: str, special: set[str]) -> list[tuple[int, int]]:
    """Each piece at the next place where it fits; a special token at a place without characters."""
    places = []
    here = 0
    for i, token in enumerate(tokens):
        piece = token.strip()
        start = _next_place(piece, text, here)
        if start is None and piece not in special:
            raise InputError(
                f"token {i}, {token!r}, is not found in the text behind character {here} "
                f"({short(text[here:])}). Give the tokens as the model has them "
                "(model.encode(text).tokens), as they stand in the text, "
                "or by their characters: spans=[(start, end), …]."
            )
        if start is None or not piece:
            places.append((here, here))
            continue
        here = start + len(piece)
        places.append((start, here))
    return places


def _next_place(piece: str, text: str, here: int) -> int | None:
    """Right behind ``here``, after white space, or else where the piece is a word of its own."""
    behind = here
    while text[behind : behind + 1].isspace():
        behind += 1
    if text.startswith(piece, behind):
        return behind
    return next(occurrences(piece, text, here), None)


def _special_tokens(passage: Passage) -> set[str]:
    special = set()
    for token, is_special in zip(passage.tokens, passage.special, strict=True):
        if is_special:
            special.add(token)
    return special


def occurrences(word: str, text: str, start: int = 0) -> Iterator[int]:
    """Where a word begins that is no part of a longer one."""
    if not word:
        return
    at = text.find(word, start)
    while at >= 0:
        if not _joined_left(word, text, at) and not _joined_right(word, text, at + len(word)):
            yield at
        at = text.find(word, at + 1)


def _joined_left(word: str, text: str, at: int) -> bool:
    """Whether a longer word goes on to the left of the place ``at``."""
    return at > 0 and in_word(text[at - 1]) and in_word(word[0])


def _joined_right(word: str, text: str, end: int) -> bool:
    """Whether a longer word goes on behind ``end``, or a combining mark changes the last letter."""
    if end >= len(text):
        return False
    if _is_mark(text[end]):
        return True
    return in_word(word[-1]) and in_word(text[end])


def in_word(character: str) -> bool:
    """Whether a word may go on with this character.

    A combining mark (an accent of its own, say) belongs to the letter before it.
    """
    return character.isalnum() or character == "_" or _is_mark(character)


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "M"


def numbers(scores: Any, what: str) -> np.ndarray:
    """A list, an array, a tensor, or captum's tuple of one tensor, in double precision."""
    tensor: Any = scores
    if isinstance(scores, (list, tuple)) and len(scores) == 1:
        tensor = scores[0]
    if hasattr(tensor, "detach") and tensor.ndim:
        # double first: numpy has no bfloat16
        scores = tensor.detach().cpu().double().numpy()
    try:
        return np.array(scores, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        reason = str(problem).rstrip(".")
        raise InputError(f"the {what} are not numbers, one for each piece: {reason}.") from problem


def one_row(scores: np.ndarray, wanted: set[int]) -> Float[np.ndarray, " score"]:
    """One number for each piece, of which there may be any of the ``wanted`` counts.

    A batch of one text is opened, and the dimensions of an embedding are summed.
    """
    shape = " × ".join(map(str, scores.shape)) or "a single number"
    is_batch_of_one = scores.ndim > 1 and scores.shape[0] == 1
    if is_batch_of_one and (scores.ndim == 3 or scores.shape[1] in wanted):
        scores = scores[0]
    if scores.ndim == 2 and scores.shape[0] in wanted:
        scores = scores.sum(-1)
    if scores.ndim != 1:
        counts = " or ".join(map(str, sorted(wanted)))
        raise InputError(
            f"scores are {counts} numbers, or as captum gives them for one text, "
            f"1 × {counts} (× dimensions); these are {shape}."
        )
    return scores


def short(text: str) -> str:
    """The beginning of a text, for an error message."""
    if len(text) <= LONGEST_QUOTE:
        return repr(text)
    return repr(f"{text[:LONGEST_QUOTE]}…")
