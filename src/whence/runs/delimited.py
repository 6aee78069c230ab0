"""Data sets of .csv and .tsv: a header, then one record a line, or several where quotes say so.

A record that is wrong spoils its own line only. A quote that is never closed would take all that
follows with it; so reading goes on at the next line, whatever the quote said.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from whence.core.errors import InputError
from whence.core.sizes import human
from whence.runs.files import LONGEST_LINE, Line, lines_of, without_end
from whence.runs.records import (
    NOTHING,
    NUMBERS,
    TEXT,
    Record,
    Table,
    first_readable,
    kinds_of,
    rough,
)

# a quoted text that goes on for longer has lost its closing quote
LONGEST_QUOTED = 10_000_000
# lines by which it is decided whether a .tsv knows quotes
LINES_FOR_QUOTES = 1000
# stands for a carriage return inside a text while csv reads, which would take it for a line's end;
# it is half a character, so no text that was decoded holds it
RETURN = "\udc0d"


@dataclass(frozen=True)
class Dialect:
    """What separates fields, and whether quotes hold them together."""

    delimiter: str
    quoted: bool = True


@dataclass(frozen=True)
class Cut:
    """A record cut into fields, or why it could not be."""

    line: int
    fields: Sequence[str] = ()
    problem: str | None = None
    rough: str = ""


def csv_table(path: Path) -> Table:
    """Fields between commas, as RFC 4180 has them."""
    return _table("csv", path, Dialect(","))


def tsv_table(path: Path) -> Table:
    """Fields between tabs, with quotes (as pandas writes them) or without (as GLUE has them)."""
    quoted = _knows_quotes(path)
    table = _table("tsv", path, Dialect("\t", quoted))
    if quoted:
        return table
    note = "quotes: read as characters of the text, as they would break or join lines otherwise"
    return Table(table.format, table.records, table.names, table.kinds, (note,), table.has_header)


def _table(format: str, path: Path, dialect: Dialect) -> Table:
    names = _header(path, dialect)
    records = partial(_records, path, dialect, names)
    readable = first_readable(records())
    kinds = dict.fromkeys(names, NOTHING) | kinds_of(readable, _kind_of_field)
    return Table(format, records, names, kinds, has_header=True)


def _kind_of_field(field: str) -> str:
    """All fields are strings; some are numbers by what they say."""
    if not field.strip():
        return NOTHING
    try:
        float(field)
    except ValueError:
        return TEXT
    return NUMBERS


def _header(path: Path, dialect: Dialect) -> tuple[str, ...]:
    source = repr(str(path))
    first = next(_cuts(lines_of(path), dialect), None)
    if first is None:
        raise InputError(f"{source} holds no records.")
    if first.problem is not None:
        raise InputError(f"{source}, line {first.line}, the header: {first.problem}.")

    names = tuple(name.strip() for name in first.fields)
    if any("\r" in name for name in names):
        raise InputError(
            f"the lines of {source} end in a carriage return alone; "
            r"convert it first, e.g. with tr '\r' '\n'."
        )
    return names


def _records(
    path: Path, dialect: Dialect, names: tuple[str, ...], _: tuple[str, ...] | None = None
) -> Iterator[Record]:
    cuts = _cuts(lines_of(path), dialect, len(names))
    next(cuts, None)  # the header
    for number, cut in enumerate(cuts):
        where = f"line {cut.line}"
        problem = cut.problem
        if problem is None and len(cut.fields) != len(names):
            problem = _wrong_width(cut.fields, names)

        if problem is None:
            yield Record(number, dict(zip(names, cut.fields, strict=True)), where)
        else:
            shown = cut.rough or dialect.delimiter.join(cut.fields)
            yield Record(number, where=where, problem=problem, rough=rough(shown))


def _wrong_width(fields: Sequence[str], names: Sequence[str]) -> str:
    found = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
    return f"{found}, where the header names {len(names)}"


def _cuts(lines: Iterable[Line], dialect: Dialect, width: int | None = None) -> Iterator[Cut]:
    """All records, the header among them; blank lines are none."""
    if dialect.quoted:
        return _quoted_cuts(lines, dialect, width)
    return _plain_cuts(lines, dialect)


def _plain_cuts(lines: Iterable[Line], dialect: Dialect) -> Iterator[Cut]:
    for line in lines:
        content = without_end(line.content)
        if not content:
            continue
        if line.problem is not None:
            yield Cut(line.number, problem=line.problem, rough=content)
        else:
            yield Cut(line.number, content.split(dialect.delimiter))


class _Feed:
    """Lines for csv.reader, which remembers those that the present record has taken."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self.lines = iter(lines)
        self.waiting: deque[Line] = deque()
        self.begin()

    def begin(self) -> None:
        """Another record begins."""
        self.taken: list[Line] = []
        self.length = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self.length > LONGEST_QUOTED and len(self.taken) > 1:
            raise csv.Error(f"a quote is not closed within {human(LONGEST_QUOTED)}")
        line = self.waiting.popleft() if self.waiting else next(self.lines)
        self.taken.append(line)
        self.length += len(line.content)
        return _guarded(line.content)

    def give_back(self) -> None:
        """Keep the first line for the present record; the others are read again."""
        self.waiting.extendleft(reversed(self.taken[1:]))
        del self.taken[1:]


