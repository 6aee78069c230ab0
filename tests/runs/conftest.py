from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import whence
from tests.families import build
from tests.runs.warm import Command, Parent
from whence.models.model import Model

TEXTS = [
    "the food is great but not the prices",
    "not bad prices",
    "the prices are bad",
    "great food and great prices",
    "the service is not good",
    "a fair price for good food",
    "bad",
]


PATIENCE = 300.0  # seconds, on a machine that others use too


def typed(arguments: list[str]) -> list[str]:
    """The program with these arguments, as a process that has read nothing yet."""
    return [sys.executable, "-W", "ignore", "-m", "whence.cli.main", *arguments]


def done(arguments: list[str], code: int) -> subprocess.CompletedProcess[str]:
    """The program, typed and waited for; it must end with this code."""
    ended = subprocess.run(typed(arguments), capture_output=True, text=True, check=False)
    assert ended.returncode == code, ended.stderr
    return ended


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parent]:
    """What begins the program in a moment, to be disturbed."""
    parent = Parent(tmp_path_factory.mktemp("warm"))
    yield parent
    parent.end()


def until_a_part_is_written(process: Command, out: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not list(out.glob("parts/*.parquet")) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small random BERT on disk."""
    model = build("bert")
    path = tmp_path_factory.mktemp("models") / "bert"
    model.hf.save_pretrained(path)
    model.tokenizer.save_pretrained(path)
    return path


@pytest.fixture(scope="session")
def model(folder: Path) -> Model:
    return whence.load(str(folder))
