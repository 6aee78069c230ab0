"""What a run will cost is said beforehand, once, and a bar fills by passes."""

from __future__ import annotations

import io
import time

import pytest
import rich.console

from whence.cli import running
from whence.core.progress import Step
from whence.core.registry import Passes
from whence.explaining.forecast import Forecast

TEXT = "the food is great but the service is not bad"
FORECAST = Forecast(Passes(1), {"lime": Passes(2000, at_most=True)}, 3638, seconds_per_pass=0.002)


def test_piped_output_says_it_once(whence) -> None:
    done = whence("explain", TEXT, "--method", "occlusion", tells_cost_from=0.0)
    (line,) = done.err.splitlines()
    assert line.startswith("whence: occlusion: about ")
    assert ": methods 11, evidence " in line


def test_of_several_texts_the_first_says_it(whence, tmp_path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text(f"{TEXT}\nnot bad\n{TEXT}\n")
    asked = ("--file", file, "--methods", "gradient-l2,random", "--json")
    done = whence("compare", *asked, tells_cost_from=0.0)
    (line,) = done.err.splitlines()
    assert line.startswith("whence: text 1 of 3: about ")
    assert len(done.out.splitlines()) == 3


def test_what_is_quick_says_nothing(whence) -> None:
    assert whence("explain", TEXT, "--method", "occlusion").err == ""


def test_a_budget_is_told_with_what_it_makes_smaller(whence) -> None:
    methods = "gradient-l2,lime,random"
    asked = ("--methods", methods, "--budget", "900 passes", "--set", "lime.exact=0", "--json")
    done = whence("compare", TEXT, *asked, tells_cost_from=0.0)
    assert "Leaner than usual, as the budget is 900 passes: 39 random rankings" in done.err
    assert '"rankings": 39, "steps": 5' in done.out


def test_the_settings_of_the_control_are_flags(whence) -> None:
    done = whence(
        "explain", TEXT, "--method", "random", "--rankings", "60", "--steps", "4", "--json"
    )
    assert '"rankings": 60, "steps": 4' in done.out


def test_the_words_of_a_forecast() -> None:
    assert str(FORECAST) == (
        "up to about 5,639 passes, 11 s (one pass: 2 ms): methods 2,001, evidence 3,638."
    )


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """A terminal in place of stderr, on which a bar appears at once."""
    screen = io.StringIO()
    console = rich.console.Console(file=screen, force_terminal=True, width=120)
    monkeypatch.setattr(rich.console, "Console", lambda **_: console)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(running, "PATIENCE", 0.0)
    return screen


def test_a_bar_fills_and_tells_the_time_that_is_left(terminal: io.StringIO) -> None:
    with running.progress("lime") as say:
        say(Step(str(FORECAST), 0, FORECAST.passes, FORECAST))
        for done in (1000, 2000, 3000):
            time.sleep(0.05)
            say(Step(f"evidence: {done:,} passes", done, 5639))
        time.sleep(0.2)
    shown = terminal.getvalue()
    assert shown.count("whence: lime: up to about 5,639 passes, 11 s") == 1
    assert "lime: evidence: 3,000 passes" in shown
    assert " left" in shown


def test_a_bar_without_a_forecast_tells_no_time(terminal: io.StringIO) -> None:
    with running.progress("loading") as say:
        say("weights")
        time.sleep(0.2)
    assert "loading: weights" in terminal.getvalue()
    assert " left" not in terminal.getvalue()
