"""What a shell proposes when Tab is pressed.

Names are read from files, without importing what is in them: a proposal that takes as long as torch
comes too late.
"""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

DECLARED = re.compile(r'^@(?:method|metric)\(\s*"([\w-]+)"', re.MULTILINE)


def method(incomplete: str) -> list[str]:
    """One method.

    >>> method("occ")
    ['occlusion']
    """
    return _beginning(_declared("methods"), incomplete)


def methods(incomplete: str) -> list[str]:
    """Methods with commas between them: the last one is completed.

    >>> methods("lime,occ")
    ['lime,occlusion']
    """
    return _last_of(_declared("methods"), incomplete)


def metric(incomplete: str) -> list[str]:
    """One metric.

    >>> metric("aop")
    ['aopc']
    """
    return _beginning(_declared("metrics"), incomplete)


def metrics(incomplete: str) -> list[str]:
    """Metrics with commas between them: the last one is completed.

    >>> metrics("aopc,suff")
    ['aopc,sufficiency']
    """
    return _last_of(_declared("metrics"), incomplete)


def model(incomplete: str) -> list[str]:
    """A bundled model, or a folder with a model in it.

    >>> model("sent")
    ['sentiment']
    """
    inside = Path(str(files("whence"))) / "models" / "bundled"
    names = [config.parent.name for config in inside.glob("*/config.json")]
    beside = Path(incomplete or ".")
    around = beside if incomplete.endswith("/") or not incomplete else beside.parent
    names += [str(config.parent) for config in around.glob("*/config.json")]
    return _beginning(names, incomplete)


def _declared(package: str) -> list[str]:
    """The names in the decorators of a package's files."""
    names = []
    for file in (Path(str(files("whence"))) / package).glob("*.py"):
        names += DECLARED.findall(file.read_text(encoding="utf-8"))
    return names


def _beginning(names: list[str], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))


def _last_of(names: list[str], incomplete: str) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    taken = before.split(",")
    left = [name for name in names if name not in taken]
    return [before + comma + name for name in _beginning(left, last)]
