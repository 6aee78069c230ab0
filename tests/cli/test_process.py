"""The installed program in its own process: how fast it answers, what it imports, how it ends."""

from __future__ import annotations

import json
import resource
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
        timeout=60,
        check=False,
        **options,
    )


def best_of(count: int, *arguments: str) -> float:
    """Seconds that the process computes for: other work on the machine does not count."""
    times = []
    for _ in range(count):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert process(*arguments).returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("explain", "--help"), ()])
def test_help_imports_nothing_heavy(arguments):
    done = process("-c", LOOK.format(heavy=HEAVY), *arguments)
    assert done.returncode == 0
    assert json.loads(done.stderr) == []
    assert "whence" in done.stdout


def test_help_and_import_are_quick():
    # a busy machine is not the program's fault: the best of several, less what Python itself takes
    bare = best_of(5, "-c", "pass")
    assert best_of(5, "-m", "whence.cli.main", "--help") - bare < 0.3
    assert best_of(5, "-c", "import whence") - bare < 0.1


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
    ]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert running.stderr is not None
    assert running.stdout.readline().startswith("model  ")  # plain: no terminal, no colour
    running.stdout.close()
    assert running.stderr.read() == ""  # nor bars and warnings of transformers
    running.stderr.close()
    assert running.wait(60) in (0, 141)
