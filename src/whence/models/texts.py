"""Text in: from characters to a Passage, with an error where there is nothing to explain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from whence.core.errors import InputError, ModelError
from whence.core.passage import SPECIAL, Passage
from whence.core.units import UnitKind

if TYPE_CHECKING:
    from whence.models.model import Model


def tokenize(model: Model, text: str, pair: str | None, units: UnitKind | Sequence[int]) -> Passage:
    """The passage of a text or a pair, however long."""
    contents = [text] if pair is None else [text, pair]
    for content in contents:
        if not isinstance(content, str):
            raise InputError(f"this model reads text, not a {type(content).__name__}.")
        _refuse_surrogates(content)
        if not content.strip():
            raise InputError("the text is empty or only white space; there is nothing to explain.")
    encoding = model.backend.encode(text, pair)
    parts = [SPECIAL if s is None else s for s in encoding.sequence_ids]
    for part, content in enumerate(contents):
        if part not in parts:
            short = content if len(content) <= 40 else f"{content[:40]}…"
            raise InputError(
                f"the text {short!r} has nothing to explain: the tokenizer leaves no token of it."
            )
    size = getattr(model.input_embeddings, "num_embeddings", None)
    if size is not None and max(encoding.ids) >= size:
        raise ModelError(
            f"the tokenizer gives the id {max(encoding.ids)} and the model embeds {size}: they do not belong together."
        )
    wants_types = "token_type_ids" in getattr(model.tokenizer, "model_input_names", [])
    types = encoding.type_ids if wants_types else None
    return Passage.from_tokens(
        text,
        encoding.ids,
        encoding.tokens,
        encoding.offsets,
        parts,
        units=units,
        pair=pair,
        types=types,
    )


def _refuse_surrogates(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as problem:
        bad = ord(text[problem.start])
        raise InputError(
            f"the text has a lone surrogate U+{bad:04X} at character {problem.start}, which is not valid Unicode; "
            "decode the bytes with the right encoding, or with errors='replace'."
        ) from None
