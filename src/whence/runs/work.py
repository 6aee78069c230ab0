"""What a run does with its rows: a function that is found by its name.

The store and the engines know nothing of it but this: opened with what was asked, it makes a table
of some rows, with one record for each of them, in order. A record has its place in the column
``row``, and in the column ``failure`` the ``kind`` and ``message`` of what went wrong, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from whence.core.errors import LoadError
from whence.runs.data import Row

if TYPE_CHECKING:
    import pyarrow as pa

# some rows, and the place of the first of them in the run
Work = Callable[[Sequence[Row], int], "pa.Table"]
# of whence alone: a manifest is a file, and a file does not choose what is run
OURS = "whence."


def found(name: str) -> Any:
    """What a name such as "whence.explaining.rows:opened" stands for."""
    module, _, attribute = name.partition(":")
    try:
        if not module.startswith(OURS):
            raise ImportError(f"{module} is no part of whence")
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as problem:
        raise LoadError(
            f"the run asks for {name!r}, which cannot be found: {problem}."
        ) from problem


def opened(name: str, asked: Mapping[str, Any]) -> Work:
    """The work of that name, ready for rows: its model is loaded."""
    return found(name)(asked)
