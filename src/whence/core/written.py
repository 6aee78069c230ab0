"""What results about a written text share: rows of attributions by method, views and files.

``Generation`` and ``ContextUse`` have an output for each token that a model wrote, and rows for
some of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from whence.core.attribution import Attribution
from whence.core.errors import InputError, unknown_name
from whence.core.passage import Passage
from whence.core.render import render
from whence.core.stored import Stored
from whence.core.units import Units
from whence.core.writing import write_json, write_text

ROUNDING = 1e-6  # by which a probability may be above one
Rows = Mapping[str, tuple[Attribution, ...]]


class WrittenResult:
    """The part of a result that follows from its passage and its rows.

    ``view`` is the beginning of the names of its views, ``called`` what messages call it.
    """

    view: ClassVar[str]
    called: ClassVar[str]
    passage: Passage
    rows: Rows

    @property
    def text(self) -> str:
        """What was written."""
        return self.passage.pair or ""

    @property
    def units(self) -> Units:
        """All units that are scored, in order."""
        return self.passage.units

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that explained."""
        return tuple(self.rows)

    def __getitem__(self, method: str) -> tuple[Attribution, ...]:
        if method not in self.rows:
            raise unknown_name(f"method in this {self.called}", method, self.rows)
        return self.rows[method]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        raise NotImplementedError

    def __str__(self) -> str:
        return render(f"{self.view}_text", self)

    def _repr_html_(self) -> str:
        return render(f"{self.view}_fragment", self)

    def to_html(self, path: str | Path | None = None) -> str:
        """One self-contained page; also written to ``path``."""
        page = render(f"{self.view}_page", self)
        if path is not None:
            write_text(path, page)
        return page

    def save(self, path: str | Path) -> Path:
        """Write JSON; ``whence.read`` reads it back."""
        return write_json(path, self.to_dict())


def check_rows(passage: Passage, outputs: int, rows: Rows, numbers: Sequence[int]) -> None:
    """Refuse a result whose outputs are not those of its passage, or that lacks rows."""
    if passage.written is None or outputs != passage.outputs:
        raise InputError(
            f"there is one output for each written token: {passage.outputs} were written, "
            f"and {outputs} outputs are given."
        )
    for method, attributions in rows.items():
        if len(attributions) != len(numbers):
            raise InputError(f"{method} has {len(attributions)} rows for {len(numbers)} outputs.")


def stored_rows(rows: Rows) -> dict[str, list[dict[str, Any]]]:
    """Rows as plain values, without the passage that they share."""
    stored = {}
    for method, attributions in rows.items():
        stored[method] = [attribution.to_dict_without_passage() for attribution in attributions]
    return stored


def read_passage(stored: Stored) -> Passage:
    """A passage with what was written after it; any other is refused."""
    passage = Passage.from_dict(stored)
    if passage.written is None:
        raise stored.wrong("nothing was written in it")
    return passage


def read_rows(
    stored: Stored, passage: Passage, numbers: Sequence[int]
) -> dict[str, tuple[Attribution, ...]]:
    """What ``stored_rows`` gave; a row's units are those before its output."""
    rows = {}
    for method, entries_of_method in stored.entries().items():
        entries = entries_of_method.items()
        if len(entries) != len(numbers):
            raise entries_of_method.wrong(f"{len(entries)} rows for {len(numbers)} outputs")
        attributions = []
        for entry, output in zip(entries, numbers, strict=True):
            attributions.append(Attribution.from_dict(entry, passage.before(output)))
        rows[method] = tuple(attributions)
    return rows
