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

from whence.core.errors import WhenceError
from whence.core.showing import visible
from whence.runs.engines.making import maker_of, steps, told
from whence.runs.engines.pool import Order
from whence.runs.parts import Part


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
    except Exception as problem:
        if not isinstance(problem, WhenceError):
            print(visible(traceback.format_exc(), keep="\n"), file=sys.stderr)
        say(f"failed {told(problem)}")


def _serve(say: Callable[[str], None]) -> None:
    commands = _commands()
    maker = maker_of(sys.argv[1])
    say("ready")
    while True:
        for step in steps(maker, read_order(commands.get())):
            say(f"done {step.name}" if isinstance(step, Part) else f"row {step}")


def written_order(order: Order) -> str:
    """An order as a line.

    >>> written_order(Order(3)), written_order(Order(3, again=True))
    ('part 3', 'again 3')
    >>> written_order(Order(3, apart=True, deadly=(7, 8), again=True))
    'apart 3 7,8'
    """
    if not order.apart:
        return f"again {order.part}" if order.again else f"part {order.part}"
    return f"apart {order.part} {','.join(map(str, order.deadly))}".strip()


def read_order(line: str) -> Order:
    """The order of a line.

    >>> read_order("apart 3 7,8")
    Order(part=3, apart=True, deadly=(7, 8), again=True)
    """
    word, part, *deadly = line.split()
    rows = tuple(int(row) for row in deadly[0].split(",")) if deadly else ()
    # rows are tried apart only after workers were lost
    return Order(int(part), word == "apart", rows, again=word in ("again", "apart"))


def _commands() -> queue.SimpleQueue[str]:
    """What the parent says, line by line; when it says no more, this process ends at once."""
    commands: queue.SimpleQueue[str] = queue.SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            commands.put(line)
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    return commands


if __name__ == "__main__":
    main()
