"""The real command, ended at any moment: nothing is lost, and the end is the same."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

import whence
from tests.runs.conftest import TEXTS, done, until_a_part_is_written
from tests.runs.test_run import everything
from tests.runs.warm import Parent
from whence.runs.engines.pool import DEATHS

METHODS = "gradient-x-input,lime,occlusion"
CODE_OF_FAILURES = 3


def arguments(data: Path, folder: Path, out: Path, *more: str) -> list[str]:
    return [
        *("run", str(data), "--model", str(folder), "--methods", METHODS, "--out", str(out)),
        *("--part", "3", "--rankings", "39", "--steps", "2", *more),
    ]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("data") / "texts.txt"
    lines = [f"{text} {word}" for word in ("food", "prices", "service") for text in TEXTS]
    lines[4] = "the " * 100  # over the model's limit: a failure
    file.write_text("\n".join(lines) + "\n")
    return file


def continued(
    warm: Parent, data: Path, folder: Path, out: Path, *more: str
) -> list[dict[str, object]]:
    """What is there when the same command has gone on to the end."""
    process = warm.begin(arguments(data, folder, out, *more))
    _, complaints = process.communicate()
    assert process.returncode == CODE_OF_FAILURES, complaints
    return everything(whence.open_run(out))


@pytest.fixture(scope="module")
def undisturbed(
    data: Path, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, object]]:
    """By the program as it is typed, and by nothing that is warm."""
    out = tmp_path_factory.mktemp("whole") / "run"
    done(arguments(data, folder, out), CODE_OF_FAILURES)
    return everything(whence.open_run(out))


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "kills"), [(1, 5), (2, 2)])
def test_killed_at_many_moments_it_ends_as_if_never_disturbed(
    warm: Parent,
    data: Path,
    folder: Path,
    undisturbed: list[dict[str, object]],
    tmp_path: Path,
    workers: int,
    kills: int,
) -> None:
    out = tmp_path / "killed"
    more = ("--workers", str(workers))
    moments = random.Random(workers)
    for _ in range(kills):
        started = time.monotonic()
        process = warm.begin(arguments(data, folder, out, *more))
        # most of the time goes by before the first part: so most moments lie behind that
        patience = moments.uniform(0.0, 1.5)
        before = len(list(out.glob("parts/*")))
        while process.poll() is None and time.monotonic() - started < 120:
            if len(list(out.glob("parts/*"))) > before:
                break
            time.sleep(0.01)
        time.sleep(patience * moments.random())
        process.kill()
        process.wait()
        if (out / "run.json").exists() and whence.open_run(out).is_complete:
            # from here on there is nothing left to disturb: take some parts away again
            for file in sorted(out.glob("parts/*.parquet"))[::2]:
                file.unlink()

    assert continued(warm, data, folder, out, *more) == undisturbed
    assert len(list(out.glob("parts/*"))) == 7  # and no second copy of any part


@pytest.mark.slow
def test_a_kill_before_the_first_part_loses_nothing(
    warm: Parent,
    data: Path,
    folder: Path,
    undisturbed: list[dict[str, object]],
    tmp_path: Path,
) -> None:
    out = tmp_path / "run"
    process = warm.begin(arguments(data, folder, out))
    while not (out / "rows").exists() and process.poll() is None:
        time.sleep(0.002)
    process.kill()
    process.wait()
    assert continued(warm, data, folder, out) == undisturbed


@pytest.mark.slow
def test_ctrl_c_stops_after_the_part_at_hand(
    warm: Parent,
    data: Path,
    folder: Path,
    undisturbed: list[dict[str, object]],
    tmp_path: Path,
) -> None:
    out = tmp_path / "run"
    process = warm.begin(arguments(data, folder, out))
    until_a_part_is_written(process, out)
    process.send_signal(signal.SIGINT)
    printed, complaints = process.communicate()
    assert process.returncode == 130, complaints
    assert "stopping after the part at hand" in complaints
    assert "The same command goes on from here." in printed
    run = whence.open_run(out)
    assert 0 < len(run.parts) < run.manifest.parts
    assert continued(warm, data, folder, out) == undisturbed


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced(
    warm: Parent,
    data: Path,
    folder: Path,
    undisturbed: list[dict[str, object]],
    tmp_path: Path,
) -> None:
    out = tmp_path / "run"
    process = warm.begin(arguments(data, folder, out, "--workers", "2"))
    killed = 0
    deadline = time.monotonic() + 300
    # a third one may meet the same part again, and by the rule a text of it is then blamed
    while process.poll() is None and killed < DEATHS and time.monotonic() < deadline:
        if len(list(out.glob("parts/*.parquet"))) > killed:
            for worker in _children(process.pid):
                os.kill(worker, signal.SIGKILL)
                break
            killed += 1
        time.sleep(0.01)
    _, complaints = process.communicate()
    assert killed
    assert process.returncode == CODE_OF_FAILURES, complaints
    assert everything(whence.open_run(out)) == undisturbed


def _children(parent: int) -> list[int]:
    listed = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(child) for child in listed]
