"""The tokens that could have stood in the place of a written one: why this rather than that?

A person writes "he", and the model writes " he": in the middle of a text most tokens begin with
their blank. So a rival is looked for as it would be written in that place, and " he", "▁he" and
"Ġhe" are other ways to say the same. Whether a token begins with a blank is a question to the
token: its text may have lost it, as at the beginning of what a decoder writes.

Each token has one name in a place, which sentences, tables and files use, and which leads back to
that very token. Where a word would begin, a piece that would go on with the word before is "…ly";
where none would, a token with a blank of its own is "␣he".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from whence.core.errors import TargetError
from whence.core.passage import SPECIAL, Passage
from whence.models.labels import BLANKS, Vocabulary

if TYPE_CHECKING:
    from whence.models.model import Model

SOME_WORD = "a"  # before a rival, so that it stands in the middle of a text
GOES_ON, HAS_BLANK = (
    "…",
    "␣",
)  # before the names of tokens that the place does not lead one to expect
# what a word has in front in a place: a blank; nothing, as the text begins there; nothing, as it
# goes on with a word
Border = Literal["blank", "start", "inside"]


@dataclass(frozen=True, eq=False)
class Placed(Mapping[int, str]):
    """The tokens of a vocabulary by the names that they have in one place of a written text.

    >>> import whence
    >>> from whence.models.writing import written_after
    >>> model = whence.load("writer")
    >>> text = written_after(model, model.encode("Then"), model.encode(" she said").ids)
    >>> names = labels_at(model, text, 0)
    >>> names.index_of("he") == names.index_of(" he") == names.index_of("Ġhe")
    True
    >>> names[model.labels.index_of("he")[0]]
    '…he'
    """

    model: Model
    vocabulary: Vocabulary
    border: Border

    @property
    def owner(self) -> str:
        """What an error message calls the tokens."""
        return self.vocabulary.owner

    def __len__(self) -> int:
        return len(self.vocabulary)

    def __iter__(self) -> Iterator[int]:
        return iter(self.vocabulary)

    def __getitem__(self, index: int) -> str:
        name = self.vocabulary[index]
        if not self.vocabulary.blank or self.vocabulary.is_special(index):
            return name
        begins_word = self.vocabulary.begins_word(index)
        if self.border == "blank":
            is_attached = name[0].isalnum() and not begins_word
            return f"{GOES_ON}{name}" if is_attached else name
        if begins_word and name[0] == " " and len(name) > 1:
            return f"{HAS_BLANK}{name[1:]}"
        return name

    def index_of(self, text: str) -> list[int]:
        """The tokens that a text is in this place; none where it holds what no token stands for."""
        if not text:
            return []
        exact = self._by_sign(text)
        if exact is not None:
            return exact
        bare = self._without_blank(text)
        has_blank = bare != text
        if self.border == "blank":
            return self._with_blank(bare, has_blank)
        if self.border == "start" or not has_blank:
            return self.vocabulary.index_of(bare)
        return self.vocabulary.index_of(f" {bare}")

    def _by_sign(self, text: str) -> list[int] | None:
        """A special token, or one that is told by a sign in front; None for all other texts."""
        if text in self.model.tokenizer.all_special_tokens:
            return [int(self.model.tokenizer.convert_tokens_to_ids(text))]
        sign, rest = text[0], text[1:]
        if not rest or sign not in (GOES_ON, HAS_BLANK):
            return None
        itself = self.vocabulary.index_of(text)
        if len(itself) == 1:
            return itself
        wanted = rest if sign == GOES_ON else f" {rest}"
        named = self.vocabulary.index_of(wanted)
        return named if len(named) == 1 else None

    def _without_blank(self, text: str) -> str:
        """A text without one blank before its first word, however that is written."""
        for sign in (" ", BLANKS[0], self.vocabulary.blank):
            if sign and text.startswith(sign) and text[len(sign) :].strip():
                return text[len(sign) :]
        return text

    def _with_blank(self, bare: str, has_blank: bool) -> list[int]:
        """The tokens of a word behind another one; a mark, such as ",", has its blank only if said.

        Where no such token begins with a blank, as in vocabularies of whole words, it is the text.
        """
        is_mark = not bare[0].isalnum()
        if is_mark and not has_blank:
            as_given = self.vocabulary.index_of(bare)
            return as_given if len(as_given) == 1 else self._behind_a_word(bare) or as_given
        if not self.vocabulary.blank:
            return self.vocabulary.index_of(bare)
        spaced = self.vocabulary.index_of(f" {bare}")
        if len(spaced) == 1:
            return spaced
        return self._behind_a_word(f" {bare}") or self.vocabulary.index_of(bare)

    def _behind_a_word(self, text: str) -> list[int]:
        """The tokens of a text behind a word; none where the border is inside of one."""
        backend = self.model.backend
        before = backend.encode(SOME_WORD, add_special_tokens=False).ids
        whole = backend.encode(SOME_WORD + text, add_special_tokens=False).ids
        if whole[: len(before)] != before or self.model.tokenizer.unk_token_id in whole:
            return []
        return whole[len(before) :]


def labels_at(model: Model, passage: Passage, output: int) -> Placed:
    """The names of all tokens in the place of an output."""
    assert isinstance(model.labels, Vocabulary)
    return Placed(model, model.labels, _border(model.labels, passage, output))


def _border(vocabulary: Vocabulary, passage: Passage, output: int) -> Border:
    """What a word has in front in the place of an output."""
    place = passage.output_place(output)
    if vocabulary.begins_word(int(passage.ids[place])):
        return "blank"
    is_first = passage.parts[place - 1] == SPECIAL
    if is_first:  # of a decoder's text, or behind a template
        return "blank" if vocabulary.blank == BLANKS[0] else "start"
    before = _text_before(passage, output)[-1:]
    written = passage.output_text(output)[:1]
    if before.isspace():
        return "start"
    return "inside" if written.isalnum() else "blank"


def _text_before(passage: Passage, output: int) -> str:
    written = (passage.pair or "")[: int(passage.spans[passage.output_place(output), 0])]
    return passage.text + written


def rival_of(model: Model, passage: Passage, output: int, against: str | int) -> tuple[int, ...]:
    """The tokens that ``against`` is in the place of an output, by their indices.

    >>> import whence
    >>> from whence.models.writing import written_after
    >>> model = whence.load("writer")
    >>> text = written_after(model, model.encode("Then"), model.encode(" she said").ids)
    >>> [model.labels[i] for i in rival_of(model, text, 0, "he")]
    [' he']
    """
    if not isinstance(against, str):
        return (against,)
    check_rival(model, against)
    return tuple(labels_at(model, passage, output).index_of(against))


def check_rival(model: Model, against: str) -> None:
    """Refuse what no token can stand for, before anything is written or run.

    >>> import whence
    >>> check_rival(whence.load("writer"), "he")
    """
    if not against:
        raise TargetError("against='' names no token; give a word, a text, or a token's index.")
    assert isinstance(model.labels, Vocabulary)
    if not Placed(model, model.labels, "blank").index_of(against):
        raise TargetError(
            f"against={against!r} cannot be written with the tokens of this model's vocabulary."
        )
