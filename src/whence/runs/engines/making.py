"""The worker's side, whoever it works for: the model is held, parts are made and written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from whence import __version__
from whence.core.errors import LoadError, WhenceError
from whence.runs.arrow import arrow
from whence.runs.engines.pool import Order
from whence.runs.kept_rows import KeptRows
from whence.runs.manifest import Manifest, read_manifest
from whence.runs.parts import DamagedPart, Part, checked_bytes, parts_of, write_part
from whence.runs.places import Place, place_of
from whence.runs.work import Work, opened

TOGETHER = -1  # in place of a row's number: all of them
LOST = (
    "the process that explained this text died, twice in its part and again on the text alone; "
    "there may be too little memory for it."
)


@dataclass(frozen=True)
class Maker:
    """A run's work, ready for its rows."""

    place: Place
    manifest: Manifest
    work: Work
    rows: KeptRows


def maker_of(name: str) -> Maker:
    """What the run in a place asks for, with its model loaded."""
    place = place_of(name)
    manifest = read_manifest(place)
    if manifest.whence != __version__:
        raise LoadError(
            f"the run in {name!r} is made by whence {manifest.whence}, and this worker has "
            f"{__version__}: install the same version wherever workers run."
        )
    return Maker(place, manifest, opened(manifest.work, manifest.asked), KeptRows(place))


def steps(maker: Maker, order: Order) -> Iterator[int | Part]:
    """Do a part: its rows together, or each announced before it is tried; at last the part.

    A row is announced by its number, so that whoever listens knows which one killed. Those that
    killed already are not tried. When each was tried alone, all are done together, as they always
    are: whoever stands beside a text may change its last digits. Only if that kills too, what each
    gave alone is taken. A part that a lost worker has written already is not made again.
    """
    if order.again:
        written = _written(maker.place, order.part)
        if written is not None:
            yield written
            return
    of_part = maker.manifest.rows_of(order.part)
    rows = maker.rows[of_part]
    if not order.apart:
        yield write_part(maker.place, order.part, maker.work(rows, of_part.start))
        return

    alone = []
    for at, row in enumerate(of_part):
        if row in order.deadly:
            rows[at] = replace(rows[at], problem=LOST)
        yield row
        alone.append(maker.work([rows[at]], row))
    if TOGETHER in order.deadly:
        table = arrow().concat_tables(alone)
    else:
        yield TOGETHER
        table = maker.work(rows, of_part.start)
    yield write_part(maker.place, order.part, table)


def _written(place: Place, number: int) -> Part | None:
    """The part that a lost worker has left, if it is whole."""
    part = parts_of(place).get(number)
    if part is None:
        return None
    try:
        checked_bytes(place, part)
    except DamagedPart:
        place.remove(part.name)
        return None
    return part


def told(problem: Exception) -> str:
    """What stopped a worker, in one line.

    >>> told(RuntimeError("no\\nluck"))
    'unexpected RuntimeError: no luck'
    """
    message = " ".join(str(problem).split())
    if isinstance(problem, WhenceError):
        return message
    return f"unexpected {type(problem).__name__}: {message}"
