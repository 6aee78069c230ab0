"""What a model says of texts beside what their data say, and the words that carry its mistakes.

``explaining/confusion.py`` counts it in a run; ``views/confusion.py`` puts it into words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from whence.core.attribution import SCHEMA, check_schema
from whence.core.stored import Stored, as_stored

FEWEST_TEXTS = 3  # that a word must stand in, to be named
FEW_TEXTS = 10  # below it, that texts are few is said
LEAST = 0.1  # of the largest effect: a word that does less is not named


def is_supported(texts: int, interval: tuple[float, float] | None) -> bool:
    """Whether the data support a word: it stands in three texts, and its mean is not zero.

    The interval is that of one word: no other word is paid for, as words are named by what they
    do and not by how often they stand somewhere, which is what a correction would ask of them.

    >>> is_supported(3, (0.1, 0.4)), is_supported(2, (0.1, 0.4)), is_supported(9, (-0.1, 0.4))
    (True, False, False)
    """
    if interval is None or texts < FEWEST_TEXTS:
        return False
    low, high = interval
    return low > 0 or high < 0


@dataclass(frozen=True)
class Pair:
    """So many texts that the data call ``given``, and of which the model says ``says``."""

    given: str
    says: str
    texts: int

    @property
    def is_right(self) -> bool:
        """Whether the two say the same."""
        return self.given == self.says


@dataclass(frozen=True)
class Unknown:
    """A label of the data that the model does not have, and its texts."""

    label: str
    texts: int


@dataclass(frozen=True)
class Speaking:
    """What a word does in the texts that have it: in ``speaking`` of them it speaks that way.

    ``share`` is its mean part of all scores of a text, and ``interval`` the 95 % one over texts;
    None where there is one text.
    """

    texts: int
    speaking: int
    share: float
    interval: tuple[float, float] | None

    @property
    def is_supported(self) -> bool:
        """Whether it stands in enough texts, and surely does something."""
        return is_supported(self.texts, self.interval)


@dataclass(frozen=True)
class MisleadingWord:
    """A word that speaks for a wrong answer; ``right`` is what it does where that answer is right.

    None where no rightly answered text has the word.
    """

    word: str
    wrong: Speaking
    right: Speaking | None


@dataclass(frozen=True)
class Mistakes:
    """The most frequent mistake of a model: which texts, and the words that carry it.

    ``texts`` are distinct ones. ``towards`` says whose words these are: "says", those that speak
    for the label that the model says; "given", those that speak against the label of the data;
    None where no such label is explained, or no method may speak (``method`` is then None).
    ``right`` counts the texts on which the model says the label of these words rightly. ``row`` is
    the text on which it is surest of the wrong answer.
    """

    given: str
    says: str
    texts: int
    right: int
    method: str | None
    towards: Literal["says", "given"] | None
    words: tuple[MisleadingWord, ...]
    row: int
    text: str
    is_whole: bool  # one text, not a pair: it can be asked about by itself
    probability: float | None

    @property
    def named(self) -> tuple[MisleadingWord, ...]:
        """The words that may be said to carry it: supported, and a tenth of the largest or more."""
        largest = max((word.wrong.share for word in self.words), default=0.0)
        return tuple(
            word
            for word in self.words
            if word.wrong.is_supported and word.wrong.share >= LEAST * largest
        )


@dataclass(frozen=True)
class Confusion:
    """What the model says beside what the data say, over the texts that have both.

    ``unknown`` are labels of the data that the model does not have, with their texts: the model
    cannot say them, so they are in no pair. ``unlabelled`` counts the texts without a label.
    """

    pairs: tuple[Pair, ...]
    unknown: tuple[Unknown, ...]
    unlabelled: int
    mistakes: Mistakes | None

    @property
    def texts(self) -> int:
        """The texts that have both."""
        return sum(pair.texts for pair in self.pairs)

    @property
    def right(self) -> int:
        """Those on which both say the same."""
        return sum(pair.texts for pair in self.pairs if pair.is_right)

    @property
    def wrong(self) -> int:
        """Those on which they do not."""
        return self.texts - self.right

    @property
    def labels(self) -> tuple[str, ...]:
        """Every label that either says, the one of most texts first."""
        counted: dict[str, int] = {}
        for pair in self.pairs:
            counted[pair.given] = counted.get(pair.given, 0) + pair.texts
            counted.setdefault(pair.says, 0)
        return tuple(sorted(counted, key=lambda label: (-counted[label], label)))

    def count(self, given: str, says: str) -> int:
        """The texts of one cell."""
        return sum(p.texts for p in self.pairs if (p.given, p.says) == (given, says))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; ``from_dict`` gives them back."""
        return {"schema": SCHEMA, "kind": "confusion"} | asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any] | Stored) -> Confusion:
        """What ``to_dict`` gave.

        >>> confusion = Confusion((Pair("good", "bad", 2),), (Unknown("ok", 1),), 0, None)
        >>> Confusion.from_dict(confusion.to_dict()) == confusion
        True
        """
        check_schema(stored, "confusion")
        stored = as_stored(stored, "confusion")
        told = {name: entry.value for name, entry in stored.entries().items()}
        fields = {name: value for name, value in told.items() if name not in ("schema", "kind")}
        return Stored(fields, stored.source, stored.path).record(cls)
