"""whence audit in several processes, and ended by Ctrl-C: the verdict is the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import whence
from tests.runs.conftest import PATIENCE, TEXTS, begun

FILES = ("effects.csv", "audit.json", "audit.html")
PARTS = 5


def command(data: Path, model: Path, out: Path, *more: str) -> list[str]:
    return [
        *(sys.executable, "-W", "ignore", "-m", "whence.cli.main", "audit"),
        *("--data", str(data), "--model", str(model), "--out", str(out)),
        *("--set", "permutation.permutations=3", "--set", "permutation.of_heads=1"),
        *("--set", "adversary.steps=2", "--rankings", "4", "--part", "2", *more),
    ]


def check_same(out: Path, other: Path) -> None:
    for name in FILES:
        assert (out / name).read_bytes() == (other / name).read_bytes()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("data") / "texts.txt"
    file.write_text("".join(f"{text}\n" for text in (TEXTS * 2)[: 2 * PARTS]))
    return file


@pytest.mark.slow
def test_two_processes_that_were_ended_and_one_that_goes_on_say_what_one_says(
    data: Path, folder: Path, tmp_path: Path
) -> None:
    alone = tmp_path / "alone"
    subprocess.run(command(data, folder, alone), check=True, capture_output=True)

    ended = tmp_path / "ended"
    process = begun(command(data, folder, ended, "--workers", "2"), ended)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does it
    printed, complaints = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, complaints
    assert "The same command goes on from here." in printed
    assert 0 < len(whence.open_run(ended).parts) < PARTS
    subprocess.run(command(data, folder, ended), check=True, capture_output=True)
    check_same(ended, alone)
