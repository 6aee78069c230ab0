"""A worker process: it is told numbers of parts on stdin, and says on stdout what is done.

    python -m whence.runs.engines.worker runs/reviews

It ends when stdin does, in the middle of a part too: whoever started it is gone.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from whence.core.errors import WhenceError
from whence.core.showing import visible
from whence.runs.arrow import arrow
from whence.runs.kept_rows import KeptRows
from whence.runs.manifest import read_manifest
from whence.runs.parts import write_part
from whence.runs.places import place_of
from whence.runs.work import Work, opened

TOGETHER = -1  # in place of a row's number: all of them
LOST = (
    "the process that explained this text died, twice in its part and again on the text alone; "
    "there may be too little memory for it."
)


def main() -> None:
    """Do parts until there are no more."""
    # Ctrl-C reaches every process of a terminal; what to stop is the parent's to decide
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # what libraries print must not be taken for words to the parent
    speech = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def say(line: str) -> None:
        print(line, file=speech, flush=True)

    try:
        _serve(say)
    except WhenceError as problem:
        say(f"failed {' '.join(str(problem).split())}")
    except Exception as problem:
        print(visible(traceback.format_exc(), keep="\n"), file=sys.stderr)
        say(f"failed unexpected {type(problem).__name__}: {' '.join(str(problem).split())}")


def _serve(say: Callable[[str], None]) -> None:
    place = place_of(sys.argv[1])
    manifest = read_manifest(place)
    commands = _commands()
    work = opened(manifest.work, manifest.asked)
    rows = KeptRows(place)
    say("ready")
    while True:
        word, number, *more = commands.get().split()
        part = int(number)
        of_part = manifest.rows_of(part)
        if word == "part":
            table = work(rows[of_part], of_part.start)
        else:
            deadly = {int(row) for row in more[0].split(",")} if more else set()
            table = _apart(work, rows, of_part, deadly, say)
        written = write_part(place, part, table)
        say(f"done {written.name}")


def _commands() -> queue.SimpleQueue[str]:
    """What the parent says, line by line; when it says no more, this process ends at once."""
    commands: queue.SimpleQueue[str] = queue.SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            commands.put(line)
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    return commands


def _apart(
    work: Work, rows: KeptRows, of_part: range, deadly: set[int], say: Callable[[str], None]
) -> Any:
    """A part that has killed workers: each row is announced and tried alone.

    Those that killed their worker are not tried. Then all are done together, as they always are:
    whoever stands beside a text may change its last digits. Only if that kills too is it left.
    """
    of_rows, alone = [], []
    for row in of_part:
        (one,) = rows[range(row, row + 1)]
        if row in deadly:
            one = replace(one, problem=LOST)
        say(f"row {row}")
        of_rows.append(one)
        alone.append(work([one], row))
    if TOGETHER in deadly:
        return arrow().concat_tables(alone)
    say(f"row {TOGETHER}")
    return work(of_rows, of_part.start)


if __name__ == "__main__":
    main()
