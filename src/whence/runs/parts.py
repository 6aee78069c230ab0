"""Parts: the results of a few dozen rows in one Parquet file, which is there wholly or not at all.

A part's name ends in a digest of its bytes. So a part is done when its name exists, whoever made
it, and a byte that was flipped or lost since is found by reading it.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whence.core.errors import InputError
from whence.runs.arrow import arrow, parquet
from whence.runs.places import Folder, Place

if TYPE_CHECKING:
    import pyarrow as pa

PARTS = "parts"
# the column that is empty in every row but those that failed
FAILURE = "failure.kind"
# the columns of which a file tells more than their values
COUNTED = ("row", FAILURE)
NAME = re.compile(r"parts/(\d{6,})-([0-9a-f]{16})\.parquet")


@dataclass(frozen=True)
class Part:
    """One part: its number, its object's name, and the digest that its bytes must have."""

    number: int
    name: str
    digest: str


class DamagedPart(InputError):
    """A part whose bytes are not those that were written."""


def write_part(place: Place, number: int, table: pa.Table) -> Part:
    """Write a part. It is done when this returns, and not before."""
    content = as_bytes(table)
    digest = hashlib.sha256(content).hexdigest()[:16]
    part = Part(number, f"{PARTS}/{number:06d}-{digest}.parquet", digest)
    place.put(part.name, content)
    return part


def as_bytes(table: pa.Table) -> bytes:
    """A table as the bytes of a Parquet file.

    Numbers are stored byte by byte in turn: those that were single precision once end in zeros,
    which then pack well. Dictionaries and the smallest and largest value of each column would make
    a file of some dozens of rows half as large again, and nobody asks for them.
    """
    buffer = io.BytesIO()
    parquet().write_table(
        table,
        buffer,
        compression="zstd",
        compression_level=3,
        use_dictionary=False,
        use_byte_stream_split=_numbers_in(table.schema),
        write_statistics=[path for path, _ in _leaves(table.schema) if path in COUNTED],
    )
    return buffer.getvalue()


def _numbers_in(fields: Iterable[Any]) -> list[str]:
    types = arrow().types
    return [path for path, type in _leaves(fields) if types.is_float64(type)]


def _leaves(fields: Iterable[Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Every column as Parquet names it, with its type."""
    types = arrow().types
    for field in fields:
        path, type = f"{above}{field.name}", field.type
        while types.is_list(type):
            path, type = f"{path}.list.element", type.value_type
        if types.is_struct(type):
            yield from _leaves(type, f"{path}.")
        else:
            yield path, type


def parts_of(place: Place) -> dict[int, Part]:
    """The parts that are done, by number.

    Two processes may both have made a part, if one of them was thought dead. What they found is the
    same, and the first by name is taken, whoever looks.
    """
    parts: dict[int, Part] = {}
    for name in place.names(PARTS):
        if NAME.fullmatch(name):
            part = part_named(name)
            parts.setdefault(part.number, part)
    return parts


def remove_part(place: Place, number: int) -> None:
    """Remove a part, and the other file of it if two processes made it."""
    for name in list(place.names(PARTS)):
        if NAME.fullmatch(name) and part_named(name).number == number:
            place.remove(name)


def part_named(name: str) -> Part:
    """The part that has this name.

    >>> part_named("parts/000012-0123456789abcdef.parquet").number
    12
    """
    match = NAME.fullmatch(name)
    if match is None:
        raise InputError(f"{name!r} is no name of a part.")
    return Part(int(match[1]), name, match[2])


def read_part(place: Place, part: Part) -> pa.Table:
    """The table of a part, if its bytes are as they were written."""
    return parquet().read_table(io.BytesIO(checked_bytes(place, part)))


def checked_bytes(place: Place, part: Part) -> bytes:
    """The bytes of a part, if they are as they were written. Nothing of them is unpacked."""
    content = place.get(part.name)
    if hashlib.sha256(content).hexdigest()[:16] != part.digest:
        raise _damaged(place, part)
    return content


def _damaged(place: Place, part: Part) -> DamagedPart:
    return DamagedPart(
        f"{place.name}/{part.name} is damaged: its bytes are not those that were written. "
        "Do this part again with --mend (mend=True)."
    )


def failures_in(place: Place, part: Part) -> int:
    """How many rows of a part failed.

    Its footer says how many rows there are and in how many no kind of failure stands. So of a file
    only the end is read.
    """
    source = (
        place.path / part.name if isinstance(place, Folder) else io.BytesIO(place.get(part.name))
    )
    try:
        footer = parquet().read_metadata(source)
    except (arrow().ArrowException, OSError) as problem:
        raise _damaged(place, part) from problem
    names = [footer.schema.column(i).path for i in range(footer.num_columns)]
    column = names.index(FAILURE)
    failed = 0
    for group in range(footer.num_row_groups):
        counted = footer.row_group(group).column(column)
        failed += counted.num_values - counted.statistics.null_count
    return failed
