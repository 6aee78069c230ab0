"""Workers that die: their part is done again, and a text that kills becomes a failure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runs.deadly_run import prepared
from tests.runs.deadly_worker import WRITTEN_BEFORE_DEATH, Deadly
from whence.core.errors import InputError, ModelError
from whence.runs.data import Row
from whence.runs.engines import processes as engine
from whence.runs.engines.making import Maker, steps
from whence.runs.engines.pool import Order
from whence.runs.kept_rows import KeptRows, keep_rows
from whence.runs.manifest import read_manifest
from whence.runs.parts import read_part
from whence.runs.places import Place, place_of
from whence.runs.work import found


@pytest.fixture(autouse=True)
def _deadly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "WORKER", "tests.runs.deadly_worker")
    monkeypatch.setenv("PYTHONPATH", ".", prepend=":")


def done(place: Place, parts: int) -> list[dict[str, Any]]:
    by_number = {}
    for part in engine.processes(place, range(parts), 2, lambda: False):
        by_number[part.number] = part
    records = []
    for number in range(parts):
        records += read_part(place, by_number[number]).to_pylist()
    return records


def test_all_parts_are_done_by_all_workers(tmp_path: Path) -> None:
    place = prepared(tmp_path, [f"text {number}" for number in range(10)])
    records = done(place, 4)
    assert [record["row"] for record in records] == list(range(10))
    assert not any(record["failure"] for record in records)


def test_a_text_that_kills_is_a_failure_and_its_neighbours_are_not(tmp_path: Path) -> None:
    texts = ["a", "b", "c", "d", "die", "die"]
    records = done(prepared(tmp_path, texts), 2)
    died = [record["row"] for record in records if record["failure"]]
    assert died == [4, 5]
    assert "died" in records[4]["failure"]["message"]
    # the neighbours are done together, as in a part that nothing has killed
    assert {record["beside"] for record in records} == {3}


def test_texts_that_kill_only_together_are_done_apart(tmp_path: Path) -> None:
    records = done(prepared(tmp_path, ["a", "die together", "b"]), 1)
    assert not any(record["failure"] for record in records)
    assert {record["beside"] for record in records} == {1}


def test_a_part_that_its_worker_wrote_before_it_died_is_not_made_again(tmp_path: Path) -> None:
    # would catch: two files of one part, whose seconds differ
    records = done(prepared(tmp_path, [f"unheard {tmp_path}"]), 1)
    assert [record["beside"] for record in records] == [WRITTEN_BEFORE_DEATH]
    assert len(list((tmp_path / "parts").iterdir())) == 1


def test_a_damaged_part_that_a_lost_worker_left_is_made_again(tmp_path: Path) -> None:
    place = prepared(tmp_path, ["a"])
    (part,) = engine.processes(place, [0], 1, lambda: False)
    file = tmp_path / part.name
    whole = file.read_bytes()
    file.write_bytes(whole[:-9] + b"x" + whole[-8:])
    maker = Maker(place, read_manifest(place), Deadly(), KeptRows(place))
    assert list(steps(maker, Order(0, again=True))) == [part]
    assert file.read_bytes() == whole


def test_workers_that_never_live_are_given_up(tmp_path: Path) -> None:
    place = prepared(tmp_path, ["a"], stillborn=True)
    with pytest.raises(ModelError, match="before they did anything"):
        done(place, 1)


def test_a_bug_in_the_work_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unexpected RuntimeError: a bug in the work"):
        done(prepared(tmp_path, ["raise"]), 1)


def test_no_part_is_begun_after_a_stop(tmp_path: Path) -> None:
    place = prepared(tmp_path, [f"text {number}" for number in range(30)])
    seen: list[int] = []
    for part in engine.processes(place, range(10), 2, lambda: bool(seen)):
        seen.append(part.number)
    assert 1 <= len(seen) <= 2


def test_works_are_found_in_whence_alone() -> None:
    with pytest.raises(OSError, match="no part of whence"):
        found("os:system")


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    rows = [
        Row(0, "plain", id="0"),
        Row(7, "with\nlines", pair="=second", label="1", id="seven"),
        Row(9, "", pair=("a", "b"), id="", problem="broken"),
        Row(10, "[1]", pair='["no", "list"]', id="10"),
        Row(11, "not good", id="11", rationale=((0, 3), (4, 8))),
        Row(12, "nothing marked", id="12", rationale=()),
    ]
    place = place_of(tmp_path)
    assert list(keep_rows(place, rows)) == rows
    assert KeptRows(place)[range(6)] == rows
    assert KeptRows(place)[range(1, 3)] == rows[1:3]
