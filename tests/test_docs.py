"""What README and docs say is true: examples run, commands work, links lead somewhere, every method has its page."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

import whence
from whence.cli.main import main
from whence.core import registry
from whence.notebook.book import Notebook

ROOT = Path(__file__).parent.parent
METHOD_PAGES = ROOT / "docs" / "methods"
PAGES = [
    ROOT / "README.md",
    *sorted(
        p for p in (ROOT / "docs").rglob("*.md") if "site" not in p.relative_to(ROOT / "docs").parts
    ),
]
PROSE = [*PAGES, *(ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
SECTIONS = ("Formula", "Cost", "When it misleads", "Example", "Reference")
MOST_UNRUN = (
    2  # examples of what a reader has and a test does not: another model, the tests' own folder
)
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
LOCAL_HOST = re.compile(
    r"localhost|127\.|0\.0\.0\.0|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|\[?::1|.*\.(local|internal|lan)$"
)


@dataclass(frozen=True)
class Block:
    language: str
    runs: bool
    code: str
    line: int


def blocks(page: Path, *languages: str) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        language, rest, code = found.groups()
        if language in languages:
            yield Block(
                language, "no-run" not in rest, code, text.count("\n", 0, found.start()) + 2
            )


def commands(page: Path) -> list[str]:
    """What a reader types: the lines behind a prompt, or all lines of a block without prompts."""
    found = []
    for block in blocks(page, "console", "bash"):
        lines = block.code.splitlines()
        typed = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        found += (
            typed
            if block.language == "console"
            else [line.partition("  #")[0].strip() for line in lines if line.strip()]
        )
    return found


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def with_any(language: tuple[str, ...]) -> list[Path]:
    return [p for p in PAGES if list(blocks(p, *language))]


@pytest.mark.parametrize("page", with_any(("python",)), ids=named)
def test_the_examples_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        registry, "_methods", dict(registry.methods())
    )  # a page may register a method of its own
    space: dict[str, Any] = {"__name__": "example"}
    for block in blocks(page, "python"):
        # as many empty lines in front, so that an error names the line of the page
        code = compile("\n" * (block.line - 1) + block.code, str(page), "exec", dont_inherit=True)
        if block.runs:
            with (
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(io.StringIO()),
            ):
                exec(code, space)


def test_few_examples_are_not_run() -> None:
    unrun = [f"{named(p)}:{b.line}" for p in PAGES for b in blocks(p, "python") if not b.runs]
    assert len(unrun) <= MOST_UNRUN, unrun


@pytest.mark.parametrize("page", with_any(("console", "bash")), ids=named)
def test_the_commands_of_a_page_work(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in commands(page):
        assert try_out(command, monkeypatch) == 0, command


def try_out(command: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run a whence command in this process (``echo text | whence …`` too); of others see that they exist."""
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
    if last[:2] == [
        "whence",
        "lab",
    ]:  # takes minutes, and runs in a test of its own: here only what is typed is tried
        monkeypatch.setattr("whence.labs.running.lab", lambda name, **_: Notebook(name))
    if last[0] != "whence":
        return (
            0 if last[0] in ("pip", "git", "python", ".venv/bin/mkdocs", ".venv/bin/python") else 1
        )
    monkeypatch.setattr(
        "sys.stdin", SimpleNamespace(isatty=lambda: not feed, buffer=io.BytesIO(feed))
    )
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return main(last[1:])


def split_pipe(words: list[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for word in words:
        if word == "|":
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def test_every_method_has_its_page_and_every_page_its_method() -> None:
    assert {p.stem for p in METHOD_PAGES.glob("*.md")} - {"index"} == set(registry.methods())


@pytest.mark.parametrize("name", registry.methods())
def test_a_method_page_is_whole(name: str) -> None:
    page = METHOD_PAGES / f"{name}.md"
    text, settings = page.read_text(encoding="utf-8"), registry.methods()[name].settings
    assert text.startswith(f"# {name}\n")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == list(SECTIONS)
    assert f"\n::: {settings.__module__}.{settings.__name__}\n" in text
    assert any(f'"{name}"' in b.code for b in blocks(page, "python"))


def test_every_cited_paper_is_listed() -> None:
    listed = re.findall(
        r"^`(\w+)`$", (ROOT / "docs" / "references.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {m.cites for m in registry.methods().values() if m.cites} <= set(listed)
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("name", registry.methods())
def test_a_method_page_has_the_full_reference(name: str) -> None:
    key = registry.methods()[name].cites
    if key:
        entry = (
            (ROOT / "docs" / "references.md")
            .read_text(encoding="utf-8")
            .split(f"`{key}`\n:")[1]
            .split("\n\n")[0]
        )
        title = " ".join(entry.split("*")[1].split())
        assert f"*{title}*" in " ".join(
            (METHOD_PAGES / f"{name}.md").read_text(encoding="utf-8").split()
        )


def test_the_readme_names_methods_that_exist() -> None:
    rows = re.findall(
        r"^\| \[`([\w-]+)`\]\(docs/methods/([\w-]+)\.md\) \|",
        (ROOT / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert rows
    assert all(name == page and name in registry.methods() for name, page in rows)


@pytest.mark.parametrize("page", PROSE, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    for link in LINK.findall(prose):
        parts = urlsplit(link)
        if not parts.scheme and parts.path:
            assert (page.parent / parts.path).exists(), link
    for address in re.findall(r"\w+://[^\s)>\"'`]+", page.read_text(encoding="utf-8")):
        host = urlsplit(address).hostname or ""
        assert "." in host, address
        assert not LOCAL_HOST.match(host), address


def test_the_changelog_and_the_readme_know_the_version() -> None:
    assert f"## [{whence.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_readme_begins_with_the_two_commands() -> None:
    first, second = commands(ROOT / "README.md")[:2]
    assert (first, second) == ("make demo", "make test")
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 130
