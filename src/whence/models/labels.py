"""What a model's outputs are called: a classifier's classes, a language model's tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from whence.core import pieces
from whence.core.once import once

if TYPE_CHECKING:
    from whence.models.model import Model

# how vocabularies write the blank before a word, in the strings of their tokens
LETTER_OF_BLANK = "Ġ"  # in vocabularies of bytes, which spell each byte as a letter
BLANKS = ("▁", LETTER_OF_BLANK)
NOT_WHOLE = "\N{REPLACEMENT CHARACTER}"  # what part of a character is decoded to


@dataclass(frozen=True)
class Prediction:
    """What the model says of one input: the leading labels with their probabilities and logits.

    The most likely label comes first. A regression has no probabilities: its number is in
    ``logits``.
    """

    label: str
    probabilities: Mapping[str, float]
    logits: Mapping[str, float] = field(default_factory=dict)


class Called(dict[int, str]):
    """Labels with a word for what they are, which an error message uses."""

    def __init__(self, labels: Mapping[int, str], owner: str) -> None:
        super().__init__(labels)
        self.owner = owner


class Vocabulary(Mapping[int, str]):
    """The labels of a language model: its tokens, as text."""

    owner = "tokens of this model's vocabulary"

    def __init__(self, tokenizer: Any, backend: Any, size: int) -> None:
        self._tokenizer = tokenizer
        self._backend = backend
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._size))

    def __getitem__(self, index: int) -> str:
        """The token as text where that text leads back to it, else its own string.

        The latter ("##s") keeps two tokens from sharing a name. A blank in it is written as a
        blank: of "▁on" and "on" the one is " on", the other "on". A part of a character is told by
        its bytes ("<0xC3>").
        """
        if not 0 <= index < self._size:
            raise KeyError(index)

        text = self._tokenizer.decode([index])
        if text and self.index_of(text) == [index]:
            return text

        own = self._tokenizer.convert_ids_to_tokens(index)
        if own is None:
            return str(index)
        if NOT_WHOLE in text:
            by_bytes = pieces.told(str(own))
            if self.index_of(by_bytes) == [index]:
                return by_bytes
        if self.begins_word(index):
            spelt = str(own).replace(self.blank, " ")
            if self.index_of(spelt) == [index]:
                return spelt
        return str(own)

    @once
    def blank(self) -> str:
        """How the strings of its tokens write the blank before a word; empty where none does."""
        parts = self._backend.encode("a a", add_special_tokens=False).tokens
        for sign in BLANKS:
            if any(piece.startswith(sign) for piece in parts[1:]):
                return sign
        return ""

    def begins_word(self, index: int) -> bool:
        """Whether a token has the blank before a word in it, also where its text has lost that."""
        own = self._tokenizer.convert_ids_to_tokens(index)
        return bool(self.blank) and own is not None and str(own).startswith(self.blank)

    def is_special(self, index: int) -> bool:
        """Whether a token stands for no text, as the end of the sequence."""
        return index in self._tokenizer.all_special_ids

    def index_of(self, text: str) -> list[int]:
        """The one token that ``text`` is.

        Several where it is not one token, none where it holds what no token stands for.
        """
        known = self._known(text)
        if known is not None:
            return [known]
        ids = self._backend.encode(text, add_special_tokens=False).ids
        return [] if self._tokenizer.unk_token_id in ids else ids

    def _known(self, text: str) -> int | None:
        """The token whose name ``text`` is; None where it is to be cut into tokens."""
        named = self._tokenizer.backend_tokenizer.token_to_id
        known = named(text)
        if known is not None and not self._is_of_other_text(known, text):
            return known
        known = None
        if self.blank and text.startswith(" "):
            known = named(text.replace(" ", self.blank))
        if known is None:
            own = pieces.string_of(text, self.blank)
            known = None if own is None else named(own)
        return known

    def _is_of_other_text(self, index: int, string: str) -> bool:
        """Whether a token stands for another text than its string spells: "é" for part of one.

        In vocabularies of bytes, which are spelt by letters.
        """
        if self.blank != LETTER_OF_BLANK or self.is_special(index):
            return False
        return self._tokenizer.decode([index]) != string.replace(self.blank, " ")


def classes(model: Model) -> Mapping[int, str]:
    """The classes of a classifier."""
    return named(model.config.id2label or {}, model.config.num_labels)


def named(id2label: Mapping[Any, Any], count: int) -> Mapping[int, str]:
    """A name for each of so many classes; two classes of one name stay two.

    >>> named({0: "bad", 1: "bad"}, 3)
    {0: 'bad (0)', 1: 'bad (1)', 2: 'LABEL_2 (2)'}
    """
    given = {int(i): str(name) for i, name in id2label.items()}
    names = {i: given.get(i, f"LABEL_{i}") for i in range(count)}
    if len(set(names.values())) == len(names):
        return names
    return {i: f"{name} ({i})" for i, name in names.items()}


def vocabulary(model: Model) -> Vocabulary:
    """The tokens of a language model."""
    size = model.config.get_text_config().vocab_size
    return Vocabulary(model.tokenizer, model.backend, size)
