"""Interleaved timing: the two sides of a ratio take turns, so that a busy neighbour slows both."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Ratio:
    """Seconds of one thing over seconds of another.

    ``ratio`` is the median over interleaved pairs; from ``low`` to ``high`` is their middle half.
    The ratio should be at most ``limit``.
    """

    what: str
    over: str
    ratio: float
    low: float
    high: float
    seconds: float
    limit: float | None = None

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
    """Measure both sides in turns, the other one first each time.

    ``clock`` may be ``time.process_time`` where all work is in this process and its neighbours are
    many.
    """
    # Warm caches, compile nothing inside the measurement.
    ours()
    theirs()

    pairs = []
    for k in range(rounds):
        if k % 2:
            a = _seconds(ours, clock)
            b = _seconds(theirs, clock)
        else:
            b = _seconds(theirs, clock)
            a = _seconds(ours, clock)
        pairs.append((a, b))

    ratios = sorted(a / b for a, b in pairs)
    quarter = len(ratios) // 4
    return Ratio(
        what,
        over,
        ratio=median(ratios),
        low=ratios[quarter],
        high=ratios[-1 - quarter],
        seconds=median(a for a, _ in pairs),
        limit=limit,
    )


def _seconds(run: Callable[[], object], clock: Callable[[], float]) -> float:
    started = clock()
    run()
    return clock() - started
