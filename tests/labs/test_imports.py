"""Labs use whence as a user would: they import what is public, and nothing from inside."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

import whence
from whence.labs import LABS

# packages whose public names are listed in their own __init__
DOCUMENTED = ("whence", "whence.generation", "whence.notebook", "whence.theory")
FOLDER = Path(whence.__file__).parent / "labs"


def public_names(module: str) -> set[str]:
    packages = {name.removeprefix("whence.") for name in DOCUMENTED if "." in name}
    names = set(import_module(module).__all__)
    if module == "whence":
        names |= packages
    return names


def foreign(source: str) -> list[str]:
    """Whatever a lab takes from whence that is not public."""
    wrong = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
            wrong += [m for m in modules if m.startswith("whence.") and m not in DOCUMENTED]
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = {alias.name for alias in node.names}
            if node.level or not (module == "whence" or module.startswith("whence.")):
                wrong += [f"relative import of {name}" for name in names if node.level]
            elif module in (*DOCUMENTED, "whence.notebook.drawing"):
                wrong += [f"{module}.{name}" for name in names - public_names(module)]
            elif not module.startswith("whence.labs."):
                wrong.append(module)
    return wrong


@pytest.mark.parametrize("name", LABS)
def test_labs_import_public_names_only(name: str) -> None:
    assert foreign((FOLDER / f"{name}.py").read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "line",
    [
        "from whence.core.maps import Axis",
        "import whence.models.load",
        "from whence.views.drawing import ramp",
        "from whence import core",
        "from whence.theory import _units",
        "from whence.theory.exact import exact_lime",
        "from .running import lab",
    ],
)
def test_what_is_inside_is_noticed(line: str) -> None:
    """A check that looks at ``from`` alone, or only at the top of a name, would let these pass."""
    assert foreign(line) != []


@pytest.mark.parametrize("module", DOCUMENTED)
def test_every_public_name_is_there(module: str) -> None:
    package = import_module(module)
    for name in public_names(module):
        assert getattr(package, name) is not None
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        package.nothing  # noqa: B018


def test_no_public_function_has_the_name_of_a_package() -> None:
    """Python would replace one by the other, depending on what was imported first."""
    folder = Path(whence.__file__).parent
    packages = {path.parent.name for path in folder.glob("*/__init__.py")}
    assert packages & set(whence.__all__) == set()
