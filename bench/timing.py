"""Interleaved timing: the two sides of a ratio take turns, so that a busy neighbour slows both."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Ratio:
    """Seconds of one thing over seconds of another, over pairs of runs that took turns.

    ``ratio`` is the median over the pairs; ``low`` and ``high`` bound their middle half.
    """

    what: str
    over: str
    ratio: float
    low: float
    high: float
    seconds: float
    limit: float | None = None  # the ratio should be at most this

    @property
    def holds(self) -> bool | None:
        if self.limit is None:
            return None
        return self.ratio <= self.limit


def interleaved(
    what: str,
    ours: Callable[[], object],
    over: str,
    theirs: Callable[[], object],
    *,
    limit: float | None = None,
    rounds: int = 15,
    clock: Callable[[], float] = time.perf_counter,
) -> Ratio:
    """Time ours and theirs in turns, and alternate which of them is first.

    ``clock`` may be ``time.process_time`` where all work is in this process and the machine is
    shared with many others.
    """
    # warm the caches, and compile nothing inside the measurement
    ours()
    theirs()

    our_seconds, ratios = [], []
    for turn in range(rounds):
        if turn % 2:
            of_ours = _seconds(ours, clock)
            of_theirs = _seconds(theirs, clock)
        else:
            of_theirs = _seconds(theirs, clock)
            of_ours = _seconds(ours, clock)
        our_seconds.append(of_ours)
        ratios.append(of_ours / of_theirs)

    ratios.sort()
    quarter = len(ratios) // 4
    return Ratio(
        what=what,
        over=over,
        ratio=median(ratios),
        low=ratios[quarter],
        high=ratios[-1 - quarter],
        seconds=median(our_seconds),
        limit=limit,
    )


def _seconds(run: Callable[[], object], clock: Callable[[], float]) -> float:
    started = clock()
    run()
    return clock() - started
