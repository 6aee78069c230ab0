"""Text in: from characters to a Passage, with an error where there is nothing to explain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from whence.core.errors import InputError, ModelError
from whence.core.passage import SPECIAL, Passage
from whence.core.units import UnitKind

if TYPE_CHECKING:
    from whence.models.model import Model

LONGEST_QUOTE = 40  # characters of a text in an error message


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
    _check_ids(model, encoding.ids)

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


def _check_text(text: str) -> None:
    if not isinstance(text, str):
        raise InputError(f"this model reads text, not a {type(text).__name__}.")
    _refuse_surrogates(text)
    if not text.strip():
        raise InputError("the text is empty or only white space; there is nothing to explain.")


def _check_ids(model: Model, ids: Sequence[int]) -> None:
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


def _refuse_surrogates(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as problem:
        bad = ord(text[problem.start])
        raise InputError(
            f"the text has a lone surrogate U+{bad:04X} at character {problem.start}, "
            "which is not valid Unicode; "
            "decode the bytes with the right encoding, or with errors='replace'."
        ) from None
