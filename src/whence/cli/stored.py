"""``--out`` of explain and compare: the texts of a file go through the store of a run.

So they are kept part by part, and the same command goes on where it was ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from whence.cli.pace import pace_shown
from whence.cli.reports import Results
from whence.cli.running import SOME_FAILED, note
from whence.core.errors import InputError

if TYPE_CHECKING:
    from whence.cli.texts import Line
    from whence.core.request import Request
    from whence.models.model import Model
    from whence.runs.data import Data, Row
    from whence.runs.run import Run


def check_out(out: str | None, file: Path | None) -> None:
    """Refuse ``--out`` where there is no file whose texts could be kept."""
    if out is not None and file is None:
        raise InputError("--out keeps the results of many texts: name them with --file FILE.")


def through_run(
    model: Model, lines: Sequence[Line], request: Request, out: str, results: Results, alone: bool
) -> None:
    """Do what is left of the run in ``out``, and hand over everything that it holds.

    ``alone`` says that there is one method, whose attributions are wanted and no comparisons.
    """
    from whence.explaining.data_set import run_as_asked
    from whence.explaining.rows import ExplainRows
    from whence.runs.data import Choice
    from whence.runs.manner import Manner
    from whence.runs.places import place_of
    from whence.runs.run import stopping

    with stopping(note) as stop, pace_shown(workers=1) as progress:
        run = run_as_asked(
            ExplainRows(model, request),
            _data_of(lines),
            Choice(seed=request.seed),
            place_of(out),
            Manner(),
            stop=stop,
            progress=progress,
        )
    results.bad.code = SOME_FAILED
    _hand_over(run, lines, results, alone)
    if stop.asked and not run.is_complete:
        raise KeyboardInterrupt


def _data_of(lines: Sequence[Line]) -> Data:
    """The lines as a data set: the one that they are rows of, if any."""
    if lines[0].data is not None:
        return lines[0].data
    from whence.runs.columns import Columns
    from whence.runs.data import Data

    source = (lines[0].where or "").rsplit(", line", 1)[0]
    return Data(source, "txt", Columns(text=None), lambda: _rows_of(lines))


def _rows_of(lines: Sequence[Line]) -> Iterator[Row]:
    from whence.runs.data import Row

    for line in lines:
        number = (line.number or 1) - 1
        yield Row(number, line.content, id=str(number), problem=line.problem)


def _hand_over(run: Run, lines: Sequence[Line], results: Results, alone: bool) -> None:
    """Every result, and every text that has none, as if they had just been made.

    Said where results were kept in a folder.

    ``kept in reviews; whence run and whence query read it``
    """
    done = set()
    for row, _, comparison in run.explained():
        done.add(row)
        results.add(comparison.first if alone else comparison)
    if not run.parts:
        return
    for failed in run.failures:
        if failed.row not in done:
            results.bad.keep(lines[failed.row], failed.message)
    note(f"kept in {run.place.name}; whence run and whence query read it")
