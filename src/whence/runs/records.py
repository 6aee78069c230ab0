"""A data set as it lies: records with named fields, before it is known which field is the text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

# records that are looked at to learn which columns there are, and what they hold
LOOKED_AT = 100
# the name under which a text without columns lies in its record
PLAIN = ""
LONGEST_ROUGH = 1000

# what a column can hold, in the words of an error
TEXT = "text"
TEXTS = "lists of texts"
NUMBERS = "numbers"
BOOLEANS = "true or false"
NOTHING = "nothing"
OTHER = "other values"


@dataclass(frozen=True)
class Record:
    """One record: its fields, or why it cannot be read."""

    number: int  # from 0
    fields: Mapping[str, Any] = field(default_factory=dict)
    where: str = ""  # "line 17", of a file that has lines
    problem: str | None = None
    rough: str = ""  # what can be shown of a record that cannot be read


@dataclass(frozen=True)
class Unreadable:
    """A value that stands in its file and cannot be read, in place of the value."""

    reason: str


@dataclass(frozen=True)
class Table:
    """A data set whose records can be read again and again.

    ``records`` takes the names of the columns that are wanted; None stands for all. A format that
    reads whole records anyway may give more.
    """

    format: str
    records: Callable[[tuple[str, ...] | None], Iterator[Record]]
    names: tuple[str, ...] | None = None  # None, where there are texts and no columns
    kinds: Mapping[str, str] = field(default_factory=dict)  # what each column holds
    notes: tuple[str, ...] = ()
    has_header: bool = False  # the names come from the first line of a file


def rough(text: str) -> str:
    r"""A text that can be stored and shown: cut, and without halves of characters.

    Bytes that were no UTF-8 are spelt as ``explain --file`` does it.

    >>> rough(b"caf\xe9".decode(errors="surrogateescape"))
    'caf\\xe9'
    """
    if len(text) > LONGEST_ROUGH:
        text = text[:LONGEST_ROUGH] + "…"
    try:
        content = text.encode(errors="surrogateescape")
    except UnicodeEncodeError:  # a half that stands for no byte
        content = text.encode(errors="backslashreplace")
    return content.decode(errors="backslashreplace")


def unboxed(value: Any) -> Any:
    """Python's own value for one of numpy."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value


def is_nothing(value: Any) -> bool:
    """Null, or the NaN that pandas writes for it."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def kind_of(value: Any) -> str:
    """What a value is, in the words of an error."""
    value = unboxed(value)
    if is_nothing(value):
        return NOTHING
    if isinstance(value, str):
        return TEXT
    if isinstance(value, bool):
        return BOOLEANS
    if isinstance(value, (int, float)):
        return NUMBERS
    if isinstance(value, (list, tuple)) and all(isinstance(part, str) for part in value):
        return TEXTS
    return OTHER


def kinds_of(records: Iterable[Record], kind: Callable[[Any], str] = kind_of) -> dict[str, str]:
    """What each column of some records holds: what most of its values are.

    >>> kinds_of([Record(0, {"a": "x", "b": 1}), Record(1, {"a": None, "c": True})])
    {'a': 'text', 'b': 'numbers', 'c': 'true or false'}
    """
    counts: dict[str, Counter[str]] = {}
    for record in records:
        for name, value in record.fields.items():
            counts.setdefault(name, Counter())[kind(value)] += 1

    kinds: dict[str, str] = {}
    for name, count in counts.items():
        count.pop(NOTHING, None)
        kinds[name] = count.most_common(1)[0][0] if count else NOTHING
    return kinds


def first_readable(records: Iterable[Record]) -> list[Record]:
    """The first records that can be read, by which the columns are known."""
    readable = (record for record in records if record.problem is None)
    return list(islice(readable, LOOKED_AT))