def _guarded(content: str) -> str:
    body = without_end(content)
    if "\r" not in body:
        return content
    return body.replace("\r", RETURN) + content[len(body) :]


def _quoted_cuts(lines: Iterable[Line], dialect: Dialect, width: int | None) -> Iterator[Cut]:
    _allow_long_fields()
    feed = _Feed(lines)
    reader = _reader(feed, dialect)
    while True:
        feed.begin()
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as problem:
            feed.give_back()
            yield _mended(feed.taken[0], dialect, width, problem)
            reader = _reader(feed, dialect)
            continue

        if fields:
            yield _sound(feed.taken, [field.replace(RETURN, "\r") for field in fields])


def _reader(feed: _Feed, dialect: Dialect) -> Any:
    return csv.reader(feed, delimiter=dialect.delimiter, strict=True)


def _allow_long_fields() -> None:
    """The limit holds for the whole process: it is raised, and never lowered."""
    needed = LONGEST_LINE + LONGEST_QUOTED
    if csv.field_size_limit() < needed:
        csv.field_size_limit(needed)


def _sound(taken: Sequence[Line], fields: list[str]) -> Cut:
    first = taken[0].number
    for line in taken:
        if line.problem is not None:
            content = "".join(each.content for each in taken)
            return Cut(first, problem=line.problem, rough=without_end(content))
    return Cut(first, fields)


def _mended(line: Line, dialect: Dialect, width: int | None, problem: csv.Error) -> Cut:
    """What can be made of a line whose quotes are wrong.

    A text of a .tsv may begin with a quote that is just a character: if the line has the right
    number of fields without a thought of quotes, then it is taken so.
    """
    content = without_end(line.content)
    fields = content.split(dialect.delimiter)
    is_plain = dialect.delimiter == "\t" and line.problem is None and len(fields) == width
    if is_plain:
        return Cut(line.number, fields)

    what = str(problem)
    if "unexpected end of data" in what:
        what = "a quote is never closed"
    elif "expected after" in what:
        what = "a quote is closed and text follows (within a quoted text, quotes are doubled)"
    return Cut(line.number, problem=line.problem or f"broken quotes: {what}", rough=content)


def _knows_quotes(path: Path) -> bool:
    """Whether the first lines of a .tsv are better read with quotes than without.

    Better is: fewer records that do not fit the header, and then more records, since a quote that
    is just a character can join two lines into one record by chance.
    """
    lines = list(islice(lines_of(path), LINES_FOR_QUOTES))
    if not any('"' in line.content for line in lines):
        return True
    with_quotes = _misfits(lines, Dialect("\t", quoted=True))
    without = _misfits(lines, Dialect("\t", quoted=False))
    return with_quotes <= without


def _misfits(lines: Sequence[Line], dialect: Dialect) -> tuple[int, int]:
    header = next(_cuts(lines, dialect), None)
    width = len(header.fields) if header is not None else 0
    misfits = 0
    count = 0
    for cut in _cuts(lines, dialect, width):
        count += 1
        misfits += cut.problem is not None or len(cut.fields) != width
    return misfits, -count
