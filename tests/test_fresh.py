"""What the first pages tell a new user to type works after ``make demo``, and nothing else.

The environment is the one that the tests have, less every package that ``make demo`` does not
bring. Which those are is computed: the extras stand in the Makefile, what they need in
pyproject.toml and in the packages themselves.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.choices import at_once
from tests.reader import ROOT

FIRST_PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "getting-started.md",
    *(p for p in sorted((ROOT / "docs" / "tutorials").glob("*.md")) if p.stem != "index"),
]
# Python reads this file when it starts: what it names cannot be found, as if it were not installed
ABSENT = """
import json, os, sys

absent = set(json.loads(os.environ["ABSENT"]))


class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            return None
        return self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)


sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
"""


def asked_for(requirement: Requirement, extras: set[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": one}) for one in (extras or {""}))


def brought_by_demo() -> set[str]:
    """The distributions that ``make demo`` installs, with all that they need."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = re.search(r"^DEMO_NEEDS := \.\[([\w,]+)\]$", makefile, re.MULTILINE)
    assert named is not None
    assert "-e '$(DEMO_NEEDS)'" in makefile
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = list(project["dependencies"])
    for extra in named.group(1).split(","):
        wanted += project["optional-dependencies"][extra]

    brought: dict[str, set[str]] = {}
    waiting = [Requirement(line) for line in wanted]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        extras = set(requirement.extras)
        if name in brought and extras <= brought[name]:
            continue
        brought[name] = brought.get(name, set()) | extras
        for line in metadata.requires(name) or []:
            needed = Requirement(line)
            if asked_for(needed, brought[name]):
                waiting.append(needed)
    return set(brought)


def absent_without_the_rest() -> list[str]:
    """The modules of what is installed here, and would not be after ``make demo``."""
    brought = brought_by_demo()
    absent = []
    for module, distributions in metadata.packages_distributions().items():
        if not brought & {canonicalize_name(name) for name in distributions}:
            absent.append(module)
    return [module for module in absent if module != "whence"]


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A process that has what ``make demo`` brings, in an empty folder."""
    start = folder / "start"
    start.mkdir()
    (start / "sitecustomize.py").write_text(ABSENT, encoding="utf-8")
    places = [str(start), str(ROOT / "src"), str(ROOT)]
    environment = {
        **os.environ,
        "ABSENT": json.dumps(absent_without_the_rest()),
        "PYTHONPATH": os.pathsep.join(places),
        "COLUMNS": "80",
    }
    typed_in = folder / "typed-in"
    typed_in.mkdir()
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=typed_in,
        env=environment,
        capture_output=True,
        text=True,
        timeout=3000,  # a process that hangs; a busy machine needs minutes
        check=False,
    )


def test_what_make_demo_does_not_bring_cannot_be_imported(tmp_path: Path) -> None:
    """Else the tests below would show nothing."""
    absent = absent_without_the_rest()
    assert {"pytest", "ray", "shap", "captum", "mkdocs"} & set(absent)
    assert not {"torch", "transformers", "pyarrow", "duckdb", "matplotlib", "pandas"} & set(absent)
    tried = (
        "import importlib.util, numpy\n"
        "assert importlib.util.find_spec('pytest') is None\n"
        "import pytest\n"
    )
    ended = python(tmp_path, "-c", tried)
    assert ended.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'pytest'"


@pytest.mark.parametrize(
    "page", at_once(FIRST_PAGES, FIRST_PAGES[:1]), ids=lambda page: str(page.relative_to(ROOT))
)
def test_everything_on_a_first_page_works_after_make_demo(page: Path, tmp_path: Path) -> None:
    ended = python(tmp_path, "-m", "tests.reader", str(page))
    assert ended.returncode == 0, ended.stderr
