"""A reader of the documentation: what a page tells one to type, and a reader who types it.

It needs nothing but whence and what whence needs, so that it can also read in an environment that
has no more (``tests/test_fresh.py``): ``python -m tests.reader docs/getting-started.md``.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).parent.parent
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r'title="([^"]+)"')
# the data set that pages speak of
REVIEWS = """id,review,label
1,a moving and funny film,positive
2,not bad at all,positive
3,a dull and lifeless film,negative
"""


@dataclass(frozen=True)
class Block:
    """A fenced block. ``quotes`` is the file that it shows, where its title names one."""

    language: str
    runs: bool
    code: str
    line: int
    quotes: str | None


def blocks(page: Path, *languages: str) -> Iterator[Block]:
    """The fenced blocks of a page, in their order."""
    text = page.read_text(encoding="utf-8")
    for fence in FENCE.finditer(text):
        language, rest, code = fence.groups()
        if language not in languages:
            continue
        title = TITLE.search(rest)
        quotes = title.group(1) if title else None
        runs = "no-run" not in rest and quotes is None
        line = text.count("\n", 0, fence.start()) + 2
        yield Block(language, runs, code, line, quotes)


def commands(block: Block) -> list[str]:
    """What a reader types: the lines behind a prompt, or all lines of a block without prompts."""
    lines = block.code.splitlines()
    if block.language == "console":
        return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return [line.partition("  #")[0].strip() for line in lines if line.strip()]


def run_example(page: Path, block: Block, space: dict[str, Any]) -> str:
    """Run a block of Python, unless it says that it is not run, and return what it prints."""
    # as many empty lines in front, so that an error names the line of the page
    code = compile("\n" * (block.line - 1) + block.code, str(page), "exec", dont_inherit=True)
    if not block.runs:
        return ""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        exec(code, space)
    return printed.getvalue()


def split_pipe(words: list[str]) -> list[list[str]]:
    """The commands of a line, at its pipes."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word == "|":
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def try_out(command: str, printed: io.StringIO, complaints: io.StringIO | None = None) -> int:
    """Run a whence command in this process, also ``echo text | whence …``; others must exist."""
    from whence.cli.main import main

    *before, last = (list(part) for part in split_pipe(shlex.split(command)))
    feed = b""
    if before:
        assert before[0][0] == "echo", command
        feed = f"{before[0][1]}\n".encode()
    if last[0] == "make":
        targets = re.findall(
            r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
        )
        return 0 if set(last[1:]) <= set(targets) else 1
    if last[0] != "whence":
        is_known = last[0] in ("pip", "git", "python", ".venv/bin/mkdocs", ".venv/bin/python")
        return 0 if is_known else 1
    with (
        typing_in(feed),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(complaints or io.StringIO()),
    ):
        return main(last[1:])


@contextlib.contextmanager
def typing_in(feed: bytes) -> Iterator[None]:
    """Standard input: what a pipe feeds, or a terminal at which nothing is typed."""
    before = sys.stdin
    sys.stdin = SimpleNamespace(isatty=lambda: not feed, buffer=io.BytesIO(feed))
    try:
        yield
    finally:
        sys.stdin = before


def read_aloud(page: Path) -> int:
    """Type all that a page says, in this folder; what fails is told. The number of failures."""
    Path("reviews.csv").write_text(REVIEWS, encoding="utf-8")
    space: dict[str, Any] = {"__name__": "example"}
    failures = 0
    for block in blocks(page, "text", "python", "console", "bash"):
        if block.quotes is not None:
            Path(block.quotes).write_text(block.code, encoding="utf-8")
        elif block.language == "python":
            run_example(page, block, space)
        elif block.language != "text" and block.runs:
            failures += sum(_fails(command) for command in commands(block))
    return failures


def _fails(command: str) -> bool:
    complaints = io.StringIO()
    code = try_out(command, io.StringIO(), complaints)
    if code:
        print(f"$ {command}\nexit code {code}\n{complaints.getvalue()}", file=sys.stderr)
    return code != 0


if __name__ == "__main__":
    sys.exit(min(1, sum(read_aloud(Path(page).absolute()) for page in sys.argv[1:])))
