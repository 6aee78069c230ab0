"""Bytes and lines of a file, packed or not; what cannot be read is said in one line."""

from __future__ import annotations

import codecs
import gzip
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from whence.core.errors import InputError
from whence.core.sizes import human

# a longer line is no text: it is cut, so that a file without line ends does not fill the memory
LONGEST_LINE = 100_000_000

# UTF-32 begins like UTF-16, or with a zero
OTHER_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)


class Line(NamedTuple):
    """A line of a file with its end, and why it cannot be read."""

    number: int  # from 1
    content: str  # where there is a problem: with half characters in place of what is no UTF-8
    problem: str | None = None


def is_packed(path: Path) -> bool:
    """Whether the name says gzip."""
    return path.suffix.lower() == ".gz"


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked if its name ends in .gz."""
    try:
        with path.open("rb") as file:
            if not is_packed(path):
                yield file
                return
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield unpacked  # type: ignore[misc]  # it reads as other files do
    except (gzip.BadGzipFile, zlib.error) as problem:
        raise InputError(f"{str(path)!r} is no sound gzip file: {problem}.") from problem
    except EOFError as problem:
        raise InputError(
            f"{str(path)!r} is cut off: its gzip stream has no end. Copy it again."
        ) from problem
    except OSError as problem:
        raise InputError(f"cannot read {str(path)!r}: {problem.strerror or problem}.") from problem


@contextmanager
def seekable(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file for a reader that jumps about in it; what is packed is unpacked first."""
    with opened(path) as file:
        if not is_packed(path):
            yield file
            return
        with tempfile.TemporaryFile() as unpacked:
            shutil.copyfileobj(file, unpacked)
            unpacked.seek(0)
            yield unpacked


def lines_of(path: Path) -> Iterator[Line]:
    """The lines of a file, one after the other.

    Only a newline ends a line: form feeds and U+2028 are part of a text.
    """
    with opened(path) as file:
        number = 0
        while content := file.readline(LONGEST_LINE):
            number += 1
            if number == 1:
                _check_encoding(content, path)
                content = content.removeprefix(codecs.BOM_UTF8)

            if len(content) >= LONGEST_LINE and not content.endswith(b"\n"):
                _skip_line(file)
                why = f"longer than {human(LONGEST_LINE)}"
                yield Line(number, content.decode(errors="surrogateescape"), why)
            else:
                yield _line(number, content)


def _line(number: int, content: bytes) -> Line:
    """One line; one that is not UTF-8 does not take the others with it."""
    try:
        return Line(number, content.decode())
    except UnicodeDecodeError as problem:
        byte = content[problem.start]
        why = f"not UTF-8 (byte 0x{byte:02x}); convert it first, e.g. with iconv"
        return Line(number, content.decode(errors="surrogateescape"), why)


def _skip_line(file: IO[bytes]) -> None:
    while content := file.readline(LONGEST_LINE):
        if content.endswith(b"\n"):
            return


def _check_encoding(content: bytes, path: Path) -> None:
    """Every second byte of UTF-16 is UTF-8 too, so lines of it would pass for text."""
    if content.startswith(OTHER_MARKS):
        raise InputError(
            f"{str(path)!r} is in UTF-16 or UTF-32; "
            "convert it first, e.g. with iconv -f UTF-16 -t UTF-8."
        )


def without_end(content: str) -> str:
    r"""A line without its "\n" or "\r\n"."""
    return content.removesuffix("\n").removesuffix("\r")
