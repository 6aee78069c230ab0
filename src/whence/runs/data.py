"""A data set as rows: a text with its pair, label and id, whatever file it lies in.

Rows are streamed, and never held all at once. A record that cannot be explained is a row too, with
the reason: the others go on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from whence.core.errors import InputError
from whence.runs.columnar import folder_table, parquet_table
from whence.runs.columns import Asked, Columns, columns_of
from whence.runs.delimited import csv_table, tsv_table
from whence.runs.plain import json_lines_table, json_table, list_table, text_table
from whence.runs.rationales import NoRationale, Spans, spans_of
from whence.runs.records import (
    PLAIN,
    Record,
    Table,
    Unreadable,
    is_nothing,
    kind_of,
    rough,
    unboxed,
)

READERS: Mapping[str, Callable[[Path], Table]] = {
    ".txt": text_table,
    ".tsv": tsv_table,
    ".csv": csv_table,
    ".jsonl": json_lines_table,
    ".ndjson": json_lines_table,
    ".json": json_table,
    ".parquet": parquet_table,
}
# random numbers that are drawn at once
DRAWN_AT_ONCE = 1_000_000


@dataclass(frozen=True)
class Row:
    """One record of a data set, ready to be explained; or why it cannot be."""

    number: int  # its place in the whole data, from 0; of a .txt, the number of its line
    text: str
    pair: str | tuple[str, ...] | None = None  # several, where the column holds lists: choices
    label: str | None = None  # as text, whatever the column holds
    id: str = ""  # the id column as text, else the number
    problem: str | None = None  # the text is then empty, or a rough rendering of the record
    rationale: Spans | None = None  # the characters that people marked as the reason
    foil: str | None = None  # what the label is contrasted with: why this rather than that


def named_row(number: int, id: str | None) -> str:
    """A row as it is told, with its id where that is another name than its number.

    >>> named_row(3, "3"), named_row(3, "a7"), named_row(3, None)
    ('row 3', 'row 3 (a7)', 'row 3')
    """
    name = f" ({id})" if id and id != str(number) else ""
    return f"row {number}{name}"


@dataclass(frozen=True)
class Data:
    """A data set that was opened. ``rows()`` reads it from the beginning each time."""

    source: str  # as the user named it
    format: str  # "txt", "tsv", "csv", "jsonl", "json", "parquet", "datasets" or "list"
    columns: Columns
    rows: Callable[[], Iterator[Row]]


def open_data(
    source: Any,
    *,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    id: str | None = None,
    rationale: str | None = "",
    foil: str | None = None,
    split: str | None = None,
) -> Data:
    """Open a file, a folder, or a list of strings or dictionaries.

    Columns are named, or guessed where there is no doubt (``data.columns.notes`` says what was
    guessed); "" for a pair, a label or an id says that there is none. ``rationale`` is the column
    of what people marked in the text; it is not looked for unless it is asked for, and nor is
    ``foil``, that of what the label is contrasted with. Of a .txt each line that is not blank is a
    text. An empty text or pair is left to the model; an empty label is none.

    >>> data = open_data([{"review": "not bad", "stars": 4}])
    >>> data.columns.notes
    ("text: column 'review' (by its name)", "label: column 'stars' (by its name)")
    >>> next(data.rows())
    Row(number=0, text='not bad', pair=None, label='4', id='0', problem=None, rationale=None, \
foil=None)
    """
    name, table = _table_of(source, split)
    quoted = repr(name) if isinstance(source, (str, Path)) else name
    _check_not_empty(table, quoted)

    asked = Asked(text, pair, label, id, rationale, foil)
    table = _with_rare_columns(table, asked)
    columns = columns_of(table, asked, quoted)
    return Data(name, table.format, columns, partial(_rows, table, columns))


def _table_of(source: Any, split: str | None) -> tuple[str, Table]:
    if isinstance(source, (str, Path)):
        return str(source), _table_at(_path_of(source), split)
    if isinstance(source, Sequence) and not isinstance(source, (bytes, bytearray)):
        _check_no_split("a list", split)
        table = list_table(source)
        return f"a list of {len(source)}", table
    raise InputError(
        f"data is a path, or a list of strings or dictionaries, not a {type(source).__name__}. "
        "A table of pandas becomes a list by to_dict('records'), other things by list(…)."
    )


def _path_of(source: str | Path) -> Path:
    if source == "":
        raise InputError("the name of the data is empty.")  # as a path, it would be this folder
    path = Path(source)
    # a shell does so, and a file of settings does not; "~name" may be a file
    return path.expanduser() if path.parts[:1] == ("~",) else path


def _table_at(path: Path, split: str | None) -> Table:
    source = repr(str(path))
    try:
        if path.is_dir():
            return folder_table(path, split)
        is_there, is_file = path.exists(), path.is_file()
    except (OSError, ValueError) as problem:  # no permission; a name with a zero in it
        if isinstance(problem, InputError):
            raise
        why = getattr(problem, "strerror", None) or problem
        raise InputError(f"cannot read {source}: {why}.") from problem

    if not is_there:
        raise InputError(f"there is no file or folder {source}.")
    if not is_file:
        raise InputError(f"{source} is no plain file. Data is read twice, so a pipe will not do.")
    _check_no_split(source, split)
    return _reader_for(path)(path)


def _check_no_split(source: str, split: str | None) -> None:
    if split is not None:
        raise InputError(
            f"{source} has no splits, so there is no split {split!r}: leave it out. "
            "Folders saved by Hugging Face `datasets` have them."
        )


def ending_of(path: Path) -> str:
    """By what a file is known: the end of its name, without that of gzip."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _reader_for(path: Path) -> Callable[[Path], Table]:
    ending = ending_of(path)
    if ending not in READERS:
        found = f"ends in {ending!r}" if ending else "has no ending"
        raise InputError(
            f"{str(path)!r} {found}, which is not read. Data is {', '.join(READERS)}, each also "
            "with .gz; a folder of Parquet files; or one saved by Hugging Face `datasets`."
        )
    return READERS[ending]


