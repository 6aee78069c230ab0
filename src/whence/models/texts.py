"""Text in: from characters to a Passage, with an error where there is nothing to explain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from whence.core.errors import InputError, ModelError
from whence.core.passage import SPECIAL, Passage
from whence.core.units import UnitKind

if TYPE_CHECKING:
    from whence.models.model import Model

LONGEST_QUOTE = 40  # characters of a text in an error message
BETWEEN_CHOICES = "\n"


def tokenize(model: Model, text: str, pair: str | None, units: UnitKind | Sequence[int]) -> Passage:
    """The passage of a text or a pair, however long."""
    contents = [text] if pair is None else [text, pair]
    for content in contents:
        _check_text(content)

    encoding = model.backend.encode(text, pair)
    parts = [SPECIAL if s is None else s for s in encoding.sequence_ids]
    for part, content in enumerate(contents):
        if part not in parts:
            raise InputError(
                f"the text {_quoted(content)} has nothing to explain: "
                "the tokenizer leaves no token of it."
            )
    check_ids(model, encoding.ids)

    wants_types = "token_type_ids" in getattr(model.tokenizer, "model_input_names", [])
    return Passage.from_tokens(
        text,
        encoding.ids,
        encoding.tokens,
        encoding.offsets,
        parts,
        units=units,
        pair=pair,
        types=encoding.type_ids if wants_types else None,
    )


def tokenize_choices(
    model: Model, text: str, choices: Sequence[str], units: UnitKind | Sequence[int]
) -> Passage:
    """The passage of a text with each of several choices in turn, all padded to one length.

    The units are those of the text, once, and then those of the choices: a token of the text
    belongs to the same unit in every reading.
    """
    for content in (text, *choices):
        _check_text(content)
    readings = [model.backend.encode(text, choice) for choice in choices]
    for reading, choice in zip(readings, choices, strict=True):
        check_ids(model, reading.ids)
        for part, content in enumerate((text, choice)):
            if part not in reading.sequence_ids:
                raise InputError(
                    f"the text {_quoted(content)} has nothing to explain: "
                    "the tokenizer leaves no token of it."
                )

    once = _each_text_once(text, choices, readings, units)
    width = max(len(reading.ids) for reading in readings)
    new_of_choices = int((once.parts == 0).sum())
    sources, ids, types = [], [], []
    for reading in readings:
        row = []
        of_text = 0
        for part in reading.sequence_ids:
            if part is None:
                row.append(NO_SOURCE)
            elif part == 0:
                row.append(of_text)
                of_text += 1
            else:
                row.append(new_of_choices)
                new_of_choices += 1
        missing = width - len(row)
        sources += _padded(model, row, NO_SOURCE, missing)
        ids += _padded(model, reading.ids, model.pad_id, missing)
        types += _padded(model, reading.type_ids, 0, missing)
    return _laid_out(model, once, np.array(sources), ids, types, tuple(choices))


NO_SOURCE = -1  # of a special token, or of padding


def _each_text_once(
    text: str, choices: Sequence[str], readings: Sequence[Any], units: UnitKind | Sequence[int]
) -> Passage:
    """The tokens of the text and then of the choices, without special ones, cut into units."""
    ids, tokens, spans, parts = [], [], [], []
    begins = 0
    for number, (choice, reading) in enumerate(zip(choices, readings, strict=True)):
        rows = zip(reading.sequence_ids, reading.ids, reading.tokens, reading.offsets, strict=True)
        for part, token_id, token, (start, end) in rows:
            if part is None or (part == 0 and number > 0):
                continue
            shift = 0 if part == 0 else begins
            ids.append(token_id)
            tokens.append(token)
            spans.append((start + shift, end + shift))
            parts.append(part)
        begins += len(choice) + len(BETWEEN_CHOICES)
    pair = BETWEEN_CHOICES.join(choices)
    return Passage.from_tokens(text, ids, tokens, spans, parts, units=units, pair=pair)


def _laid_out(
    model: Model,
    once: Passage,
    sources: Int[np.ndarray, " token"],
    ids: Sequence[int],
    types: Sequence[int],
    choices: tuple[str, ...],
) -> Passage:
    """The passage of all readings, from where each of their tokens stands in ``once``."""
    is_text = sources != NO_SOURCE
    own = model.tokenizer.convert_ids_to_tokens(list(ids))
    wants_types = "token_type_ids" in getattr(model.tokenizer, "model_input_names", [])
    return replace(
        once,
        ids=np.asarray(ids, dtype=np.int64),
        tokens=tuple(map(str, own)),
        spans=np.where(is_text[:, None], once.spans[sources], 0),
        parts=np.where(is_text, once.parts[sources], SPECIAL),
        unit_of=np.where(is_text, once.unit_of[sources], SPECIAL),
        types=np.asarray(types, dtype=np.int64) if wants_types else None,
        choices=choices,
    )


def _padded(model: Model, row: Sequence[int], value: int, missing: int) -> list[int]:
    """A row with padding on the side on which the tokenizer's models are used to it."""
    padding = [value] * missing
    if getattr(model.tokenizer, "padding_side", "right") == "left":
        return [*padding, *row]
    return [*row, *padding]


def _check_text(text: str) -> None:
    if not isinstance(text, str):
        raise InputError(f"this model reads text, not a {type(text).__name__}.")
    refuse_surrogates(text)
    if not text.strip():
        raise InputError("the text is empty or only white space; there is nothing to explain.")


def check_ids(model: Model, ids: Sequence[int]) -> None:
    """Raise where the tokenizer is another model's."""
    size = model.embedded_ids
    if size is not None and max(ids) >= size:
        raise ModelError(
            f"the tokenizer gives the id {max(ids)} and the model embeds {size}: "
            "they do not belong together."
        )


def _quoted(text: str) -> str:
    if len(text) <= LONGEST_QUOTE:
        return repr(text)
    return repr(f"{text[:LONGEST_QUOTE]}…")


def refuse_surrogates(text: str) -> None:
    """Refuse half of a character, which no tokenizer takes."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as problem:
        bad = ord(text[problem.start])
        raise InputError(
            f"the text has a lone surrogate U+{bad:04X} at character {problem.start}, "
            "which is not valid Unicode; "
            "decode the bytes with the right encoding, or with errors='replace'."
        ) from None
