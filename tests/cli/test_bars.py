"""A bar fits 80 columns, whatever it has to say."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from whence.cli.bars import cut, fitted_bar
from whence.cli.features import _Left
from whence.cli.pace import Pace
from whence.core.progress import Step

LONGEST = (
    "step 1,000,000 of 1,000,000: loss 12345, L0 1234, variance explained 0.998, 16,384 dead "
    "(the first of 12), 123,456 tokens/s"
)


def drawn(words: str, left: str, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    bar = fitted_bar(console, lambda _: words, lambda _: left)
    bar.add_task("", total=100, completed=100)
    console.print(bar.get_renderable())
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize(
    "words",
    [
        LONGEST,
        "whence compare: integrated-gradients: 112,000 of 112,000 passes, evidence of 9 methods",
        "漢字" * 60,
        "two\nlines",
        "loading",
    ],
)
def test_a_bar_is_one_line_that_fits(words: str, width: int) -> None:
    # would catch: words that wrap onto a second line, or push the time that is left off the line
    (line,) = drawn(words, "about 9.5 min left", width)
    assert cell_len(line) <= width
    assert "about 9.5 min left" in line
    assert "0:00:00" in line
    assert line.count("━") + line.count("╸") + line.count("╺") >= 8
    assert line.split()[1].startswith(words.split()[0][:4])


def test_the_longest_words_of_a_run_keep_the_count_and_the_time() -> None:
    pace = Pace()
    for now, done in ((0.0, 0), (900.0, 100_000), (1900.0, 200_000), (2900.0, 300_000)):
        pace.tell(done, 12_345, 10_000_000, now)
    (line,) = drawn(pace.counted(), pace.time_left(2900.0), 80)
    assert "300,000 of 10,000,000 texts, 12,345" in line
    assert line.rstrip().endswith("left")


def test_the_first_step_of_each_work_is_told_at_once() -> None:
    left = _Left()
    steps = [Step("activations", 5, 50), Step("activations", 9, 50), Step("step", 1, 9)]
    begins = []
    for now, step in enumerate(steps):
        begins.append(left.begins(step))
        left.words(step, float(now))
    assert begins == [True, False, True]
    assert left.words(Step("step", 2, 9), 6.0) == "about 28 s left"


def test_what_fits_is_not_cut() -> None:
    assert cut("lime", 4) == "lime"
    assert cut("lime", 3) == "li…"
