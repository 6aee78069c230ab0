"""The time that is left is that of the work, not of how it began."""

from __future__ import annotations

import time

import pytest

from whence.cli.pace import Pace, pace_shown
from whence.cli.running import progress


def told(pace: Pace, *parts: tuple[float, int], rows: int = 1000) -> Pace:
    for now, done in parts:
        pace.tell(done, 0, rows, now)
    return pace


def test_nothing_is_said_before_something_is_done() -> None:
    pace = Pace()
    assert pace.words(0.0) == "loading"
    assert pace.left(5.0) is None
    assert told(pace, (5.0, 0)).words(9.0) == "0 of 1,000 texts, 4 s so far"


def test_before_the_first_part_is_done_no_line_is_said_twice() -> None:
    """A part of many minutes said "0 of 1,000 texts" again and again, as if nothing happened."""
    pace = told(Pace(), (5.0, 0))
    said = [pace.words(5.0 + minute * 60) for minute in range(1, 9)]
    assert len(set(said)) == len(said)
    assert said[-1] == "0 of 1,000 texts, 8 min so far"
    assert "so far" not in told(pace, (600.0, 32)).words(700.0)


def test_a_slow_run_tells_the_time_of_a_text_and_not_a_part_of_a_text() -> None:
    for seconds, said in ((23.3, "23 s each"), (0.1, "10 a second"), (1.0, "1 a second")):
        pace = told(Pace(), (0.0, 0), (10 * seconds, 10))
        assert f"10 of 1,000 texts, {said}" in pace.words(10 * seconds)


def test_what_is_done_once_does_not_count_after_the_first_part() -> None:
    # would catch: the rate over the whole session, 30 rows in 80 s, and so 43 min left
    pace = told(Pace(), (0.0, 0), (60.0, 10), (70.0, 20), (80.0, 30))
    assert pace.rate == pytest.approx(1.0)
    assert pace.left(80.0) == pytest.approx(970)
    assert pace.words(80.0) == "30 of 1,000 texts, 1 a second, about 16 min left"


def test_after_the_first_part_alone_it_is_all_that_is_known() -> None:
    pace = told(Pace(), (0.0, 0), (60.0, 10))
    assert pace.rate == pytest.approx(10 / 60)


def test_what_an_earlier_session_did_is_not_the_work_of_this_one() -> None:
    # would catch: 920 rows in 20 s, and so 2 s left
    pace = told(Pace(), (0.0, 900), (10.0, 910), (20.0, 920))
    assert pace.left(20.0) == pytest.approx(80)


def test_a_burst_of_several_workers_is_not_their_rate() -> None:
    # two workers load for 50 s; then both end a part every 10 s, half a second after each other
    pace = told(Pace(2), (0.0, 0), (60.0, 10), (60.5, 20))
    assert pace.rate == pytest.approx(20 / 60.5)  # would catch: 10 rows in half a second
    told(pace, (70.0, 30), (70.5, 40), (80.0, 50), (80.5, 60))
    assert pace.rate == pytest.approx(2.0)


def test_the_time_left_runs_down_but_not_beyond_the_part_at_hand() -> None:
    pace = told(Pace(), (0.0, 0), (10.0, 10), (20.0, 20))
    assert pace.left(25.0) == pytest.approx(975)
    # would catch: a part that hangs for an hour, and an end that comes nearer meanwhile
    assert pace.left(3600.0) == pytest.approx(970)


def test_marks_do_not_pile_up() -> None:
    pace = Pace(3)
    for part in range(10_000):
        pace.tell(part, 0, 10_000, float(part))
    assert len(pace.marks) < 10
    assert pace.rate == pytest.approx(1.0)


def test_the_end() -> None:
    pace = told(Pace(), (0.0, 0), (10.0, 10), rows=10)
    pace.failed = 2
    assert pace.words(11.0) == "10 of 10 texts, 2 failed, 1 a second"


def test_a_long_part_is_not_silent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # would catch: lines at the end of parts alone, of which the first may take minutes
    monkeypatch.setattr("whence.cli.running.FIRST_LINE", 0.01)
    with pace_shown(1) as tell:
        tell(0, 0, 79)
        said = ""
        deadline = time.monotonic() + 30
        while "0 of 79 texts" not in said and time.monotonic() < deadline:
            time.sleep(0.01)
            said += capsys.readouterr().err
    assert "whence: 0 of 79 texts" in said


def test_a_short_run_says_nothing_of_its_pace(capsys: pytest.CaptureFixture[str]) -> None:
    with pace_shown(1) as tell:
        tell(0, 0, 2)
        tell(2, 0, 2)
    assert capsys.readouterr().err == ""


def test_any_work_into_a_file_says_where_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Would catch: `whence planted > table.txt`, which said nothing for its whole minute."""
    monkeypatch.setattr("whence.cli.running.FIRST_LINE", 0.01)
    with progress("planted") as say:
        say("keyword: 32 of 112 passes")
        said = ""
        deadline = time.monotonic() + 30
        while "passes" not in said and time.monotonic() < deadline:
            time.sleep(0.01)
            said += capsys.readouterr().err
    assert "whence: planted: keyword: 32 of 112 passes …" in said


def test_short_work_into_a_file_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("planted") as say:
        say("keyword")
    assert capsys.readouterr().err == ""
