"""What a model's outputs are called: the classes of a classifier, the tokens of a language model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Prediction:
    """What the model says of one input: the leading labels with their probabilities, most likely first, and their logits.

    A regression has no probabilities: its number is in ``logits``.
    """

    label: str
    probabilities: Mapping[str, float]
    logits: Mapping[str, float] = field(default_factory=dict)


class Vocabulary(Mapping[int, str]):
    """The labels of a language model: its tokens, as text."""

    def __init__(self, tokenizer: Any, backend: Any, size: int) -> None:
        self._tokenizer, self._backend, self._size = tokenizer, backend, size

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._size))

    def __getitem__(self, index: int) -> str:
        """The token as text where that text leads back to it, else its own string ("##s", a lone byte): no two share a name."""
        if not 0 <= index < self._size:
            raise KeyError(index)
        text = self._tokenizer.decode([index])
        own = self._tokenizer.convert_ids_to_tokens(index)
        return (
            text if text and self.index_of(text) == [index] else str(index if own is None else own)
        )

    def index_of(self, text: str) -> list[int]:
        """The one token that ``text`` is; several where it is not one token, none where it holds what no token stands for."""
        known = self._tokenizer.backend_tokenizer.token_to_id(text)
        if known is not None:
            return [known]
        ids = self._backend.encode(text, add_special_tokens=False).ids
        return [] if self._tokenizer.unk_token_id in ids else ids
