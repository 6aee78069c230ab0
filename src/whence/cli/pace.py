"""How fast a run goes, and how long it will still take: by what it did, not by how it began."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from whence.cli.bars import fitted_bar
from whence.cli.running import lines_about
from whence.core.durations import about, precise, spoken


@dataclass(frozen=True)
class Mark:
    """So many rows were done at some moment."""

    seconds: float
    rows: int


@dataclass
class Pace:
    """The rate of this session and the time that is left, told as people say it.

    What was done before the session does not count as its work. The first part of each worker
    carries what is done once, such as loading a model; so as soon as there is another one from
    each, the rate is that of the parts after the first ones.
    """

    workers: int = 1
    rows: int = 0
    failed: int = 0
    marks: list[Mark] = field(default_factory=list)  # the beginning, then one after each part

    def tell(self, done: int, failed: int, rows: int, now: float) -> None:
        """Another part is done; the first time, none."""
        self.rows, self.failed = rows, failed
        self.marks.append(Mark(now, done))
        # between the first parts and the last ones nothing is asked for
        if len(self.marks) > 2 * self.workers + 2:
            del self.marks[self.workers + 1]

    @property
    def rate(self) -> float | None:
        """Rows a second; None before the first part."""
        if not self.marks:
            return None
        is_warm = len(self.marks) > 2 * self.workers
        since, last = self.marks[self.workers if is_warm else 0], self.marks[-1]
        rows, seconds = last.rows - since.rows, last.seconds - since.seconds
        return rows / seconds if rows and seconds > 0 else None

    def left(self, now: float) -> float | None:
        """Seconds to the end.

        They run down between two parts, but not beyond the part at hand: one that takes longer than
        those before does not bring the end nearer.
        """
        rate = self.rate
        if rate is None:
            return None
        last, before = self.marks[-1], self.marks[-2]
        passed = min(now - last.seconds, (last.rows - before.rows) / rate)
        return max(0.0, (self.rows - last.rows) / rate - passed)

    def words(self, now: float) -> str:
        """The count, the rate, and the time that is left; before it is known, what has passed."""
        return ", ".join(filter(None, [self.counted(), self.time_left(now) or self._passed(now)]))

    def _passed(self, now: float) -> str:
        """Said while the first part is at work: the same count again looks like a standstill."""
        if not self.marks or self.rate is not None:
            return ""
        return f"{spoken(now - self.marks[0].seconds)} so far"

    def counted(self) -> str:
        """How much is done, and how fast it goes."""
        if not self.marks:
            return "loading"
        told = f"{self.marks[-1].rows:,} of {self.rows:,} texts"
        if self.failed:
            told += f", {self.failed:,} failed"
        if self.rate is not None:
            told += f", {_rate(self.rate)}"
        return told

    def time_left(self, now: float) -> str:
        """The time that is left; empty where it is not known, and at the end."""
        left = self.left(now)
        if left is None or self.marks[-1].rows >= self.rows:
            return ""
        return f"{about(left)} left"


def _rate(rate: float) -> str:
    """How fast it goes, as a number that is one at least, and never an exponent.

    >>> _rate(0.04), _rate(0.5), _rate(7.25), _rate(1234.5)
    ('25 s each', '2 s each', '7.2 a second', '1,234 a second')
    """
    if rate < 1:
        return f"{precise(1 / rate)} each"
    return f"{rate:.2g} a second" if rate < 9.95 else f"{rate:,.0f} a second"


@contextmanager
def pace_shown(workers: int) -> Iterator[Callable[[int, int, int], None]]:
    """How far a run is: a bar in a terminal, else a line from time to time."""
    from rich.console import Console

    pace = Pace(workers)
    console = Console(stderr=True)
    if not (sys.stderr.isatty() and console.is_interactive):
        with lines_about(lambda: pace.words(time.monotonic())):
            yield lambda done, failed, rows: pace.tell(done, failed, rows, time.monotonic())
        return

    # asked several times a second, so that the time left runs down
    bar = fitted_bar(console, lambda _: pace.counted(), lambda _: pace.time_left(time.monotonic()))
    with bar:
        task = bar.add_task("", total=None)

        def fill(done: int, failed: int, rows: int) -> None:
            pace.tell(done, failed, rows, time.monotonic())
            bar.update(task, completed=done, total=rows)

        yield fill
