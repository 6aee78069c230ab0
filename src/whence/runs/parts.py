"""Parts: the results of a few dozen rows in one Parquet file, which is there wholly or not at all.

A part's name ends in a digest of its bytes. So a part is done when its name exists, whoever made
it, and a byte that was flipped or lost since is found by reading it.
"""

from __future__ import annotations

import hashlib
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from whence.core.errors import InputError
from whence.runs.arrow import parquet
from whence.runs.places import Place

if TYPE_CHECKING:
    import pyarrow as pa

PARTS = "parts"
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
    """A table as the bytes of a Parquet file."""
    buffer = io.BytesIO()
    parquet().write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


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
    """The bytes of a part, if they are as they were written."""
    content = place.get(part.name)
    if hashlib.sha256(content).hexdigest()[:16] != part.digest:
        raise DamagedPart(
            f"{place.name}/{part.name} is damaged: its {len(content):,} bytes are not those that "
            "were written. Do this part again with --mend (mend=True)."
        )
    return content
