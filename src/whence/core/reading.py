"""read: what was saved, whatever it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from whence.core.attribution import Attribution
from whence.core.attributions import Attributions
from whence.core.comparison import Comparison
from whence.core.errors import LoadError
from whence.core.many import Many, result_from_dict

KINDS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "attribution": Attribution.from_dict,
    "attributions": Attributions.from_dict,
    "comparison": Comparison.from_dict,
    "many": Many.from_dict,
}


def read(path: str | Path) -> Attribution | Attributions | Comparison | Many:
    """Read what ``save`` wrote, or the lines that ``--json`` wrote of several texts.

    >>> import whence
    >>> a = whence.explain(whence.load("sentiment"), "not bad", "gradient-l2", evidence=False)
    >>> whence.read(a.save("/tmp/a.json")) == a
    True
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as problem:
        raise LoadError(f"no file {str(path)!r}.") from problem
    except OSError as problem:
        raise LoadError(f"cannot read {str(path)!r}: {problem.strerror or problem}.") from problem
    except ValueError as problem:
        raise LoadError(f"{str(path)!r} is not JSON: {problem}.") from problem
    try:
        content = json.loads(text)
    except ValueError as problem:
        lines = _lines(text)
        if lines is None:
            raise LoadError(f"{str(path)!r} is not JSON: {problem}.") from problem
        return Many(tuple(result_from_dict(line) for line in lines))
    if not isinstance(content, dict):
        raise LoadError(f"{str(path)!r} holds no attribution but a {type(content).__name__}.")
    kind = content.get("kind", "attribution")
    if kind not in KINDS:
        raise LoadError(f"{str(path)!r} holds no attribution but a {kind}.")
    return KINDS[kind](content)


def _lines(text: str) -> list[dict[str, Any]] | None:
    """One object a line, as ``--json`` writes them; None where it is something else.

    The last line may be half of one: the run was ended while it was written.
    """
    objects: list[dict[str, Any]] = []
    lines = text.split("\n")  # nothing else ends a line: a text may hold U+2028
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            one = json.loads(line)
        except ValueError:
            if objects and number == len(lines):
                break
            return None
        if not isinstance(one, dict):
            return None
        objects.append(one)
    return objects if objects else None
