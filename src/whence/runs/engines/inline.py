"""One part after the other, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from whence.runs.kept_rows import KeptRows
from whence.runs.manifest import Manifest
from whence.runs.parts import Part, write_part
from whence.runs.places import Place
from whence.runs.work import Work


def inline(
    place: Place,
    manifest: Manifest,
    work: Work,
    parts: Sequence[int],
    stopped: Callable[[], bool],
) -> Iterator[Part]:
    """Do these parts, and give each when it is done.

    Once ``stopped`` says so no further part is begun.
    """
    rows = KeptRows(place)
    for number in parts:
        if stopped():
            return
        of_part = manifest.rows_of(number)
        yield write_part(place, number, work(rows[of_part], of_part.start))
