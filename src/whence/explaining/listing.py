"""What exists, with one line each."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from whence.core.registry import MethodInfo, methods, settings_of


@dataclass(frozen=True)
class Setting:
    """One setting of a method: a field of its dataclass, and so a keyword of ``explain`` and a flag of the command line."""

    name: str
    default: Any
    takes: str  # "int", or the choices: "norm | lecture"

    def __str__(self) -> str:
        return f"{self.name}={self.default!r}"


@dataclass(frozen=True)
class Listed:
    """A method as a list shows it."""

    name: str
    summary: str
    settings: tuple[Setting, ...]
    signed: bool  # with its default settings
    cites: str
    version: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def list_methods() -> list[Listed]:
    """Every method, with its one line and its settings.

    >>> import whence
    >>> "integrated-gradients" in [m.name for m in whence.list_methods()]
    True
    """
    return [_listed(info) for info in methods().values()]


def _listed(info: MethodInfo) -> Listed:
    hints = get_type_hints(info.settings)
    settings = tuple(
        Setting(f.name, f.default, _takes(hints[f.name])) for f in fields(info.settings)
    )
    signed = bool(
        settings_of(info, {}).signed
    )  # of an instance: for some methods a setting decides it
    return Listed(info.name, info.summary, settings, signed, info.cites, info.version)


def _takes(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " | ".join(str(choice) for choice in get_args(hint))
    if get_origin(hint) in (Union, UnionType):
        return " | ".join(_takes(part) for part in get_args(hint))
    return getattr(hint, "__name__", str(hint))
