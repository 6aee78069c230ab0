"""What is registered under a name, of a method and of a metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from whence.core.registry.needs import Needs

Better = Literal["higher", "lower"]


@dataclass(frozen=True)
class Info:
    """What is registered under a name: a class of settings, and what it declares."""

    name: str
    settings: type
    version: int
    cites: str

    kind: ClassVar[str]

    @property
    def needs(self) -> Needs:
        """What it wants of the model, or to be given."""
        return self.settings.needs

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (self.settings.__doc__ or "").strip().splitlines()[0]


@dataclass(frozen=True)
class MethodInfo(Info):
    """A registered method."""

    kind: ClassVar[str] = "method"

    @property
    def only_for(self) -> str:
        """What alone it explains, in words, where it does not take every model and target."""
        return getattr(self.settings, "only_for", "")


@dataclass(frozen=True)
class MetricInfo(Info):
    """A registered metric."""

    kind: ClassVar[str] = "metric"
