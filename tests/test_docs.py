"""What README and docs say is true.

Examples run, commands work, links lead somewhere, every method and every metric has its page.
"""

from __future__ import annotations

import io
import re
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

import whence
from tests.choices import at_once
from tests.reader import FENCE, REVIEWS, ROOT, Block, blocks, commands, run_example, try_out
from whence.core import registry
from whence.core.registry.needs import LOOKS_AT
from whence.models import load as loading
from whence.notebook.book import Notebook

load_once = cache(loading.load)

DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    *(p for p in sorted(DOCS.rglob("*.md")) if "site" not in p.relative_to(DOCS).parts),
]
# what is registered, and the folder of its pages
REGISTERED = [("methods", info) for info in registry.methods().values()]
REGISTERED += [("metrics", info) for info in registry.metrics().values()]
every_citizen = pytest.mark.parametrize(
    ("folder", "info"), REGISTERED, ids=[info.name for _, info in REGISTERED]
)
# what a new user tries first, in `make test`; `make test-all` tries every page
FIRST_READ = [ROOT / "README.md", DOCS / "getting-started.md", DOCS / "write-your-own-method.md"]
# a tutorial is one story: its files, examples and commands work together, in one folder
TUTORIALS = [p for p in sorted((DOCS / "tutorials").glob("*.md")) if p.stem != "index"]
# what each story ends in, and words that stand in the file
PROMISED = {
    "engineer": {"report.html": "rude", "report.json": '"kind": "many"'},
    "researcher": {
        "report.html": "word list",
        "table.tex": r"\begin{tabular}",
        "scores.csv": "word list",
        "agreement.pdf": "",
    },
    "teacher": {"attention.html": "moment", "exercises.md": "1. ", "answers.html": "rude"},
}
PROSE = [*PAGES, *(ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
SECTIONS = ("Formula", "Cost", "When it misleads", "Example", "Reference")
# examples of what a reader has and a test does not: another model, the tests' own folder, a
# cluster, a bucket
MOST_UNRUN = 4
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
LOCAL_HOST = re.compile(
    r"localhost|127\.|0\.0\.0\.0|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|\[?::1"
    r"|.*\.(local|internal|lan)$"
)


def shown_by(block: Block) -> list[str]:
    """What a reader sees: the other lines, without comments."""
    if block.language == "bash":
        return []
    return [line for line in block.code.splitlines() if not line.startswith(("$ ", "# "))]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def with_any(language: tuple[str, ...]) -> list[Path]:
    return [p for p in PAGES if p not in TUTORIALS and list(blocks(p, *language))]


@pytest.mark.parametrize("page", at_once(with_any(("python",)), FIRST_READ), ids=named)
def test_the_examples_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # a page may register a method or a metric of its own
    monkeypatch.setattr(registry.METHODS, "entries", dict(registry.methods()))
    monkeypatch.setattr(registry.METRICS, "entries", dict(registry.metrics()))
    space: dict[str, Any] = {"__name__": "example"}
    for block in blocks(page, "python"):
        run_example(page, block, space)


def test_few_examples_are_not_run() -> None:
    unrun = []
    for page in PAGES:
        every = blocks(page, "python", "console", "bash")
        skipped = [b for b in every if not b.runs and b.quotes is None]
        unrun += [f"{named(page)}:{block.line}" for block in skipped]
    assert len(unrun) <= MOST_UNRUN, unrun


@pytest.mark.parametrize("page", with_any(("python",)), ids=named)
def test_a_file_that_a_page_shows_is_that_file(page: Path) -> None:
    for block in blocks(page, "python"):
        if block.quotes is not None:
            assert block.code == (ROOT / block.quotes).read_text(encoding="utf-8"), block.quotes


@pytest.mark.parametrize("page", at_once(with_any(("console", "bash")), FIRST_READ[1:]), ids=named)
def test_the_commands_of_a_page_work(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("reviews.csv").write_text(REVIEWS, encoding="utf-8")
    # a model is read for the first command that names it: a command leaves it as it was
    monkeypatch.setattr(loading, "load", load_once)
    for block in blocks(page, "console", "bash"):
        if block.runs:
            assert_was_printed(shown_by(block), type_in(block, monkeypatch))


def test_every_tutorial_promises_a_file() -> None:
    assert {page.stem for page in TUTORIALS} == set(PROMISED)
    for page in TUTORIALS:
        text = page.read_text(encoding="utf-8")
        assert all(f"`{file}`" in text for file in PROMISED[page.stem])


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS, ids=named)
def test_a_tutorial_works_and_leaves_what_it_promises(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From top to bottom, in one folder. What the page shows as output must have been printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    space: dict[str, Any] = {"__name__": "story"}
    printed = ""
    for block in blocks(page, "text", "python", "console"):
        if block.quotes is not None:
            Path(block.quotes).write_text(block.code, encoding="utf-8")
        elif block.language == "python":
            printed = run_example(page, block, space)
        elif block.language == "text":
            assert_was_printed(block.code.splitlines(), printed)
        else:
            printed = type_in(block, monkeypatch)
            assert_was_printed(shown_by(block), printed)
    for file, words in PROMISED[page.stem].items():
        assert words.encode() in Path(file).read_bytes(), file


def type_in(block: Block, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the commands of a block, and return what they print."""
    # a lab takes minutes, and runs in a test of its own: here only what is typed is tried
    monkeypatch.setattr("whence.labs.running.lab", lambda name, **_: Notebook(name))
    printed = io.StringIO()
    for command in commands(block):
        assert try_out(command, printed) == 0, command
    return printed.getvalue()


def assert_was_printed(shown: list[str], printed: str) -> None:
    """Line by line and in order; ``…`` leaves lines out. The last digits depend on the machine."""
    rest = [like(line) for line in printed.splitlines()]
    for line in shown:
        if line.strip() == "…" or not line.strip():
            continue
        assert like(line) in rest, f"not printed: {line}\n\n{printed}"
        rest = rest[rest.index(like(line)) + 1 :]


def like(line: str) -> str:
    """A line without its numbers and its spaces' widths."""
    return re.sub(r"\d[\d.,]*|\.\d+", "0", " ".join(line.split()))


@pytest.mark.parametrize("folder", ["methods", "metrics"])
def test_every_citizen_has_its_page_and_every_page_its_citizen(folder: str) -> None:
    pages = {page.stem for page in (DOCS / folder).glob("*.md")} - {"index"}
    assert pages == {info.name for place, info in REGISTERED if place == folder}


@every_citizen
def test_its_page_is_whole(folder: str, info: Any) -> None:
    page = DOCS / folder / f"{info.name}.md"
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# {info.name}\n")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == list(SECTIONS)
    assert f"\n::: {info.settings.__module__}.{info.settings.__name__}\n" in text
    assert any(f'"{info.name}"' in block.code for block in blocks(page, "python"))


@every_citizen
def test_its_page_has_the_full_reference(folder: str, info: Any) -> None:
    if not info.cites:
        return
    references = (DOCS / "references.md").read_text(encoding="utf-8")
    entry = references.split(f"`{info.cites}`\n:")[1].split("\n\n")[0]
    title = " ".join(entry.split("*")[1].split())
    page = (DOCS / folder / f"{info.name}.md").read_text(encoding="utf-8")
    assert f"*{title}*" in " ".join(page.split())


def test_every_cited_paper_is_listed() -> None:
    references = (DOCS / "references.md").read_text(encoding="utf-8")
    listed = re.findall(r"^`(\w+)`$", references, re.MULTILINE)
    assert {info.cites for _, info in REGISTERED if info.cites} <= set(listed)
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("folder", ["methods", "metrics"])
def test_the_tables_are_made_and_whole(folder: str) -> None:
    """mkdocs calls the hook for every page; the page says where its table goes."""
    spec = spec_from_file_location("tables", DOCS / "assets" / "tables.py")
    assert spec is not None
    assert spec.loader is not None
    tables = module_from_spec(spec)
    spec.loader.exec_module(tables)
    page = (DOCS / folder / "index.md").read_text(encoding="utf-8")
    assert f"<!-- table of {folder} -->" in page
    made = tables.on_page_markdown(page)
    rows = re.findall(r"^\| \[([\w-]+)\]\(([\w-]+)\.md\) \|.*$", made, re.MULTILINE)
    names = [info.name for place, info in REGISTERED if place == folder]
    assert rows == [(name, name) for name in names]
    # every need of a method has words
    offered = set(registry.Needs) - set(registry.OF_METRICS)
    assert set(LOOKS_AT) == offered


def test_the_page_of_a_method_gets_its_settings_before_its_cost() -> None:
    spec = spec_from_file_location("tables", DOCS / "assets" / "tables.py")
    assert spec is not None
    assert spec.loader is not None
    tables = module_from_spec(spec)
    spec.loader.exec_module(tables)
    text = (DOCS / "methods" / "lime.md").read_text(encoding="utf-8")
    page = SimpleNamespace(file=SimpleNamespace(src_uri="methods/lime.md"))
    made = tables.on_page_markdown(text, page=page)
    assert made.index("## Formula") < made.index("## Settings") < made.index("## Cost")
    for setting in whence.list_methods()[list(registry.methods()).index("lime")].settings:
        assert f"| `{setting.name}` | `{setting.default}` |" in made
        assert setting.about in made


def test_the_readme_names_methods_that_exist() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    row = re.compile(r"^\| \[`([\w-]+)`\]\(docs/methods/([\w-]+)\.md\) \|", re.MULTILINE)
    rows = row.findall(readme)
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
        if address.startswith("s3://"):
            continue  # the name of a bucket, and no host
        host = urlsplit(address).hostname or ""
        assert "." in host, address
        assert not LOCAL_HOST.match(host), address


def test_the_changelog_and_the_readme_know_the_version() -> None:
    assert f"## [{whence.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_readme_begins_with_the_two_commands() -> None:
    block = next(blocks(ROOT / "README.md", "console", "bash"))
    first, second = commands(block)[:2]
    assert (first, second) == ("make demo", "make test")
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 130
