"""How fast a run goes, and how long it will still take: by what it did, not by how it began."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from whence.cli.running import note
from whence.core.budget import spoken

# seconds between two lines about progress where there is no terminal
BETWEEN_LINES = 30.0


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
        """The count, the rate, and the time that is left."""
        if not self.marks:
            return "loading"
        done = self.marks[-1].rows
        told = f"{done:,} of {self.rows:,} texts"
        if self.failed:
            told += f", {self.failed:,} failed"
        rate, left = self.rate, self.left(now)
        if rate is not None and left is not None:
            told += f", {rate:.3g} a second"
            if done < self.rows:
                told += f", about {spoken(left)} left"
        return told


@contextmanager
def pace_shown(workers: int) -> Iterator[Callable[[int, int, int], None]]:
    """How far a run is: a bar in a terminal, else a line from time to time."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TimeElapsedColumn
    from rich.text import Text

    pace = Pace(workers)
    console = Console(stderr=True)
    if not (sys.stderr.isatty() and console.is_interactive):
        last = time.monotonic()

        def line(done: int, failed: int, rows: int) -> None:
            nonlocal last
            now = time.monotonic()
            pace.tell(done, failed, rows, now)
            if now - last >= BETWEEN_LINES:
                last = now
                note(pace.words(now))

        yield line
        return

    class Words(ProgressColumn):
        """Drawn several times a second, so that the time left runs down."""

        def render(self, task: Task) -> Text:
            del task
            return Text(pace.words(time.monotonic()))

    columns = (BarColumn(), Words(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, redirect_stderr=False) as bar:
        task = bar.add_task("", total=None)

        def fill(done: int, failed: int, rows: int) -> None:
            pace.tell(done, failed, rows, time.monotonic())
            bar.update(task, completed=done, total=rows)

        yield fill
