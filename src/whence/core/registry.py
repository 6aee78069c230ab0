"""Methods by name. A method is a frozen dataclass of settings that can be called on a Trace or on a Game."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from enum import Flag, auto
from functools import cache
from importlib import import_module
from math import isfinite
from typing import Any, TypeVar, get_args, get_type_hints

from whence.core.errors import SettingsError, unknown_name

T = TypeVar("T", bound=type)


class Needs(Flag):
    """What a method wants. ``compare`` collects the needs of all and runs one trace, and one game for each removal."""

    NOTHING = 0
    ATTENTION = auto()
    ATTENTION_GRADIENTS = auto()
    EMBEDDINGS = auto()
    EMBEDDING_GRADIENTS = auto()
    HIDDEN_STATES = auto()
    RERUNS = auto()  # values and gradients at other embeddings: a path, a cloud
    HEAD_MEANS = auto()  # attention, the mean over heads: a twelfth of the memory
    ATTENTION_GRAPH = (
        auto()
    )  # a run of its own through attention that relevance passes back through
    VALUE_WEIGHTED = (
        auto()
    )  # attention times the norm of the value that it weights, the mean over heads
    GAME = auto()  # no trace at all: the target's value when units are removed


GRADIENTS = Needs.ATTENTION_GRADIENTS | Needs.EMBEDDING_GRADIENTS
WHOLE_MAPS = Needs.ATTENTION | Needs.ATTENTION_GRADIENTS
ANY_ATTENTION = WHOLE_MAPS | Needs.HEAD_MEANS | Needs.VALUE_WEIGHTED


@dataclass(frozen=True)
class MethodInfo:
    """One registered method: its name, its class of settings, and what the class declares."""

    name: str
    settings: type
    version: int
    cites: str

    @property
    def needs(self) -> Needs:
        """What the method wants of the model."""
        return self.settings.needs

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (self.settings.__doc__ or "").strip().splitlines()[0]


_methods: dict[str, MethodInfo] = {}


def method(name: str, *, version: int, cites: str) -> Callable[[T], T]:
    """Register a class of settings as the method ``name``; the version rises when the mathematics changes."""

    def register(settings: T) -> T:
        _methods[name] = MethodInfo(name, settings, version, cites)
        return settings

    return register


@cache
def _discover(package: str) -> None:
    """Import every module of ``package``, so that a new method is one new file and no list to keep."""
    for module in pkgutil.iter_modules(import_module(package).__path__):
        import_module(f"{package}.{module.name}")


def methods() -> Mapping[str, MethodInfo]:
    """Every method by name."""
    _discover("whence.methods")
    return dict(sorted(_methods.items()))


def find_method(name: str) -> MethodInfo:
    """The method of that name, or an error with the nearest one."""
    known = methods()
    if name not in known:
        raise unknown_name("method", name, known)
    return known[name]


def settings_of(info: MethodInfo, given: Mapping[str, Any], seed: int | None = None) -> Any:
    """An instance of the method's settings from loose values (strings of a command line too), or an error that names the fault."""
    names = [f.name for f in fields(info.settings)]
    for key in given:
        if key not in names:
            problem = (
                str(unknown_name("setting", key, names))
                if names
                else f"it has no settings, so {key!r} means nothing."
            )
            raise SettingsError(f"method {info.name!r}: {problem}")
    for key, value in given.items():
        if (isinstance(value, float) and not isfinite(value)) or str(value).lower() in (
            "nan",
            "inf",
            "-inf",
        ):
            raise SettingsError(
                f"method {info.name!r}, setting {key!r}: a finite number is needed, not {value!r}."
            )
    for value in (seed, given.get("seed")):
        if isinstance(value, int) and not 0 <= value < 2**63:
            raise SettingsError(f"a seed is a whole number from 0 to 2**63 - 1, not {value}.")
    hints = get_type_hints(info.settings)
    values = {
        k: None if v in ("none", "None") and type(None) in get_args(hints[k]) else v
        for k, v in given.items()
    }
    if "seed" in names and seed is not None:
        values.setdefault("seed", seed)
    return _adapter(info.settings)(info.name, values)


@cache
def _adapter(settings: type) -> Callable[[str, dict[str, Any]], Any]:
    from pydantic import TypeAdapter, ValidationError

    adapter = TypeAdapter(settings)

    def validated(name: str, values: dict[str, Any]) -> Any:
        try:
            return adapter.validate_python(values)
        except ValidationError as problem:
            first = problem.errors()[0]
            if not first["loc"]:  # the settings' own check of how they go together
                raise SettingsError(
                    f"method {name!r}: {first['msg'].removeprefix('Value error, ')}."
                ) from None
            raise SettingsError(
                f"method {name!r}, setting {str(first['loc'][0])!r}: {first['msg']}, not {first['input']!r}."
            ) from None

    return validated


def settings_dict(settings: Any) -> dict[str, Any]:
    """The settings as plain values, for a result to carry."""
    return asdict(settings)
