"""Several processes of this machine, each with a model of its own and one thread.

Numbers of parts travel, and no data: a worker reads the rows from the run's place, and writes the
part there. A worker that dies is replaced, and its part is done again. If that part kills workers
twice, its rows are done one by one, and those that kill their worker become failures.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from whence.core.errors import InputError, ModelError
from whence.runs.parts import Part, part_named
from whence.runs.places import Place

WORKER = "whence.runs.engines.worker"
THREADS = ("OMP", "OPENBLAS", "MKL")
# so often a part may kill its worker before its rows are done one by one
DEATHS = 2
# workers that die before their first part, one after the other: something else is wrong
MOST_STILLBORN = 3


@dataclass
class Worker:
    """A process, and what it is at."""

    process: subprocess.Popen[bytes]
    part: int | None = None  # None while it loads its model, and when it waits
    row: int | None = None  # the one that it is at, where rows are done one by one
    is_ready: bool = False
    buffer: bytes = b""


@dataclass
class Pool:
    """The workers of a run, and the parts that are still to be done."""

    place: Place
    waiting: list[int]
    deaths: dict[int, int] = field(default_factory=dict)
    deadly: dict[int, set[int]] = field(default_factory=dict)  # rows, by part
    stillborn: int = 0


def processes(
    place: Place, parts: Sequence[int], workers: int, stopped: Callable[[], bool]
) -> Iterator[Part]:
    """Do these parts in so many processes, and give each when it is done.

    Once ``stopped`` says so no further part is begun, and those at hand are waited for.
    """
    pool = Pool(place, list(parts))
    team = [_started(place) for _ in range(min(workers, len(pool.waiting)))]
    listening = selectors.DefaultSelector()
    for worker in team:
        listening.register(_output(worker), selectors.EVENT_READ, worker)
    try:
        while _goes_on(pool, team, stopped()):
            for key, _ in listening.select(timeout=1.0):
                worker: Worker = key.data
                lines = _read(worker)
                if lines is None:
                    listening.unregister(_output(worker))
                    team.remove(worker)
                    _mourn(pool, worker)
                    if pool.waiting and not stopped():
                        heir = _started(place)
                        team.append(heir)
                        listening.register(_output(heir), selectors.EVENT_READ, heir)
                    continue
                for line in lines:
                    done = _heard(worker, line)
                    if done is not None:
                        pool.stillborn = 0
                        yield done
                    if not stopped():
                        _assign(pool, worker)
    finally:
        listening.close()
        for worker in team:
            _end(worker)


def _goes_on(pool: Pool, team: Sequence[Worker], is_stopped: bool) -> bool:
    is_at_work = any(worker.part is not None for worker in team)
    return is_at_work or (bool(pool.waiting) and not is_stopped)


def _started(place: Place) -> Worker:
    environment = dict(os.environ)
    for library in THREADS:
        environment[f"{library}_NUM_THREADS"] = "1"
    command = [sys.executable, "-m", WORKER, place.name]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    return Worker(process)


def _output(worker: Worker) -> int:
    assert worker.process.stdout is not None
    return worker.process.stdout.fileno()


def _read(worker: Worker) -> list[str] | None:
    """Whole lines that a worker has said; None when it is gone."""
    said = os.read(_output(worker), 65_536)
    if not said:
        return None
    *lines, worker.buffer = (worker.buffer + said).split(b"\n")
    return [line.decode() for line in lines]


def _heard(worker: Worker, line: str) -> Part | None:
    """Note what a worker says, and give the part that is done, if one is."""
    word, _, rest = line.partition(" ")
    if word == "ready":
        worker.is_ready = True
    elif word == "row":
        worker.row = int(rest)
    elif word == "done":
        worker.part = worker.row = None
        return part_named(rest)
    elif word == "failed":
        raise InputError(rest)
    return None


def _assign(pool: Pool, worker: Worker) -> None:
    """The next part, for a worker that waits."""
    if not worker.is_ready or worker.part is not None or not pool.waiting:
        return
    worker.part = pool.waiting.pop(0)
    command = f"part {worker.part}"
    if pool.deaths.get(worker.part, 0) >= DEATHS:
        deadly = ",".join(map(str, sorted(pool.deadly.get(worker.part, ()))))
        command = f"apart {worker.part} {deadly}".strip()
    assert worker.process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it is gone, and will be mourned
        worker.process.stdin.write(f"{command}\n".encode())
        worker.process.stdin.flush()


def _mourn(pool: Pool, worker: Worker) -> None:
    """A worker is gone: its part is to be done again, first of all."""
    code = worker.process.wait()
    _end(worker)  # its pipes
    if worker.part is None:
        if not worker.is_ready:
            pool.stillborn += 1
        if pool.stillborn >= MOST_STILLBORN:
            raise ModelError(
                f"{pool.stillborn} workers ended with code {code} before they did anything. "
                "What they said stands above; with --workers 1 the work is done in this process."
            )
        return
    if worker.row is not None:
        pool.deadly.setdefault(worker.part, set()).add(worker.row)
    pool.deaths[worker.part] = pool.deaths.get(worker.part, 0) + 1
    pool.waiting.insert(0, worker.part)


def _end(worker: Worker) -> None:
    """A worker that hears nothing any more ends by itself."""
    assert worker.process.stdin is not None
    assert worker.process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        worker.process.stdin.close()
    worker.process.kill()
    worker.process.wait()
    worker.process.stdout.close()
