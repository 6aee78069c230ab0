"""Texts with their labels, from whatever the caller has: pairs, a file, or rows of a data set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from whence.core.data_labels import data_labels
from whence.core.errors import InputError
from whence.core.passage import Passage
from whence.core.units import UnitKind
from whence.models.model import Model
from whence.runs.data import Data, open_data


@dataclass(frozen=True)
class Labelled:
    """One text (or pair of texts) and its label, as text."""

    text: str
    label: str
    pair: str | None = None


def labelled(data: Any, name: str = "data") -> list[Labelled]:
    """The texts of (text, label) pairs, of a file that ``whence.run`` reads, or of opened data.

    >>> labelled([("not bad", 1), ("dull", "no")])[0]
    Labelled(text='not bad', label='1', pair=None)
    """
    if isinstance(data, Sequence) and data and all(map(_is_pair, data)):
        return [Labelled(text, str(label)) for text, label in data]
    if isinstance(data, Sequence) and data and all(isinstance(row, Labelled) for row in data):
        return list(data)
    opened = data if isinstance(data, Data) else open_data(data)
    rows = list(_rows(opened, name))
    if not rows:
        raise InputError(f"{name} holds no texts.")
    return rows


def _is_pair(row: Any) -> bool:
    if isinstance(row, (str, Mapping, Labelled)) or not isinstance(row, Sequence):
        return False
    return len(row) == 2 and isinstance(row[0], str)


def _rows(data: Data, name: str) -> Iterator[Labelled]:
    for row in data.rows():
        if row.problem is not None:
            raise InputError(f"{name}: {row.problem}.")
        if row.label is None:
            raise InputError(
                f"{name}: row {row.id} has no label. Training needs one for each text: give "
                "(text, label) pairs, or open_data(…, label=COLUMN)."
            )
        if row.pair is not None and not isinstance(row.pair, str):
            raise InputError(f"{name}: row {row.id} has several second texts, which are choices.")
        yield Labelled(row.text, row.label, row.pair)


def classes_of(rows: Sequence[Labelled]) -> tuple[str, ...]:
    """The labels in the order of the alphabet."""
    classes = tuple(sorted({row.label for row in rows}))
    if len(classes) < 2:
        raise InputError(f"a classifier needs two labels at least, and all texts have {classes}.")
    return classes


def encoded(model: Model, rows: Sequence[Labelled], units: UnitKind = "word") -> list[Passage]:
    """The passages that the model reads; what is too long is cut."""
    return [model.encode(row.text, row.pair, units=units, overflow="truncate") for row in rows]


def numbered(model: Model, rows: Sequence[Labelled]) -> list[int]:
    """The number of each text's label among the model's: as ``core/data_labels.py`` finds it."""
    names = [model.labels[number] for number in range(len(model.labels))]
    met = data_labels([row.label for row in rows], names)
    if met.unknown:
        first = met.unknown[0]
        hint = f" Did you mean {first.nearest!r}?" if first.nearest else ""
        raise InputError(
            f"{first.given!r} ({first.texts} of {met.texts} texts) is no label of this model: "
            f"{', '.join(names)}.{hint}"
        )
    numbers = {label.given: label.match.number for label in met.labels if label.match}
    return [numbers[row.label] for row in rows]
