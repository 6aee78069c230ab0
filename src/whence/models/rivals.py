"""The token that could have stood in the place of a written one: why this rather than that?

A person writes "he", and the model writes " he": in the middle of a text most tokens begin with
their space. So a rival is looked for as it would be written in that place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from whence.core.errors import TargetError
from whence.core.passage import Passage
from whence.models.labels import Vocabulary

if TYPE_CHECKING:
    from whence.models.model import Model

SOME_WORD = "a"  # before a rival, so that it stands in the middle of a text


def rival_of(
    model: Model, passage: Passage, output: int, instead: str | int, first: bool = False
) -> int:
    """The token that ``instead`` is in the place of an output, by its index.

    A word takes a space in front where the output has one. With ``first``, a word of several
    tokens stands for the first of them; otherwise it is refused.

    >>> import whence
    >>> from whence.models.writing import written_after
    >>> model = whence.load("writer")
    >>> text = written_after(model, model.encode("Then"), model.encode(" she said").ids)
    >>> model.labels[rival_of(model, text, 0, "he")]
    ' he'
    """
    if not isinstance(instead, str):
        return instead
    if not instead:
        raise TargetError("instead='' names no token; give a word, or the index of a token.")
    if instead in model.tokenizer.all_special_tokens:
        return int(model.tokenizer.convert_tokens_to_ids(instead))

    assert isinstance(model.labels, Vocabulary)
    as_given = model.labels.index_of(instead)
    begins_with_space = passage.output_text(output)[:1].isspace()
    pieces = as_given
    if begins_with_space and not instead[0].isspace():
        pieces = _behind_a_word(model, f" {instead}") or as_given
    if len(pieces) == 1:
        return pieces[0]
    takes_no_space = not any(map(str.isalnum, instead))
    if takes_no_space and len(as_given) == 1:  # a mark, such as ","
        return as_given[0]
    if not pieces:
        raise TargetError(f"instead={instead!r} has a character that no token stands for.")
    if first:
        return pieces[0]
    names = ", ".join(repr(model.labels[piece]) for piece in pieces)
    raise TargetError(
        f"instead={instead!r} is {len(pieces)} tokens, not one: {names}. The first of them stands "
        "for it with instead_first=True (--instead-first)."
    )


def _behind_a_word(model: Model, text: str) -> list[int]:
    """The tokens of a text that goes on behind a word; none where the border is inside of one."""
    before = model.backend.encode(SOME_WORD, add_special_tokens=False).ids
    whole = model.backend.encode(SOME_WORD + text, add_special_tokens=False).ids
    if whole[: len(before)] != before or model.tokenizer.unk_token_id in whole:
        return []
    return whole[len(before) :]
