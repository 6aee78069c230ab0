"""Where texts come from: the argument, a file, or stdin; one a line.

A file of records (.csv, .tsv, .jsonl, .parquet …) is read by its columns, as ``whence run`` reads
it. Of an image model, a text is the path of an image.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whence.cli.running import note
from whence.core.errors import InputError, UnknownName, Unsupported, WhenceError

if TYPE_CHECKING:
    from whence.core.passage import Passage
    from whence.models.model import Model
    from whence.runs.data import Data, Row

# blank lines that a note names
MOST_NAMED = 5
LONGEST_QUOTE = 30
PLAIN_LINES = ".txt"  # the one ending of data sets that has no columns


class NoText(InputError):
    """There is nothing to work on; the command line adds what could be typed."""


@dataclass(frozen=True)
class Line:
    """A text and where it stands, so that an error can say so; None for the argument.

    ``is_file`` marks one of several files that were named, which only an image model can mean.
    """

    content: str
    where: str | None = None
    is_file: bool = False
    number: int | None = None  # in its file
    problem: str | None = None  # why it cannot be read; its content is then a rough rendering
    # of a file that is read by its columns: what was read, and the data set that it is of
    row: Row | None = field(default=None, repr=False)
    data: Data | None = field(default=None, repr=False)


def read_texts(
    words: Sequence[str],
    file: Path | None,
    text: str | None = None,
    pair: str | tuple[str, ...] | None = None,
    *,
    compares: bool = False,
) -> list[Line]:
    """The texts that a command is to work on: at least one.

    ``compares`` says that the command has ``--compare``, which takes two.

    ``text`` names the column of a file of records, and so may ``pair``, if it is the name of one.
    """
    if text is not None and (file is None or not has_columns(file)):
        raise InputError(
            f"--text names a column of --file, and {text!r} is none: there is no such file "
            "(.csv, .tsv, .jsonl, .json, .parquet, also .gz)."
        )
    if len(words) > 1 and file is None and all(map(os.path.isfile, words)):
        return [Line(word, word, is_file=True) for word in words]
    if len(words) > 1:
        first, second = words[0][:LONGEST_QUOTE], words[1][:LONGEST_QUOTE]
        more = "" if len(words) == 2 else " …"
        how = "put one text in quotes, or use --file"
        if compares and len(words) == 2:
            how += "; --compare shows what differs between two"
        raise InputError(f"{len(words)} texts were given, {first!r} and {second!r}{more}: {how}.")
    if words and file is not None:
        raise InputError("give a text or --file, not both.")
    if file is not None and has_columns(file):
        return _records(file, text, pair)
    if file is not None:
        return _lines(_bytes_of(file), str(file))
    if words and words[0] != "-":
        return [Line(words[0])]
    if not words and sys.stdin.isatty():
        raise NoText("there is no text: give it in quotes, with --file FILE, or through a pipe.")
    return _lines(sys.stdin.buffer.read(), "stdin")


def has_columns(file: Path) -> bool:
    """Whether a file is read by its columns: its name ends as that of a data set does.

    >>> [has_columns(Path(name)) for name in ("a.csv", "a.jsonl.gz", "a.txt", "a.md")]
    [True, True, False, False]
    """
    from whence.runs.data import READERS, ending_of

    ending = ending_of(file)
    return ending in READERS and ending != PLAIN_LINES


def own_pair(
    lines: Sequence[Line], pair: str | tuple[str, ...] | None
) -> str | tuple[str, ...] | None:
    """The second text of every line; none where a column of the file has those."""
    has_own = any(line.data is not None and line.data.columns.pair for line in lines)
    return None if has_own else pair


def read_document(file: Path, name: str, text: str | None = None) -> dict[str, str]:
    """A file as documents by their names: one, or of a file of records each of them."""
    if not has_columns(file):
        return {name: read_whole(file).strip()}
    lines = read_texts([], file, text)
    for line in lines:
        if line.problem is not None:
            raise InputError(f"{line.where}: {line.problem}")
    return {f"{name}, row {line.number}": line.content.strip() for line in lines}


def _records(file: Path, text: str | None, pair: str | tuple[str, ...] | None) -> list[Line]:
    """The rows of a file with columns; which of them are read is said."""
    data = _opened(file, text, pair)
    for guessed in data.columns.notes:
        note(guessed)
    return [_of_row(row, data) for row in data.rows()]


def _opened(file: Path, text: str | None, pair: str | tuple[str, ...] | None) -> Data:
    """Said where --pair names no column, and so is a text.

    ``pair: the text 'it is good' beside each row, as it is no column``
    """
    from whence.runs.data import open_data

    if pair is None:
        return open_data(file, text=text)
    if isinstance(pair, str):
        try:
            return open_data(file, text=text, pair=pair)
        except UnknownName:
            note(f"pair: the text {pair[:LONGEST_QUOTE]!r} beside each row, as it is no column")
    return open_data(file, text=text, pair="")


def _of_row(row: Row, data: Data) -> Line:
    from whence.runs.data import named_row

    where = f"{data.source}, {named_row(row.number, row.id)}"
    return Line(row.text, where, number=row.number, problem=row.problem, row=row, data=data)


def _bytes_of(file: Path) -> bytes:
    from whence.runs.files import is_packed, opened

    try:
        if is_packed(file):
            with opened(file) as unpacked:
                return unpacked.read()
        return file.read_bytes()
    except OSError as problem:
        raise InputError(f"cannot read {str(file)!r}: {problem.strerror or problem}.") from problem


def read_whole(file: Path) -> str:
    """A file as one text; "-" is stdin."""
    if str(file) == "-":
        return _decoded(sys.stdin.buffer.read(), "stdin")
    return _decoded(_bytes_of(file), str(file))


def _decoded(content: bytes, source: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        byte = content[problem.start]
        raise InputError(
            f"{source}, line {line}: not UTF-8 (byte 0x{byte:02x}); "
            "convert it first, e.g. with iconv."
        ) from None


def _lines(content: bytes, source: str) -> list[Line]:
    # only a newline ends a line: form feeds and U+2028 are part of a text
    rows = content.removeprefix(codecs.BOM_UTF8).removesuffix(b"\n").split(b"\n")
    lines: list[Line] = []
    blank: list[int] = []
    for number, row in enumerate(rows, 1):
        line = _line(row.removesuffix(b"\r"), source, number)
        if line.content.strip():
            lines.append(line)
        else:
            blank.append(number)

    if not lines:
        raise NoText(f"{source} holds no text.")
    if all(line.problem for line in lines):  # the whole file is in another encoding
        raise InputError(f"{lines[0].where}: {lines[0].problem}")
    if blank:
        _note_blank(blank, source)
    return lines


def _line(row: bytes, source: str, number: int) -> Line:
    """One line of a file; one that is not UTF-8 does not take the others with it."""
    where = f"{source}, line {number}"
    try:
        return Line(row.decode(), where, number=number)
    except UnicodeDecodeError as problem:
        byte = row[problem.start]
        why = f"not UTF-8 (byte 0x{byte:02x}); convert it first, e.g. with iconv."
        rough = row.decode(errors="backslashreplace")
        return Line(rough, where, number=number, problem=why)


def _note_blank(blank: Sequence[int], source: str) -> None:
    """Say which lines were skipped, or the first of them."""
    numbers = ", ".join(map(str, blank[:MOST_NAMED]))
    if len(blank) > MOST_NAMED:
        numbers += " …"
    lines = "line" if len(blank) == 1 else "lines"
    note(f"{len(blank)} blank {lines} of {source} skipped (line {numbers})")


@contextmanager
def naming(line: Line) -> Iterator[None]:
    """An error about one of several texts says which."""
    try:
        yield
    except WhenceError as problem:
        if line.where is None:
            raise
        raise InputError(f"{line.where}: {problem}") from problem


def encode(model: Model, line: Line, **options: Any) -> Passage:
    """One text (of an image model: the file) as a passage; options as ``model.encode`` has them."""
    if line.is_file and model.kind.reads_text:
        raise Unsupported(
            f"{model.name} reads text, and several files were given: "
            "put one text in quotes, or use --file FILE."
        )
    with naming(line):
        if line.problem is not None:
            raise InputError(line.problem)
        if line.row is not None and line.row.pair is not None:
            options["pair"] = line.row.pair
        return model.encode(line.content, **options)


def label_of(step: str, first: int, count: int) -> str:
    """What a progress bar says: the step, or of several texts the one that it is at."""
    if count == 1:
        return step
    return f"text {first + 1} of {count}"
