"""What is registered under a name, of a method and of a metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from whence.core.registry.needs import LOOKS_AT, Needs, group_of, metric_group_of

Better = Literal["higher", "lower"]


@dataclass(frozen=True)
class Info:
    """What is registered under a name: a class of settings, and what it declares."""

    name: str
    settings: type
    version: int
    cites: str
    aliases: tuple[str, ...] = ()

    kind: ClassVar[str]

    @property
    def needs(self) -> Needs:
        """What it wants of the model, or to be given."""
        return self.settings.needs

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (self.settings.__doc__ or "").strip().splitlines()[0]

    @property
    def misleads(self) -> str:
        """When to distrust it, in a sentence or two; empty where its author gave none."""
        return getattr(self.settings, "misleads", "")

    @property
    def page(self) -> str:
        """The page of the documentation; empty for what is not part of whence."""
        if not self.settings.__module__.startswith("whence."):
            return ""
        return f"docs/{self.kind}s/{self.name}.md"


@dataclass(frozen=True)
class MethodInfo(Info):
    """A registered method."""

    kind: ClassVar[str] = "method"

    @property
    def only_for(self) -> str:
        """What alone it explains, in words, where it does not take every model and target."""
        return getattr(self.settings, "only_for", "")

    @property
    def price(self) -> str:
        """What it costs, in words; empty where its author gave none."""
        return getattr(self.settings, "price", "")

    @property
    def group(self) -> str:
        """Where it looks, in a word: one of GROUPS."""
        return group_of(self.needs)

    @property
    def looks_at(self) -> tuple[str, ...]:
        """What it looks at, in words."""
        return tuple(words for need, words in LOOKS_AT.items() if need in self.needs)


@dataclass(frozen=True)
class MetricInfo(Info):
    """A registered metric."""

    kind: ClassVar[str] = "metric"

    @property
    def group(self) -> str:
        """What it asks, in a word: one of METRIC_GROUPS."""
        return metric_group_of(self.needs)
