"""The program `whence` in processes that begin at once: forks of one that has read torch already.

A new process reads torch and transformers for seven seconds before it does anything. Tests that
kill and continue a command start it some thirty times. A fork is a process as any other: it has its
own number, session and files, and is killed as any other. What it does not show is that the
program can be started, which is why the undisturbed commands are typed in full.

The parent runs no model: it would hand its state, and the threads that it lost, to every fork.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[2]
PATIENCE = 300.0  # seconds, on a machine that others use too


@dataclass
class Parent:
    """The process that forks: it does what one line says, and answers with one line.

    What its forks print goes to files of ``folder``.
    """

    folder: Path
    process: subprocess.Popen[str] = field(
        default_factory=lambda: subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.runs.warm"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    )

    def ask(self, **asked: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(asked), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def begin(self, arguments: list[str]) -> Command:
        """The program with these arguments, in a session of its own."""
        place = Path(tempfile.mkdtemp(dir=self.folder))
        pid = self.ask(
            arguments=arguments,
            place=str(place),
            environment=dict(os.environ),
            folder=os.getcwd(),
        )
        return Command(self, pid, place)

    def end(self) -> None:
        self.process.communicate(timeout=PATIENCE)


@dataclass
class Command:
    """A fork that runs the program; to be used as a process of ``subprocess`` is."""

    parent: Parent
    pid: int
    place: Path
    returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self.parent.ask(pid=self.pid)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float = PATIENCE) -> int:
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        return code

    def communicate(self, timeout: float = PATIENCE) -> tuple[str, str]:
        """What it printed and what it complained of, when it has ended."""
        self.wait(timeout)
        return (self.place / "stdout").read_text(), (self.place / "stderr").read_text()


# ---------------------------------------------------------------------- the other side


def serve() -> None:
    """Fork, or tell how a fork has ended, line by line."""
    _read_libraries()
    for line in sys.stdin:
        asked = json.loads(line)
        if "pid" in asked:
            answer = _ended(asked["pid"])
        else:
            answer = os.fork()
            if answer == 0:
                _become(**asked)
        print(json.dumps(answer), flush=True)


def _read_libraries() -> None:
    """What the commands import when they need it."""
    import importlib

    for name in (
        "pyarrow.parquet",
        "scipy.stats",
        "transformers.models.bert.modeling_bert",
        "transformers.models.bert.tokenization_bert",
        "whence.cli.main",
        "whence.explaining.audit",
        "whence.explaining.evaluate",
        "whence.explaining.questions",
        "whence.explaining.run",
        "whence.models.load",
    ):
        importlib.import_module(name)


def _ended(pid: int) -> int | None:
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _become(arguments: list[str], place: str, environment: dict[str, str], folder: str) -> NoReturn:
    """This fork becomes the program, as if it had been typed."""
    from whence.cli.main import main

    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, name, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, f"{place}/stdout", os.O_WRONLY | os.O_CREAT),
        (2, f"{place}/stderr", os.O_WRONLY | os.O_CREAT),
    ):
        os.dup2(os.open(name, flags), number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["whence", *arguments]
    sys.exit(main(arguments))


if __name__ == "__main__":
    serve()
