"""The installed program, in its own process: what it imports, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ("torch", "transformers", "numpy", "rich", "tokenizers")
LOOK = """
import sys
from whence.cli.main import main
code = main(sys.argv[1:])
import json
print(json.dumps([m for m in {heavy!r} if m in sys.modules]), file=sys.stderr)
sys.exit(code)
"""


def process(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=600,  # a process that hangs; a busy machine needs seconds
        check=False,
        **options,
    )


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("explain", "--help"), ()])
def test_help_imports_nothing_heavy(arguments):
    done = process("-c", LOOK.format(heavy=HEAVY), *arguments)
    assert done.returncode == 0
    assert json.loads(done.stderr) == []
    assert "whence" in done.stdout


COUNT = """
import sys
before = len(sys.modules)
{what}
print(len(sys.modules) - before, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("what", "most"),
    [
        ("import whence", 60),
        ("from whence.cli.main import main; main(['--help'])", 280),
    ],
)
def test_help_and_import_read_few_modules(what, most):
    """Twice what they read today; numpy would be a hundred more. ``bench`` has the seconds."""
    done = process("-c", COUNT.format(what=what))
    assert done.returncode == 0
    assert int(done.stderr) <= most


def test_the_module_ends_with_the_same_code_as_the_program() -> None:
    # a mistake that is found before torch is read
    ended = process("-m", "whence", "predict", "not bad", "--file", "texts.txt")
    assert ended.returncode == 2
    assert ended.stderr.startswith("whence: ")


@pytest.mark.slow  # a process that reads torch
def test_a_reader_that_leaves_early(folder, tmp_path):
    file = tmp_path / "many.txt"
    file.write_text("not bad\n" * 60)
    command = [
        sys.executable,
        "-m",
        "whence.cli.main",
        "explain",
        "--file",
        str(file),
        "--model",
        str(folder),
        "--method",
        "random",
        "--no-evidence",
        "--json",
    ]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert running.stderr is not None
    assert running.stdout.readline().startswith('{"schema"')  # plain: no terminal, no colour
    running.stdout.close()
    assert running.stderr.read() == ""  # nor bars and warnings of transformers
    running.stderr.close()
    assert running.wait(600) in (0, 141)
