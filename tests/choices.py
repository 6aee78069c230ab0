"""What contract tests try: the defaults, each choice of each Literal field, and which part at once.

`make test` tries a part of every sweep; `make test-all`, which CI runs, tries all of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest


def at_once(cases: Iterable[Any], few: Iterable[Any]) -> list[Any]:
    """All cases; those beyond ``few`` are left to `make test-all`."""
    few = list(few)
    out: list[Any] = []
    for case in cases:
        if case in few:
            out.append(case)
        else:
            out.append(pytest.param(case, marks=pytest.mark.slow))
    return out


def choices(settings: type) -> list[dict[str, Any]]:
    """The defaults, then each choice of each Literal field on its own."""
    out: list[dict[str, Any]] = [{}]
    hints = get_type_hints(settings)
    for field in fields(settings):
        others = [choice for choice in literals(hints[field.name]) if choice != field.default]
        out += [{field.name: choice} for choice in others]
    return out


def literals(hint: Any) -> list[Any]:
    """The choices of a Literal, also where it is a part of a union."""
    of_all_parts: list[Any] = []
    for part in (hint, *get_args(hint)):
        if get_origin(part) is Literal:
            of_all_parts += get_args(part)
    return of_all_parts


def quick(settings: type) -> dict[str, Any]:
    """Settings that keep a method short, by what its settings are called, whatever it is.

    A regression on the 62 units of a text at the limit needs 128 masks, orders of them 250.
    """
    names = {field.name for field in fields(settings)}
    estimators = literals(get_type_hints(settings).get("estimator"))
    few: dict[str, Any] = {"nodes": 4, "max_nodes": 8, "held_out": 6}
    if "estimator" in names:
        few |= {"samples": 250 if "permutation" in estimators else 130, "exact": 3}
    elif "samples" in names:
        few |= {"samples": 3}
    else:
        few |= {"budget": 200}
    return {name: value for name, value in few.items() if name in names}
