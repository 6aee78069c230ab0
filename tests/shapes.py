"""Shapes and types in signatures, checked while tests run.

The import hook of jaxtyping binds the arguments of every call, checks them twice, and opens a scope
for the names of axes. Where a signature has no arrays nothing is in that scope: beartype alone
checks the same types, for a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from types import CodeType, FunctionType
from typing import Any, get_args, get_type_hints

import jaxtyping
from beartype import beartype
from jaxtyping import AbstractArray, install_import_hook

with_scope_of_axes = jaxtyping.jaxtyped
# What is known of a function is known of its code: one that stands in another function is made, and
# decorated, whenever that is called.
known: dict[CodeType, dict[str, Any] | None] = {}


def check_shapes_of(package: str) -> None:
    """Check every signature of a package that is imported from now on."""
    jaxtyping.jaxtyped = checked  # which the code that the hook writes calls by its name
    install_import_hook(package, "beartype.beartype")


def checked(thing: Any = None, *, typechecker: Any) -> Any:
    """A function or a class, checked by beartype, and by jaxtyping where it speaks of arrays."""
    if thing is None:
        return partial(checked, typechecker=typechecker)
    if isinstance(thing, FunctionType):
        if thing.__code__ not in known:
            known[thing.__code__] = hints_without_arrays(thing)
        hints = known[thing.__code__]
        if hints is not None:
            return with_types_alone(thing, hints)
    return with_scope_of_axes(thing, typechecker=typechecker)


def with_types_alone(function: FunctionType, hints: dict[str, Any]) -> Callable[..., Any]:
    """Checked by beartype, unless a test has switched all checks off."""
    function.__annotations__ = hints
    with_types = beartype(function)

    @wraps(function)
    def either(*arguments: Any, **named: Any) -> Any:
        if jaxtyping.config.jaxtyping_disable:
            return function(*arguments, **named)
        return with_types(*arguments, **named)

    return either


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
    return hints


def speaks_of_arrays(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return True
    parts: list[Any] = []
    for part in get_args(hint):
        # the arguments of a Callable are a list
        parts += part if isinstance(part, list) else [part]
    return any(map(speaks_of_arrays, parts))
