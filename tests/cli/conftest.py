"""The command line in this process: arguments and stdin in; exit code, stdout and stderr out."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.families import build
from whence.cli.main import main
from whence.models import load as loading

FOREVER = 1e6  # seconds
load_once = cache(loading.load)


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def _read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model is read, and looked over, for the first command that names it.

    test_commands.py reads it each time, as a user's command does.
    """
    monkeypatch.setattr(loading, "load", load_once)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small random BERT on disk."""
    model = build("bert")
    path = tmp_path_factory.mktemp("models") / "bert"
    model.hf.save_pretrained(path)
    model.tokenizer.save_pretrained(path)
    return path


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    def call(*arguments: object, stdin: bytes | None = None, tells_cost_from: float = 1e9) -> Run:
        feed = SimpleNamespace(isatty=lambda: stdin is None, buffer=io.BytesIO(stdin or b""))
        monkeypatch.setattr("sys.stdin", feed)
        # a busy machine may be slow: what a run costs is told where a test asks for it
        monkeypatch.setattr("whence.cli.running.WORTH_TELLING", tells_cost_from)
        monkeypatch.setattr("whence.cli.running.FIRST_LINE", FOREVER)
        capfd.readouterr()
        code = main([str(a) for a in arguments])
        out, err = capfd.readouterr()
        return Run(code, out, err)

    return call


@pytest.fixture
def whence(run: Callable[..., Run], folder: Path) -> Callable[..., Run]:
    """The same, with the small model named."""
    return lambda command, *arguments, **more: run(command, *arguments, "--model", folder, **more)
