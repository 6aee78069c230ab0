"""Running a lab by its name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from whence.core.errors import InputError, SettingsError, unknown_name
from whence.labs import LABS
from whence.notebook import FORMATS, Notebook

STYLE: dict[str, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9,
}


def lab(
    name: str,
    *,
    quick: bool = False,
    seed: int = 0,
    formats: Sequence[str] = FORMATS,
    tell: Callable[[str], None] = lambda _: None,
    **options: Any,
) -> Notebook:
    """Run a lab and return its notebook: text, figures, tables and claims.

    ``quick`` takes seconds instead of minutes.

    >>> import whence
    >>> book = whence.lab("attention", quick=True)       # doctest: +SKIP
    >>> book.save("figures/attention")                   # doctest: +SKIP
    """
    if name not in LABS:
        raise unknown_name("lab", name, (*LABS, "all"))
    if not 0 <= seed < 2**32:
        raise SettingsError(f"a seed is a whole number from 0 to 2**32 - 1, not {seed}.")
    if find_spec("matplotlib") is None:
        raise InputError(
            "a lab draws figures, which needs matplotlib: pip install 'whence[figures]'."
        )
    known = takes(name)
    wrong = set(options) - set(known)
    if wrong:
        raise SettingsError(
            f"the lab {name} takes {', '.join(known) or 'no options'}, "
            f"not {', '.join(sorted(wrong))}."
        )

    module = import_module(f"whence.labs.{name}")
    book = Notebook(module.TITLE, quick, seed, tuple(formats), tell=tell)
    book.say(_first_paragraph(module))
    import matplotlib

    with matplotlib.rc_context(STYLE):  # pyright: ignore[reportArgumentType]
        module.run(book, **options)
    return book


def takes(name: str) -> list[str]:
    """The names of a lab's own options: the parameters of its ``run`` after the notebook."""
    module = import_module(f"whence.labs.{name}")
    return list(inspect.signature(module.run).parameters)[1:]


def _first_paragraph(module: ModuleType) -> str:
    """What a lab is about: the first paragraph of its docstring on one line."""
    paragraph = (inspect.getdoc(module) or "").split("\n\n")[0]
    return " ".join(paragraph.split())
