from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

import whence
from tests.families import build
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


def begun(command: list[str], out: Path) -> subprocess.Popen[str]:
    """A command in a session of its own, that has written at least one part."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + PATIENCE
    while not list(out.glob("parts/*.parquet")) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    return process


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
