"""whence evaluate in one process or two, and ended at any moment: the table is the same.

That Ray does what two processes do is tested for `whence run`: engines do not know the work.
"""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import whence
from tests.runs.conftest import TEXTS, done, until_a_part_is_written
from tests.runs.warm import Command, Parent

CODE_OF_FAILURES = 3
PARTS = 7
TABLES = ("table.csv", "table.tex", "table.html")


@dataclass(frozen=True)
class Asked:
    """One evaluation, of which only the engine and the place are left to say."""

    data: Path
    model: Path

    def arguments(self, out: Path, *more: str) -> list[str]:
        """As they are typed: metrics of all four groups, and methods that draw by lot."""
        return [
            *("evaluate", "--data", str(self.data), "--model", str(self.model)),
            *("--methods", "gradient-l2,occlusion,random", "--rationale", "why"),
            *("--metrics", "comprehensiveness,auprc,consistency,robustness,compactness"),
            *("--set", "consistency.seeds=1", "--set", "robustness.neighbours=1"),
            *("--rankings", "4", "--planted", "0", "--part", "2", "--out", str(out), *more),
        ]

    def begun(self, warm: Parent, out: Path, *more: str) -> Command:
        """A process that has written at least one part."""
        process = warm.begin(self.arguments(out, *more))
        until_a_part_is_written(process, out)
        return process

    def continued(self, warm: Parent, out: Path, *more: str) -> tuple[str, str]:
        """What the same command says when it goes on to the end."""
        process = warm.begin(self.arguments(out, *more))
        printed, complaints = process.communicate()
        assert process.returncode == CODE_OF_FAILURES, complaints
        return printed, complaints


@pytest.fixture(scope="module")
def asked(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    file = tmp_path_factory.mktemp("data") / "texts.jsonl"
    texts = [f"{text} {word}" for word in ("food", "prices") for text in TEXTS]
    texts[4] = "the " * 100  # over the model's limit: a failure
    rows = [{"text": text, "why": [text.split()[-1]]} for text in texts]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Asked(file, folder)


@pytest.fixture(scope="module")
def undisturbed(asked: Asked, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of one typed command that nobody disturbed, and what it printed."""
    out = tmp_path_factory.mktemp("inline") / "run"
    return out, done(asked.arguments(out), CODE_OF_FAILURES).stdout


def records(out: Path) -> list[dict[str, Any]]:
    return list(whence.open_run(out).records())


def check_same(out: Path, printed: str, undisturbed: tuple[Path, str]) -> None:
    """All values of all texts, every file, and what is printed; no part is there twice."""
    folder, expected = undisturbed
    assert records(out) == records(folder)
    for name in TABLES:
        assert (out / name).read_bytes() == (folder / name).read_bytes()
    assert printed == expected
    assert len(list((out / "parts").iterdir())) == PARTS


@pytest.mark.slow
def test_ctrl_c_stops_two_processes_which_then_give_the_table_of_one(
    warm: Parent, asked: Asked, undisturbed: tuple[Path, str], tmp_path: Path
) -> None:
    # would catch: another seed or another batch in a worker, settings of metrics that are lost
    out = tmp_path / "run"
    process = asked.begun(warm, out, "--workers", "2")
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does it
    printed, complaints = process.communicate()
    assert process.returncode == 130, complaints
    assert "stopping after the part at hand" in complaints
    assert printed.endswith("The same command goes on from here.\n")
    parts = len(whence.open_run(out).parts)
    assert 0 < parts < PARTS
    assert f"Not all texts are done: {2 * parts} of {2 * PARTS}." in printed
    printed, complaints = asked.continued(warm, out, "--workers", "2")
    check_same(out, printed, undisturbed)
    assert "%|" not in complaints  # no bars of workers
    values = (out / "table.csv").read_text()
    for metric in ("comprehensiveness", "auprc", "consistency", "robustness", "compactness"):
        assert f"{metric}," in values


@pytest.mark.slow
def test_killed_it_goes_on_and_ends_as_if_never_disturbed(
    warm: Parent, asked: Asked, undisturbed: tuple[Path, str], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    process = asked.begun(warm, out)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not (out / "table.csv").exists()
    shown = warm.begin(["evaluate", "--data", str(out)])
    printed, complaints = shown.communicate()
    assert shown.returncode == 0, complaints
    assert "Not all texts are done: " in printed
    printed, _ = asked.continued(warm, out)
    check_same(out, printed, undisturbed)