def _check_not_empty(table: Table, source: str) -> None:
    """There are records, and one of them at least can be read."""
    wanted = None if table.names is None else table.names[:1]  # one column will do
    first: Record | None = None
    for record in table.records(wanted):
        if record.problem is None:
            return
        first = first or record

    if first is None:
        only = " It has a header only." if table.has_header else ""
        raise InputError(f"{source} holds no records.{only}")
    where = first.where or f"record {first.number}"
    hint = ""
    if table.format == "jsonl" and first.rough.startswith("["):
        hint = " A file that holds one list of objects is named .json."
    raise InputError(
        f"no record of {source} can be read. The first, {where}: {first.problem}.{hint}"
    )


def _with_rare_columns(table: Table, asked: Asked) -> Table:
    """Also the columns that were named and that none of the first records has."""
    if table.format not in ("jsonl", "json", "list") or table.names is None:
        return table
    rare = {name for _, name in asked.given() if name not in table.names}
    if not rare:
        return table

    kinds = dict(table.kinds)
    for record in table.records(None):
        for name in rare & record.fields.keys():
            kinds[name] = kind_of(record.fields[name])
        rare -= kinds.keys()
        if not rare:
            break
    return Table(table.format, table.records, tuple(kinds), kinds, table.notes)


def _rows(table: Table, columns: Columns) -> Iterator[Row]:
    wanted = columns.names or None
    for record in table.records(wanted):
        yield _row(record, columns)


def _row(record: Record, columns: Columns) -> Row:
    number = record.number
    if record.problem is not None:
        return Row(number, record.rough, id=str(number), problem=_placed(record, record.problem))

    problems: list[str] = []
    text = _text(record, PLAIN if columns.text is None else columns.text, problems)
    pair = _pair(record, columns.pair, problems)
    label = _as_text(record, columns.label, problems)
    id = _as_text(record, columns.id, problems) or str(number)
    rationale = _rationale(record, columns.rationale, text, problems)
    foil = _as_text(record, columns.foil, problems)
    problem = _placed(record, problems[0]) if problems else None
    return Row(number, text, pair, label, id, problem, rationale, foil)


def _placed(record: Record, problem: str) -> str:
    return f"{record.where}: {problem}" if record.where else problem


def _text(record: Record, name: str, problems: list[str]) -> str:
    if name not in record.fields:
        problems.append(_missing(record, name))
        return ""
    value = unboxed(record.fields[name])
    if not isinstance(value, str):
        problems.append(_not_text(name, value))
        return ""
    return _sound(name, value, problems)


def _pair(record: Record, name: str | None, problems: list[str]) -> str | tuple[str, ...] | None:
    if name is None:
        return None
    if name not in record.fields:
        problems.append(_missing(record, name))
        return None

    value = unboxed(record.fields[name])
    if isinstance(value, str):
        return _sound(name, value, problems)
    if not isinstance(value, (list, tuple)):
        problems.append(_not_text(name, value))
        return None
    if not value:
        problems.append(f"{_column(name)} holds an empty list")
        return None

    parts: list[str] = []
    for part in value:
        if not isinstance(part, str):
            problems.append(f"{_column(name)} holds a list with {_in_words(part)}, not text")
            return None
        parts.append(_sound(name, part, problems))
    return tuple(parts)


def _as_text(record: Record, name: str | None, problems: list[str]) -> str | None:
    """A label or an id; None where it is missing, null or empty."""
    if name is None:
        return None
    value = unboxed(record.fields.get(name))
    if is_nothing(value):
        return None
    if isinstance(value, Unreadable):
        problems.append(_not_text(name, value))
        return None
    return _sound(name, _spelt(value), problems) or None


