"""Units: the things that are scored.

Words of a text, patches of an image, features of an autoencoder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

from whence.core.errors import InputError
from whence.core.stored import Stored, as_stored

UnitKind = Literal["word", "token", "sentence"]


@dataclass(frozen=True, eq=False, repr=False)
class Units(Sequence[str]):
    """A row of units. It reads like a tuple of their own characters.

    ``kind`` says what they are: word, token, sentence, section, patch, feature.
    ``texts`` are their own characters, white space included, and ``names`` what a table shows.
    ``spans`` are (part, start, end) of those that are pieces of a text or an image; features have
    none.

    >>> units = Units("feature", ("praise", "negation"))
    >>> len(units), units[1], units == ("praise", "negation")
    (2, 'negation', True)
    """

    kind: str
    texts: tuple[str, ...]
    names: tuple[str, ...] = ()
    spans: tuple[tuple[int, int, int], ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", tuple(self.texts))
        names = self.names or [text.strip() for text in self.texts]
        object.__setattr__(self, "names", tuple(names))
        if len(self.names) != len(self.texts):
            raise InputError(f"{len(self.names)} names for {len(self.texts)} units.")
        if self.spans is not None and len(self.spans) != len(self.texts):
            raise InputError(f"{len(self.spans)} spans for {len(self.texts)} units.")

    @property
    def parts(self) -> tuple[int, ...]:
        """Which text each unit belongs to: 0, or 1 in the second text of a pair."""
        if self.spans is None:
            return (0,) * len(self.texts)
        return tuple(part for part, _, _ in self.spans)

    @property
    def distinct_names(self) -> tuple[str, ...]:
        """The names, told apart where they repeat.

        >>> Units("word", ("the ", "cat ", "the ")).distinct_names
        ('the', 'cat', 'the (2)')
        """
        return distinct(self.names)

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        return self.texts[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Units):
            return (self.kind, self.texts, self.spans) == (other.kind, other.texts, other.spans)
        return isinstance(other, tuple) and self.texts == other

    def __add__(self, other: tuple[str, ...] | Units) -> tuple[str, ...]:
        return self.texts + tuple(other)

    def __radd__(self, other: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(other) + self.texts

    def __hash__(self) -> int:
        return hash(self.texts)

    def __repr__(self) -> str:
        return repr(self.texts)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        spans = None if self.spans is None else [list(span) for span in self.spans]
        return {
            "kind": self.kind,
            "texts": list(self.texts),
            "names": list(self.names),
            "spans": spans,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any] | Stored) -> Units:
        """What ``to_dict`` gave."""
        stored = as_stored(stored, "row of units")
        texts = stored["texts"].texts()
        if not texts:
            raise stored["texts"].wrong("there is no unit")
        names, given = stored["names"].texts(), stored["spans"].given()
        spans = None
        if given is not None:
            rows = given.rows(3, len(texts)).tolist()
            spans = tuple((part, start, end) for part, start, end in rows)
        kind = stored["kind"].text()
        return stored.made(lambda: cls(kind, texts, names, spans))


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Names of which no two are alike: a repeated one says which of them it is.

    A number that would make a name that stands elsewhere is passed over.

    >>> distinct(["the", "cat", "saw", "the", "dog", "the"])
    ('the', 'cat', 'saw', 'the (2)', 'dog', 'the (3)')
    >>> distinct(["the", "the", "the (2)"])
    ('the', 'the (3)', 'the (2)')
    """
    given, seen = set(names), dict.fromkeys(names, 0)
    out = []
    for name in names:
        seen[name] += 1
        if seen[name] > 1:
            # "the (2)" may be a name of its own
            while f"{name} ({seen[name]})" in given:
                seen[name] += 1
            name = f"{name} ({seen[name]})"
        out.append(name)
    return tuple(out)
