"""Several processes of this machine, each with a model of its own and one thread.

Numbers of parts travel, and no data: a worker reads the rows from the run's place, and writes the
part there. A worker that dies is replaced, and its part is done again.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from whence.core.errors import InputError
from whence.runs.engines.pool import Hand, Pool
from whence.runs.engines.worker import written_order
from whence.runs.parts import Part, part_named
from whence.runs.places import Place

WORKER = "whence.runs.engines.worker"
# one thread for each worker, whichever of these its libraries ask
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
# bars of several processes would overwrite each other, and whoever started them has said the rest
QUIET = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "TRANSFORMERS_VERBOSITY": "error"}


@dataclass
class Worker:
    """A process, and what it is at."""

    process: subprocess.Popen[bytes]
    hand: Hand = field(default_factory=Hand)
    buffer: bytes = b""


def processes(
    place: Place, parts: Sequence[int], workers: int | None, stopped: Callable[[], bool]
) -> Iterator[Part]:
    """Do these parts in so many processes, and give each when it is done.

    ``workers`` is as many as there are cores, if nothing is said. Once ``stopped`` says so no
    further part is begun, and those at hand are waited for.
    """
    pool = Pool(list(parts))
    count = min(workers or os.cpu_count() or 1, len(pool.waiting))
    team = [_started(place) for _ in range(count)]
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
                    done = _heard(worker.hand, line)
                    if done is not None:
                        pool.done(worker.hand)
                        yield done
                    if not stopped():
                        _assign(pool, worker)
    finally:
        listening.close()
        for worker in team:
            _end(worker)


def _goes_on(pool: Pool, team: Sequence[Worker], is_stopped: bool) -> bool:
    is_at_work = any(worker.hand.order is not None for worker in team)
    return is_at_work or (bool(pool.waiting) and not is_stopped)


def _started(place: Place) -> Worker:
    command = [sys.executable, "-m", WORKER, place.name]
    surroundings = os.environ | ONE_THREAD | QUIET
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=surroundings
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


def _heard(hand: Hand, line: str) -> Part | None:
    """Note what a worker says, and give the part that is done, if one is."""
    word, _, rest = line.partition(" ")
    if word == "ready":
        hand.is_ready = True
    elif word == "row":
        hand.row = int(rest)
    elif word == "done":
        return part_named(rest)
    elif word == "failed":
        raise InputError(rest)
    return None


def _assign(pool: Pool, worker: Worker) -> None:
    """The next part, for a worker that waits."""
    order = pool.give(worker.hand)
    if order is None:
        return
    assert worker.process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it is gone, and will be mourned
        worker.process.stdin.write(f"{written_order(order)}\n".encode())
        worker.process.stdin.flush()


def _mourn(pool: Pool, worker: Worker) -> None:
    """A worker is gone: its part is to be done again, first of all."""
    code = worker.process.wait()
    _end(worker)  # its pipes
    pool.lost(worker.hand, f"code {code}")


def _end(worker: Worker) -> None:
    """A worker that hears nothing any more ends by itself."""
    assert worker.process.stdin is not None
    assert worker.process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        worker.process.stdin.close()
    worker.process.kill()
    worker.process.wait()
    worker.process.stdout.close()
