"""Where texts come from: the argument, a file, or stdin; one a line. Of an image model, a text is the path of an image."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whence.cli.running import note
from whence.core.errors import InputError, WhenceError

if TYPE_CHECKING:
    from whence.core.passage import Passage
    from whence.models.model import Model

MOST_NAMED = 5


@dataclass(frozen=True)
class Line:
    """A text and where it stands, so that an error can say so; None for the argument."""

    content: str
    where: str | None = None
    is_file: bool = (
        False  # one of several files that were named, which only an image model can mean
    )


def read_texts(words: Sequence[str], file: Path | None) -> list[Line]:
    """The texts that a command is to work on: at least one."""
    if len(words) > 1 and file is None and all(map(os.path.isfile, words)):
        return [Line(word, word, is_file=True) for word in words]
    if len(words) > 1:
        raise InputError(
            f"{len(words)} texts were given, {words[0][:30]!r} and {words[1][:30]!r} …: put one text in quotes, or use --file."
        )
    if words and file is not None:
        raise InputError("give a text or --file, not both.")
    if file is not None:
        return _lines(_bytes_of(file), str(file))
    if words and words[0] != "-":
        return [Line(words[0])]
    if not words and sys.stdin.isatty():
        raise InputError(
            "there is no text: give it in quotes, with --file FILE, or through a pipe."
        )
    return _lines(sys.stdin.buffer.read(), "stdin")


def _bytes_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as problem:
        raise InputError(f"cannot read {str(file)!r}: {problem.strerror or problem}.") from problem


def _lines(content: bytes, source: str) -> list[Line]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        raise InputError(
            f"{source}, line {line}: not UTF-8 (byte 0x{content[problem.start]:02x}); convert it first, e.g. with iconv."
        ) from None
    # only a newline ends a line: form feeds and U+2028 are part of a text
    rows = [row.removesuffix("\r") for row in text.removesuffix("\n").split("\n")]
    lines = [Line(row, f"{source}, line {i}") for i, row in enumerate(rows, 1) if row.strip()]
    blank = [i for i, row in enumerate(rows, 1) if not row.strip()]
    if not lines:
        raise InputError(f"{source} holds no text.")
    if blank:
        some = ", ".join(map(str, blank[:MOST_NAMED])) + (" …" if len(blank) > MOST_NAMED else "")
        note(
            f"{len(blank)} blank line{'s' if len(blank) > 1 else ''} of {source} skipped (line {some})"
        )
    return lines


@contextmanager
def naming(line: Line):
    """An error about one of several texts says which."""
    try:
        yield
    except WhenceError as problem:
        if line.where is None:
            raise
        raise InputError(f"{line.where}: {problem}") from problem


def encode(model: Model, line: Line, **options: Any) -> Passage:
    """One text (of an image model: the file) as a passage."""
    if line.is_file and model.kind.reads_text:
        raise InputError(
            f"{model.name} reads text, and several files were given: put one text in quotes, or use --file FILE."
        )
    with naming(line):
        return model.encode(line.content, **options)
