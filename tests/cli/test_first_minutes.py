"""What a new user meets first: the list of commands, help, and what Tab proposes."""

from __future__ import annotations

import io
import json
import os
import pty
import pydoc
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import whence
from whence.cli import compare, completing, explain, predict, theory
from whence.cli.main import COMMANDS, MENU, main
from whence.core import registry

COMPLETE = """
import json, sys
from whence.cli.main import main
try:
    main([])
finally:
    heavy = [m for m in ("torch", "transformers", "numpy", "rich") if m in sys.modules]
    print(json.dumps(heavy), file=sys.stderr)
"""


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def proposed(typed: str) -> list[str]:
    """What bash proposes behind these words; the last one is not finished."""
    environment = {
        **os.environ,
        "_WHENCE_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split(" ")) - 1),
    }
    ended = subprocess.run(
        [sys.executable, "-c", COMPLETE],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    # a proposal that waits for torch comes too late
    assert json.loads(ended.stderr.splitlines()[-1]) == [], ended.stderr
    return ended.stdout.split()


def test_the_list_of_commands_cuts_no_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = printed(capsys)
    assert "..." not in shown.split("Commands:")[1]
    names = [module.__name__.rpartition(".")[2] for module in COMMANDS]
    for name in [*names, "features"]:
        assert re.search(rf"^  {name} +\S.*\.?$", shown, re.MULTILINE), name
    assert set(MENU) <= {*names, "features"}
    assert 'whence compare "' in shown.split("Begin with:")[1]
    # the whole of it without a pager
    assert len(shown.splitlines()) <= 40


def test_help_is_a_command_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "help") == printed(capsys, "--help")
    assert printed(capsys, "help", "compare") == printed(capsys, "compare", "--help")
    assert printed(capsys, "help", "features", "show") == printed(
        capsys, "features", "show", "--help"
    )


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4000)
    except OSError:  # Linux says so when the other side has gone
        return b""


def test_help_opens_no_pager(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    pager = tmp_path / "pager"
    pager.write_text(f"#!/bin/sh\ntouch {opened}\ncat\n")
    pager.chmod(0o755)
    for name in ("PAGER", "MANPAGER", "GIT_PAGER"):
        monkeypatch.setenv(name, str(pager))
    asked = "from whence.cli.main import main; main(['compare', '--help'])"
    # in a terminal, which is where a pager would open
    ours, theirs = pty.openpty()
    started = subprocess.Popen([sys.executable, "-c", asked], stdout=theirs)
    os.close(theirs)
    assert b"Usage: whence compare" in os.read(ours, 4000)
    while not started.poll() and _read(ours):
        pass
    assert started.wait(timeout=600) == 0
    os.close(ours)
    assert not opened.exists()


@pytest.mark.parametrize("command", [explain, compare, predict, theory], ids=lambda c: c.__name__)
def test_without_a_text_a_command_says_what_to_type(
    command: ModuleType,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = command.__name__.rpartition(".")[2]
    for is_terminal in (True, False):
        stdin = SimpleNamespace(isatty=lambda is_terminal=is_terminal: is_terminal)
        stdin.buffer = io.BytesIO(b"")
        monkeypatch.setattr("sys.stdin", stdin)
        assert main([name]) == 2
        assert command.EXAMPLE in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "proposals"),
    [
        ("whence comp", ["compare"]),
        ("whence explain --method integ", ["integrated-gradients"]),
        ("whence compare --methods lime,occ", ["lime,occlusion"]),
        ("whence evaluate --metrics aop", ["aopc"]),
        ("whence doctor --model sing", ["single-layer"]),
        ("whence methods banz", ["banzhaf"]),
        ("whence metrics compact", ["compactness"]),
        ("whence features show --model transl", ["translator"]),
    ],
)
def test_tab_proposes_commands_methods_metrics_and_models(typed: str, proposals: list[str]) -> None:
    assert proposed(typed) == proposals


def test_what_is_proposed_is_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from whence.models.finding import bundled

    assert completing.method("") == sorted(registry.methods())
    assert completing.metric("") == sorted(registry.metrics())
    # beside the bundled models: folders that hold one
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text("{}")
    (tmp_path / "other").mkdir()
    assert completing.model("") == sorted([*bundled(), "mine"])
    assert completing.model(f"{tmp_path}/m") == [f"{tmp_path}/mine"]
    # what is named already is not proposed again
    assert "lime,lime" not in completing.methods("lime,")


def test_each_shell_gets_its_script() -> None:
    for shell in ("bash", "zsh", "fish"):
        ended = subprocess.run(
            [sys.executable, "-m", "whence"],
            env={**os.environ, "_WHENCE_COMPLETE": f"source_{shell}"},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert "_WHENCE_COMPLETE" in ended.stdout


def test_help_of_the_package_begins_with_an_example() -> None:
    described = pydoc.plain(pydoc.render_doc(whence)).split("DESCRIPTION\n")[1]
    first = next(line.strip() for line in described.splitlines() if line.strip())
    assert first == ">>> import whence"


def test_type_checkers_read_the_package() -> None:
    assert files("whence").joinpath("py.typed").is_file()
