"""A bar on one line, however narrow the terminal: words are cut before the time that is left is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from whence.core.showing import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, Task

LEAST = 8  # columns of the bar itself
ELAPSED = 8  # as in 10:00:00
GAPS = 5  # a blank between the parts, and one for the terminal's own last column

Told = Callable[["Task"], str]


def room(width: int, left: str) -> int:
    """How many columns are there for the words, beside the time that is left.

    >>> room(80, "about 2.5 min left")
    40
    """
    return max(1, width - LEAST - ELAPSED - GAPS - len(left) - 1)


def cut(words: str, columns: int) -> str:
    """Words on one line of at most so many columns.

    >>> cut("lime: 32 of 112 passes", 14), cut("lime", 14)
    ('lime: 32 of 1…', 'lime')
    """
    from rich.cells import cell_len, set_cell_size

    words = visible(" ".join(words.split()))
    if cell_len(words) <= columns:
        return words
    return set_cell_size(words, columns - 1).rstrip() + "…"


def fitted_bar(console: Console, words: Told, left: Told) -> Progress:
    """A bar that fits its terminal: what is done, the bar, the time so far and what is left.

    ``words`` and ``left`` are asked several times a second.
    """
    from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TimeElapsedColumn
    from rich.table import Column
    from rich.text import Text

    class Words(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(cut(words(task), room(console.width, left(task))))

    class Left(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(left(task))

    def whole() -> Column:
        return Column(no_wrap=True)

    return Progress(
        SpinnerColumn(table_column=whole()),
        Words(table_column=whole()),
        BarColumn(),
        TimeElapsedColumn(table_column=whole()),
        Left(table_column=whole()),
        console=console,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