def _rationale(record: Record, name: str | None, text: str, problems: list[str]) -> Spans | None:
    if name is None or problems:
        return None
    try:
        return spans_of(record.fields.get(name), text)
    except NoRationale as problem:
        problems.append(f"{_column(name)} {problem}")
        return None


def _spelt(value: Any) -> str:
    """A value as text.

    >>> [_spelt(value) for value in ("a", True, 3, 1.0, 0.5, [1, 2])]
    ['a', 'true', '3', '1', '0.5', '[1, 2]']
    """
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # a column of whole numbers with gaps comes as floats from pandas
    if isinstance(value, (bool, list, tuple, dict)):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def _sound(name: str, value: str, problems: list[str]) -> str:
    """The string, unless it cannot be written as UTF-8: JSON may hold halves of characters."""
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError as problem:
        half = ord(value[problem.start])
        problems.append(f"{_column(name)} holds half a character (surrogate U+{half:04X})")
        return rough(value)
    return value


def _missing(record: Record, name: str) -> str:
    names = ", ".join(record.fields) or "nothing"
    return f"it has no column {name!r} (it has: {rough(names)})"


def _not_text(name: str, value: Any) -> str:
    if value is None:
        return f"{_column(name)} is null"
    return f"{_column(name)} holds {_in_words(value)}, not text"


def _column(name: str) -> str:
    return "the text" if name == PLAIN else f"column {name!r}"


def _in_words(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, Unreadable):
        return value.reason
    if isinstance(value, bool):
        return "true" if value else "false"
    if is_nothing(value):
        return "NaN"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, Mapping):
        return "an object"
    return f"a value of type {type(value).__name__}"


@dataclass(frozen=True)
class Choice:
    """Which rows are worked on: all of them, unless something is said.

    ``limit`` takes the first rows; ``sample`` then draws that many of them at random, each set of
    rows as likely as any other, and all if there are fewer. The same seed draws the same places on
    every machine and from every format, and a larger sample contains the smaller ones.
    """

    sample: int | None = None
    seed: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("sample", 1), ("limit", 1), ("seed", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(f"{name} is {value}; it must be at least {least}.")


def chosen(data: Data, choice: Choice) -> Iterator[Row]:
    """The rows to work on, in the order of the data. Rows with a problem count as others do.

    >>> data = open_data(["a", "b", "c", "d"])
    >>> [row.text for row in chosen(data, Choice(sample=2, seed=1, limit=3))]
    ['a', 'c']
    """
    if choice.sample is None:
        return islice(data.rows(), choice.limit)
    count = sum(1 for _ in islice(data.rows(), choice.limit))
    return _at(data.rows(), drawn(count, choice.sample, choice.seed))


def drawn(count: int, size: int, seed: int) -> list[int]:
    """Places of a sample without replacement among ``count``, in order.

    Each place gets 64 random bits, and those with the smallest are taken. The bits come straight
    from PCG64, whose stream numpy promises to keep; it does not promise that of ``choice``.
    """
    bits = np.random.PCG64(seed)
    keys = np.empty(0, np.uint64)
    places = np.empty(0, np.int64)
    for start in range(0, count, DRAWN_AT_ONCE):
        stop = min(start + DRAWN_AT_ONCE, count)
        keys = np.concatenate([keys, bits.random_raw(stop - start)])
        places = np.concatenate([places, np.arange(start, stop)])
        smallest = np.argsort(keys, kind="stable")[:size]
        keys, places = keys[smallest], places[smallest]
    return np.sort(places).tolist()


def _at(rows: Iterator[Row], places: Iterable[int]) -> Iterator[Row]:
    """The rows at these places, which are in order; nothing is read beyond the last."""
    passed = 0
    for place in places:
        yield from islice(rows, place - passed, place - passed + 1)
        passed = place + 1


def digest_of(rows: Iterable[Row]) -> str:
    """A sha256 of rows, in hex: equal for equal rows in the same order only.

    Each string goes in after its length, and each absent one as a mark of its own, so that no two
    lists of rows give the same bytes.
    """
    digest = hashlib.sha256()
    for row in rows:
        for value in (str(row.number), row.text, row.pair, row.label, row.id, row.problem):
            digest.update(_encoded(value))
        if row.rationale is not None:
            digest.update(_encoded(str(row.rationale)))
        if row.foil is not None:
            digest.update(_encoded(row.foil))
    return digest.hexdigest()


def _encoded(value: str | tuple[str, ...] | None) -> bytes:
    if value is None:
        return b"-"
    if isinstance(value, tuple):
        parts = b"".join(_encoded(part) for part in value)
        return b"(" + len(value).to_bytes(8, "big") + parts
    content = value.encode("utf-8", "surrogatepass")
    return b"s" + len(content).to_bytes(8, "big") + content
