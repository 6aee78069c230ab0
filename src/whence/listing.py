"""What exists, with one line each."""

from __future__ import annotations

from dataclasses import dataclass, fields

from whence.core.registry import methods


@dataclass(frozen=True)
class Listed:
    """A method as a list shows it."""

    name: str
    summary: str
    settings: tuple[str, ...]
    cites: str


def list_methods() -> list[Listed]:
    """Every method, with its one line and its settings.

    >>> import whence
    >>> "integrated-gradients" in [m.name for m in whence.list_methods()]
    True
    """
    return [
        Listed(name, info.summary, tuple(f"{f.name}={f.default!r}" for f in fields(info.settings)), info.cites)
        for name, info in methods().items()
    ]
