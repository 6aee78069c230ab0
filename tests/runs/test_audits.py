"""whence audit in several processes, and ended by Ctrl-C: the verdict is the same."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import whence
from tests.runs.conftest import TEXTS, done, until_a_part_is_written
from tests.runs.warm import Parent

FILES = ("effects.csv", "audit.json", "audit.html")
PARTS = 5


def arguments(data: Path, model: Path, out: Path, *more: str) -> list[str]:
    return [
        *("audit", "--data", str(data), "--model", str(model), "--out", str(out)),
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
    warm: Parent, data: Path, folder: Path, tmp_path: Path
) -> None:
    alone = tmp_path / "alone"
    done(arguments(data, folder, alone), 0)

    ended = tmp_path / "ended"
    process = warm.begin(arguments(data, folder, ended, "--workers", "2"))
    until_a_part_is_written(process, ended)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does it
    printed, complaints = process.communicate()
    assert process.returncode == 130, complaints
    assert "The same command goes on from here." in printed
    assert 0 < len(whence.open_run(ended).parts) < PARTS
    process = warm.begin(arguments(data, folder, ended))
    _, complaints = process.communicate()
    assert process.returncode == 0, complaints
    check_same(ended, alone)
