"""What is registered under a name, of a method and of a metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

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
        return self._declared("needs")

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (self.settings.__doc__ or "").strip().splitlines()[0]

    def _declared(self, name: str) -> Any:
        return getattr(self.settings, name)


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

    @property
    def better(self) -> Better:
        """Which values are the good ones."""
        return self._declared("better")

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest value on a game whose own values lie between 0 and 1."""
        return self._declared("range")
