"""A stored value and where it stands: each field of a file is checked once, as it is read.

``from_dict`` asks a Stored for what it expects, and whatever is something else is refused with its
path: ``'a.json' is damaged: target.index: expected a whole number, got 'abc'.`` Nothing is made to
fit: no text becomes a number, and no number becomes true.
"""

from __future__ import annotations

import json
import math
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from whence.core.errors import LoadError, WhenceError

DEEPEST = 50  # levels of lists and records; what whence writes has about twenty
LARGEST = 2**63 - 1
LONGEST_QUOTE = 40
NAME = re.compile(r"[A-Za-z_][\w-]*")
Record = TypeVar("Record")
Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class Stored:
    """A value of a file, its path in there, and the name of the file or of the thing.

    >>> Stored({"scores": [1, "x"]}, "this attribution")["scores"].numbers()
    Traceback (most recent call last):
    whence.core.errors.LoadError: this attribution is damaged: scores[1]: expected a number, \
got 'x'.
    """

    value: Any
    source: str
    path: str = ""
    depth: int = 0

    # ------------------------------------------------------------------ refusing

    def wrong(self, why: str) -> LoadError:
        """The error about this place."""
        place = f"{self.path}: " if self.path else ""
        return LoadError(f"{self.source} is damaged: {place}{why.rstrip('.')}.")

    def expected(self, what: str) -> LoadError:
        """The error where this is not what it should be."""
        return self.wrong(f"expected {what}, got {self.shown}")

    def made(self, make: Callable[[], Made]) -> Made:
        """What ``make`` makes of this; what it refuses is refused with the path."""
        try:
            return make()
        except LoadError:
            raise
        except WhenceError as problem:
            raise self.wrong(str(problem)) from problem

    @property
    def shown(self) -> str:
        """The value in a few characters."""
        return _quoted(self.value)

    # ------------------------------------------------------------------ going down

    def _child(self, value: Any, step: str) -> Stored:
        if self.depth >= DEEPEST:
            raise self.wrong(f"nested more than {DEEPEST} deep")
        return Stored(value, self.source, self.path + step, self.depth + 1)

    def __getitem__(self, key: str) -> Stored:
        """A field of a record that must be there; it may be null."""
        record = self._record()
        if key not in record:
            raise self.wrong(f"{key!r} is missing")
        return self._child(record[key], self._step(key))

    def get(self, key: str) -> Stored | None:
        """A field that may be missing or null."""
        value = self._record().get(key)
        return None if value is None else self._child(value, self._step(key))

    def given(self) -> Stored | None:
        """This, unless it is null."""
        return None if self.value is None else self

    def items(self) -> list[Stored]:
        """The entries of a list."""
        return [self._child(value, f"[{i}]") for i, value in enumerate(self._list())]

    def entries(self) -> dict[str, Stored]:
        """The entries of a record with names of its own."""
        return {key: self._child(value, self._step(key)) for key, value in self._record().items()}

    def _step(self, key: str) -> str:
        if NAME.fullmatch(key) is None:
            return f"[{_quoted(key)}]"
        return f".{key}" if self.path else key

    def _record(self) -> Mapping[str, Any]:
        if not isinstance(self.value, Mapping):
            raise self.expected("a record")
        if not all(isinstance(key, str) for key in self.value):
            raise self.wrong("expected texts as names of its fields")
        return self.value

    def _list(self) -> Sequence[Any]:
        if not isinstance(self.value, (list, tuple)):
            raise self.expected("a list")
        return self.value

    # ------------------------------------------------------------------ single values

    def text(self) -> str:
        """A text."""
        if not isinstance(self.value, str):
            raise self.expected("a text")
        return self.value

    def name(self) -> str:
        """A text that is more than white space."""
        if not self.text().strip():
            raise self.expected("a name")
        return self.value

    def flag(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            raise self.expected("true or false")
        return self.value

    def whole(self, least: int = 0, most: int = LARGEST) -> int:
        """A whole number within bounds."""
        if not _is_whole(self.value):
            raise self.expected("a whole number")
        if not least <= self.value <= most:
            bounds = f"from {least} to {most}" if most < LARGEST else f"of at least {least}"
            raise self.expected(f"a whole number {bounds}")
        return self.value

    def number(self, least: float = -math.inf, most: float = math.inf) -> float:
        """A finite number within bounds."""
        if not _is_number(self.value):
            raise self.expected("a number")
        if not _is_finite(self.value):
            raise self.expected("a finite number")
        if not least <= self.value <= most:
            raise self.expected(f"a number from {least:g} to {most:g}")
        return float(self.value)

    def choice(self, choices: Iterable[str]) -> str:
        """One of a few words."""
        known = list(choices)
        if self.value not in known:
            raise self.expected(f"one of {', '.join(map(repr, known))}")
        return self.value

    def plain(self) -> Any:
        """Whatever JSON can hold, as it is: the settings of a method that nobody here knows."""
        if isinstance(self.value, Mapping):
            for entry in self.entries().values():
                entry.plain()
        elif isinstance(self.value, (list, tuple)):
            for item in self.items():
                item.plain()
        elif _is_number(self.value):
            self.number()
        elif not (self.value is None or isinstance(self.value, (str, bool))):
            raise self.expected("a value of JSON")
        return self.value

    def plain_record(self) -> dict[str, Any]:
        """A record of such values."""
        return {name: entry.plain() for name, entry in self.entries().items()}

    # ------------------------------------------------------------------ several values

    def texts(self) -> tuple[str, ...]:
        """A list of texts."""
        values = self._list()
        if not all(isinstance(value, str) for value in values):
            return tuple(item.text() for item in self.items())  # which names the one
        return tuple(values)

    def numbers(self, count: int | None = None) -> np.ndarray:
        """A list of finite numbers, of which there are ``count``."""
        values = self._list()
        if all(type(value) is float for value in values):  # thousands, mostly
            array = np.array(values, dtype=np.float64)
            if not np.isfinite(array).all():
                self.items()[int(np.argmin(np.isfinite(array)))].number()
        else:
            array = np.array([item.number() for item in self.items()], dtype=np.float64)
        self._check_count(count, len(array))
        return array

    def wholes(
        self, count: int | None = None, least: int = -LARGEST, most: int = LARGEST
    ) -> np.ndarray:
        """A list of whole numbers within bounds, of which there are ``count``."""
        values = self._list()
        fine = all(type(value) is int and least <= value <= most for value in values)
        if not fine:
            values = [item.whole(least, most) for item in self.items()]
        self._check_count(count, len(values))
        return np.array(values, dtype=np.int64)

    def rows(self, width: int, count: int | None = None) -> np.ndarray:
        """A list of lists of ``width`` whole numbers each."""
        rows = [item.wholes(width) for item in self.items()]
        self._check_count(count, len(rows))
        return np.array(rows, dtype=np.int64).reshape(-1, width)

    def interval(self) -> tuple[float, float]:
        """Two numbers, the lower one first."""
        low, high = (item.number() for item in self._of_length(2))
        if low > high:
            raise self.wrong(f"expected the lower number first, got {low:g} and {high:g}")
        return low, high

    def _of_length(self, count: int) -> list[Stored]:
        self._check_count(count, len(self._list()))
        return self.items()

    def _check_count(self, wanted: int | None, count: int) -> None:
        if wanted is not None and count != wanted:
            raise self.wrong(f"expected {wanted} entries, got {count}")

    # ------------------------------------------------------------------ whole records

    def record(self, kind: type[Record]) -> Record:
        """A flat dataclass, by the types that it declares; whole numbers are not below zero."""
        hints = get_type_hints(kind)
        known = {entry.name: entry for entry in fields(kind)}  # type: ignore[arg-type]
        values = {}
        for name, value in self._record().items():
            if name not in known:
                raise self.wrong(f"there is no field {_quoted(name)}")
            values[name] = self._child(value, self._step(name)).typed(hints[name])
        for name, entry in known.items():
            is_needed = entry.default is MISSING and entry.default_factory is MISSING
            if name not in values and is_needed:
                raise self.wrong(f"{name!r} is missing")
        return self.made(lambda: kind(**values))

    def typed(self, hint: Any) -> Any:
        """A value of a declared type, one of those that records are made of."""
        simple = {str: self.text, int: self.whole, float: self.number, bool: self.flag}
        if hint in simple:
            return simple[hint]()
        if hint is Any:
            return self.plain()
        if is_dataclass(hint):
            return self.record(hint)  # type: ignore[arg-type]
        if isinstance(hint, type) and issubclass(hint, StrEnum):
            return hint(self.choice(hint))
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Literal:
            return self.choice(arguments)
        if origin in (Union, types.UnionType):
            return self._one_of(arguments)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            entries = self.entries()
            return {name: entry.typed(arguments[1]) for name, entry in entries.items()}
        if hint == tuple[float, float]:
            return self.interval()
        if origin is tuple and arguments[1:] == (...,):
            return tuple(item.typed(arguments[0]) for item in self.items())
        raise TypeError(f"nothing is known about reading a {hint}.")

    def _one_of(self, hints: Sequence[Any]) -> Any:
        if self.value is None and type(None) in hints:
            return None
        hints = [hint for hint in hints if hint is not type(None)]
        if len(hints) == 1:
            return self.typed(hints[0])
        for hint in hints:
            # by the kind of value first: the error is then about what is wrong with it
            if hint is str and isinstance(self.value, str):
                return self.text()
            if hint is int and _is_whole(self.value):
                return self.whole(least=-LARGEST)
        names = {str: "a text", int: "a whole number"}
        raise self.expected(" or ".join(names.get(hint, str(hint)) for hint in hints))


def as_stored(value: Any, kind: str) -> Stored:
    """A value that is asked for its fields; ``kind`` names it where no file does."""
    return value if isinstance(value, Stored) else Stored(value, f"this {kind}")


def parsed_json(text: str) -> Any:
    """The values of a JSON text; a ValueError says in a few words what is wrong with it.

    >>> parsed_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ValueError: it has 'a' twice in one record
    """
    try:
        return json.loads(text, object_pairs_hook=_record_of)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _record_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"it has {_quoted(name)} twice in one record")
            seen.add(name)
    return record


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return _is_whole(value) or isinstance(value, (float, np.floating))


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def _quoted(value: Any) -> str:
    """A value in a few characters."""
    if isinstance(value, Mapping):
        return "a record" if value else "an empty record"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}" if value else "an empty list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int) and value.bit_length() > 128:
        return "a number of more than 38 digits"
    if isinstance(value, str) and len(value) > LONGEST_QUOTE:
        return repr(f"{value[:LONGEST_QUOTE]}…")
    return f"{value!r:.80}"
