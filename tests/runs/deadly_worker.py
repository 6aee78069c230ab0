"""The real workers, with work that a text can kill."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from whence.runs import work
from whence.runs.arrow import arrow
from whence.runs.data import Row
from whence.runs.engines import worker
from whence.runs.engines.ray_actors import Actor
from whence.runs.parts import write_part
from whence.runs.places import place_of

WRITTEN_BEFORE_DEATH = -1


class Deadly:
    """It echoes texts; "die" kills it alone too, "die together" only among others.

    "unheard FOLDER" writes the part into its place, and is killed before it can say so.
    """

    def __call__(self, rows: Sequence[Row], first: int) -> Any:
        records = []
        for place, row in enumerate(rows):
            if row.problem is None and row.text == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            if row.text == "die together" and len(rows) > 1:
                os.kill(os.getpid(), signal.SIGKILL)
            if row.problem is None and row.text.startswith("doomed "):
                _doomed(Path(row.text.removeprefix("doomed ")))
            if row.problem is None and row.text.startswith("unheard "):
                _unheard(row.text.removeprefix("unheard "))
            if row.text == "raise":
                raise RuntimeError("a bug in the work")
            failure = None if row.problem is None else {"kind": "died", "message": row.problem}
            records.append({"row": first + place, "failure": failure, "beside": len(rows)})
        return _table(records)


def _table(records: list[dict[str, Any]]) -> Any:
    pa = arrow()
    failure = pa.struct([("kind", pa.string()), ("message", pa.string())])
    schema = pa.schema([("row", pa.int64()), ("failure", failure), ("beside", pa.int64())])
    return pa.Table.from_pylist(records, schema=schema)


def _unheard(folder: str) -> None:
    record = {"row": 0, "failure": None, "beside": WRITTEN_BEFORE_DEATH}
    write_part(place_of(folder), 0, _table([record]))
    os.kill(os.getpid(), signal.SIGKILL)


def _doomed(file: Path) -> None:
    """Two deaths of its own; then it waits for its node to be taken away; then it lives."""
    import ray

    with file.open("a") as notes:
        notes.write(f"{ray.get_runtime_context().get_node_id()}\n")
    tries = len(file.read_text().splitlines())
    if tries <= 2:
        os.kill(os.getpid(), signal.SIGKILL)
    if tries == 3:
        threading.Event().wait()


class DeadlyActor(Actor):
    """The actor of the engine ray, for this work."""

    def open(self, place: str, folder: str) -> Any:
        work.OURS = "tests."
        return super().open(place, folder)


def opened(asked: Mapping[str, Any]) -> Deadly:
    if asked.get("stillborn"):
        os.kill(os.getpid(), signal.SIGKILL)
    return Deadly()


if __name__ == "__main__":
    work.OURS = "tests."
    worker.main()
