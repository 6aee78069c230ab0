"""Running a lab by its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from typing import Any

from whence.core.errors import InputError, SettingsError, unknown_name
from whence.labs import LABS
from whence.notebook.book import FORMATS, Notebook

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
    """Run a lab and return its notebook: text, figures, tables and claims. ``quick`` takes seconds instead of minutes.

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
    module, known = import_module(f"whence.labs.{name}"), takes(name)
    if wrong := set(options) - set(known):
        raise SettingsError(
            f"the lab {name} takes {', '.join(known) or 'no options'}, not {', '.join(sorted(wrong))}."
        )
    book = Notebook(module.TITLE, quick, seed, tuple(formats), tell=tell)
    book.say((module.__doc__ or "").splitlines()[0])
    import matplotlib

    with matplotlib.rc_context(STYLE):  # pyright: ignore[reportArgumentType]
        module.run(book, **options)
    return book


def takes(name: str) -> list[str]:
    """The names of a lab's own options."""
    return list(signature(import_module(f"whence.labs.{name}").run).parameters)[1:]
