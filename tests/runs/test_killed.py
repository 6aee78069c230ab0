"""The real command, ended at any moment: nothing is lost, and the end is the same."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import whence
from tests.runs.conftest import TEXTS
from tests.runs.test_run import everything
from whence.runs.engines.pool import DEATHS

METHODS = "gradient-x-input,lime,occlusion"
CODE_OF_FAILURES = 3


def command(data: Path, folder: Path, out: Path, *more: str) -> list[str]:
    return [
        *(sys.executable, "-W", "ignore", "-m", "whence.cli.main", "run", str(data)),
        *("--model", str(folder), "--methods", METHODS, "--out", str(out)),
        *("--part", "3", "--rankings", "39", "--steps", "2", *more),
    ]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("data") / "texts.txt"
    lines = [f"{text} {word}" for word in ("food", "prices", "service") for text in TEXTS]
    lines[4] = "the " * 100  # over the model's limit: a failure
    file.write_text("\n".join(lines) + "\n")
    return file


def whole(data: Path, folder: Path, out: Path) -> list[dict[str, object]]:
    done = subprocess.run(command(data, folder, out), capture_output=True, text=True)
    assert done.returncode == CODE_OF_FAILURES, done.stderr
    return everything(whence.open_run(out))


@pytest.fixture(scope="module")
def undisturbed(
    data: Path, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, object]]:
    return whole(data, folder, tmp_path_factory.mktemp("whole") / "run")


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "kills"), [(1, 5), (2, 2)])
def test_killed_at_many_moments_it_ends_as_if_never_disturbed(
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
        process = subprocess.Popen(
            command(data, folder, out, *more), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
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

    done = subprocess.run(command(data, folder, out, *more), capture_output=True, text=True)
    assert done.returncode == CODE_OF_FAILURES, done.stderr
    assert everything(whence.open_run(out)) == undisturbed
    assert len(list(out.glob("parts/*"))) == 7  # and no second copy of any part


@pytest.mark.slow
def test_a_kill_before_the_first_part_loses_nothing(
    data: Path, folder: Path, undisturbed: list[dict[str, object]], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    process = subprocess.Popen(command(data, folder, out), stderr=subprocess.DEVNULL)
    while not (out / "rows").exists() and process.poll() is None:
        time.sleep(0.002)
    process.kill()
    process.wait()
    assert whole(data, folder, out) == undisturbed


@pytest.mark.slow
def test_ctrl_c_stops_after_the_part_at_hand(
    data: Path, folder: Path, undisturbed: list[dict[str, object]], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    process = subprocess.Popen(
        command(data, folder, out), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not list(out.glob("parts/*.parquet")) and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    printed, complaints = process.communicate(timeout=300)
    assert process.returncode == 130, complaints
    assert "stopping after the part at hand" in complaints
    assert "The same command goes on from here." in printed
    run = whence.open_run(out)
    assert 0 < len(run.parts) < run.manifest.parts
    assert whole(data, folder, out) == undisturbed


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced(
    data: Path, folder: Path, undisturbed: list[dict[str, object]], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    process = subprocess.Popen(
        command(data, folder, out, "--workers", "2"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
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
    _, complaints = process.communicate(timeout=300)
    assert killed
    assert process.returncode == CODE_OF_FAILURES, complaints
    assert everything(whence.open_run(out)) == undisturbed


def _children(parent: int) -> list[int]:
    listed = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(child) for child in listed]
