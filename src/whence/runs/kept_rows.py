"""The rows of a run: what was read from the data, kept beside the results.

So the text is stored once, workers on other machines need nothing but the run's place, and a run
can be looked at when its data have moved.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from whence.runs.arrow import arrow, parquet
from whence.runs.data import Row
from whence.runs.parts import as_bytes
from whence.runs.places import Place
from whence.runs.rationales import Spans

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = "rows"
AT_ONCE = 4096  # rows of one file


def keep_rows(place: Place, rows: Iterable[Row]) -> Iterator[Row]:
    """Write rows as they pass. What an earlier try has left is taken away first."""
    place.tidy(ROWS)
    for name in place.names(ROWS):
        place.remove(name)

    waiting: list[Row] = []
    first = 0
    for row in rows:
        waiting.append(row)
        if len(waiting) == AT_ONCE:
            _put(place, first, waiting)
            first += len(waiting)
            waiting = []
        yield row
    if waiting:
        _put(place, first, waiting)


def _put(place: Place, first: int, rows: Sequence[Row]) -> None:
    table = table_of(rows, first)
    place.put(f"{ROWS}/{first // AT_ONCE:06d}.parquet", as_bytes(table))


def schema() -> pa.Schema:
    """The columns of the rows. ``row`` counts those of the run, ``number`` those of the data."""
    pa = arrow()
    return pa.schema(
        [
            ("row", pa.int64()),
            ("number", pa.int64()),
            ("id", pa.string()),
            ("text", pa.string()),
            ("pair", pa.string()),
            ("label", pa.string()),
            ("problem", pa.string()),
            ("rationale", pa.string()),
            ("foil", pa.string()),
        ]
    )


def table_of(rows: Sequence[Row], first: int = 0) -> pa.Table:
    """Rows as a table; ``first`` is the place of the first of them in the run."""
    records = []
    for place, row in enumerate(rows):
        records.append(
            {
                "row": first + place,
                "number": row.number,
                "id": row.id,
                "text": row.text,
                "pair": _written_pair(row.pair),
                "label": row.label,
                "problem": row.problem,
                "rationale": None if row.rationale is None else json.dumps(row.rationale),
                "foil": row.foil,
            }
        )
    return arrow().Table.from_pylist(records, schema=schema())


def _written_pair(pair: str | tuple[str, ...] | None) -> str | None:
    """Several choices as JSON, which a single text never is: it has a mark in front."""
    if pair is None:
        return None
    if isinstance(pair, str):
        return f"={pair}"
    return json.dumps(pair, ensure_ascii=False)


def _read_pair(written: str | None) -> str | tuple[str, ...] | None:
    if written is None:
        return None
    if written.startswith("="):
        return written[1:]
    return tuple(json.loads(written))


def _read_rationale(written: str | None) -> Spans | None:
    if written is None:
        return None
    return tuple((start, end) for start, end in json.loads(written))


@dataclass
class KeptRows:
    """The rows of a run, read file by file; the last file that was asked for is remembered."""

    place: Place
    _file: int = -1
    _rows: list[Row] = field(default_factory=list)

    def __getitem__(self, rows: range) -> list[Row]:
        """Consecutive rows of the run."""
        wanted = []
        for row in rows:
            file, at = divmod(row, AT_ONCE)
            if file != self._file:
                self._rows = self._read(file)
                self._file = file
            wanted.append(self._rows[at])
        return wanted

    def _read(self, file: int) -> list[Row]:
        content = self.place.get(f"{ROWS}/{file:06d}.parquet")
        records: list[dict[str, Any]] = parquet().read_table(io.BytesIO(content)).to_pylist()
        rows = []
        for record in records:
            rows.append(
                Row(
                    number=record["number"],
                    text=record["text"],
                    pair=_read_pair(record["pair"]),
                    label=record["label"],
                    id=record["id"],
                    problem=record["problem"],
                    rationale=_read_rationale(record.get("rationale")),
                    foil=record.get("foil"),
                )
            )
        return rows
