"""Shapes and types in signatures, checked while tests run.

The import hook of jaxtyping binds the arguments of every call, checks them twice, and opens a scope
for the names of axes. That is dear, so it is done where it can show something:

- where a signature has no arrays nothing is in that scope, and beartype alone checks the types;
- a function that held in the first calls of a test is not looked at in the rest of that test;
- a function that no test calls is never made ready for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from functools import partial, wraps
from types import CodeType, FunctionType
from typing import Any, get_args, get_type_hints

import jaxtyping
import typer
from beartype import beartype
from jaxtyping import AbstractArray, install_import_hook

MOST = 5  # calls of each function that are checked in each test

with_scope_of_axes = jaxtyping.jaxtyped


@dataclass(slots=True, eq=False)
class Note:
    """How often a function was checked in this test, and what is known of its signature.

    That is known of its code: a function that stands in another one is made, and decorated,
    whenever that is called.
    """

    code: CodeType
    calls: int = 0
    is_read: bool = False
    hints: dict[str, Any] | None = None


# By the identity of the code, which a note keeps alive. Codes of two files can be equal, as Python
# compares neither their files nor the types in their signatures.
notes: dict[int, Note] = {}
called: list[Note] = []  # in this test


def begin_test() -> None:
    """From now on, the first calls of each function are checked again."""
    for note in called:
        note.calls = 0
    called.clear()


def check_shapes_of(package: str) -> None:
    """Check every signature of a package that is imported from now on."""
    jaxtyping.jaxtyped = checked  # which the code that the hook writes calls by its name
    install_import_hook(package, "beartype.beartype")


def checked(thing: Any = None, *, typechecker: Any) -> Any:
    """A function or a class, checked by beartype, and by jaxtyping where it speaks of arrays."""
    if thing is None:
        return partial(checked, typechecker=typechecker)
    if isinstance(thing, FunctionType):
        return at_first(thing, typechecker)
    if isinstance(thing, type) and is_dataclass(thing):
        made = vars(thing).get("__init__")
        # one that is written out was decorated where it stands, and is no longer of this code
        if isinstance(made, FunctionType) and not hasattr(made, "__wrapped__"):
            thing.__init__ = at_first(made, typechecker)  # pyright: ignore[reportAttributeAccessIssue]
        return thing
    return with_scope_of_axes(thing, typechecker=typechecker)


def at_first(function: FunctionType, typechecker: Any) -> Callable[..., Any]:
    """Checked in the first calls of each test, unless the test has switched all checks off."""
    note = notes.setdefault(id(function.__code__), Note(function.__code__))
    with_checks: Callable[..., Any] | None = None

    @wraps(function)
    def either(*arguments: Any, **named: Any) -> Any:
        nonlocal with_checks
        if note.calls >= MOST or jaxtyping.config.jaxtyping_disable:
            return function(*arguments, **named)
        if note.calls == 0:
            called.append(note)
        note.calls += 1
        if with_checks is None:
            with_checks = made_ready(function, note, typechecker)
        return with_checks(*arguments, **named)

    return either


def made_ready(function: FunctionType, note: Note, typechecker: Any) -> Callable[..., Any]:
    """Checked by beartype alone where that is enough."""
    if not note.is_read:
        note.hints = hints_without_arrays(function)
        note.is_read = True
    if note.hints is None:
        return with_scope_of_axes(function, typechecker=typechecker)
    function.__annotations__ = note.hints
    return beartype(function)


def hints_without_arrays(function: FunctionType) -> dict[str, Any] | None:
    """The types in a signature; None where an array is among them, or a name that is unknown yet.

    jaxtyping takes what is unknown for ``Any``.
    """
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError):
        return None
    if any(map(speaks_of_arrays, hints.values())):
        return None
    # typer asks for its own class to be named, and hands in one of the class below
    return {name: Any if hint is typer.Context else hint for name, hint in hints.items()}


def speaks_of_arrays(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return True
    parts: list[Any] = []
    for part in get_args(hint):
        # the arguments of a Callable are a list
        parts += part if isinstance(part, list) else [part]
    return any(map(speaks_of_arrays, parts))
