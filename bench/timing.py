"""Interleaved timing: the two sides of a ratio take turns, so that a busy neighbour slows both."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Ratio:
    """Seconds of one thing over seconds of another: the median over interleaved pairs, and the middle half of the pairs."""

    what: str
    over: str
    ratio: float
    low: float
    high: float
    seconds: float
    limit: float | None = None  # the ratio should be at most this

    @property
    def holds(self) -> bool | None:
        return None if self.limit is None else self.ratio <= self.limit


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
    """``clock`` may be ``time.process_time`` where all work is in this process and its neighbours are many."""
    ours(), theirs()  # warm caches, compile nothing inside the measurement
    pairs = []
    for k in range(rounds):
        first, second = (ours, theirs) if k % 2 else (theirs, ours)
        a, b = _seconds(first, clock), _seconds(second, clock)
        pairs.append((a, b) if k % 2 else (b, a))
    ratios = sorted(a / b for a, b in pairs)
    quarter = len(ratios) // 4
    return Ratio(
        what,
        over,
        median(ratios),
        ratios[quarter],
        ratios[-1 - quarter],
        median(a for a, _ in pairs),
        limit,
    )


def _seconds(run: Callable[[], object], clock: Callable[[], float]) -> float:
    started = clock()
    run()
    return clock() - started
