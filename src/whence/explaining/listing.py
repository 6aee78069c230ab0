"""What there is: methods and metrics, with one line each."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from math import isfinite
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from whence.core.registry import (
    MethodInfo,
    MetricInfo,
    find_method,
    find_metric,
    methods,
    metrics,
    sentence_of,
    settings_of,
)


@dataclass(frozen=True)
class Setting:
    """One setting: a field of a dataclass, and so a keyword and a flag of the command line."""

    name: str
    default: Any
    takes: str  # "int", or the choices: "norm | lecture"
    about: str = ""  # one sentence; empty where the author of the method gave none

    def __str__(self) -> str:
        return f"{self.name}={self.default!r}"


@dataclass(frozen=True)
class Listed:
    """A method as a list shows it, and as ``whence methods NAME`` explains it."""

    name: str
    summary: str
    settings: tuple[Setting, ...]
    signed: bool  # with its default settings
    cites: str
    version: int
    aliases: tuple[str, ...] = ()
    group: str = ""  # where it looks: "removal", "gradients", "relevance", "attention" …
    looks_at: tuple[str, ...] = ()
    only_for: str = ""
    price: str = ""
    misleads: str = ""
    page: str = ""  # of the documentation

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class ListedMetric:
    """A metric as a list shows it.

    ``range`` holds its values on a game whose own values lie between 0 and 1. ``chance`` is what
    random rankings get where a hundred units act independently and sum to one; on any other game
    the random control measures it.
    """

    name: str
    summary: str
    settings: tuple[Setting, ...]
    better: str
    range: tuple[float, float]
    chance: float
    needs: str  # what it is given: "game and rankings", "gold and scores", "scores", "again" …
    group: str  # what it asks: "faithfulness", "gold", "again" or "form"
    cites: str
    version: int
    aliases: tuple[str, ...] = ()
    misleads: str = ""
    page: str = ""  # of the documentation

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, which knows no infinity: a range without an end there has None."""
        ends = [end if isfinite(end) else None for end in self.range]
        return asdict(self) | {"range": ends}


def list_methods() -> list[Listed]:
    """Every method, with its one line and its settings.

    >>> import whence
    >>> "integrated-gradients" in [m.name for m in whence.list_methods()]
    True
    """
    return [_listed_method(info) for info in methods().values()]


def one_method(name: str) -> Listed:
    """The method of that name, spelling or alias, explained.

    >>> one_method("IG").settings[0].about[:84]
    "What stands for an empty text: the vocabulary's mean embedding, the mask or pad toke"
    """
    return _listed_method(find_method(name))


def one_metric(name: str) -> ListedMetric:
    """The metric of that name, spelling or alias, explained.

    >>> one_metric("Deletion").settings[0].about
    'In how many steps of about equal size all units go, at most.'
    """
    return _listed_metric(find_metric(name))


def list_metrics() -> list[ListedMetric]:
    """Every metric, with its one line, its settings, and which values are good.

    >>> import whence
    >>> {m.name: m.better for m in whence.list_metrics()}["deletion"]
    'lower'
    """
    return [_listed_metric(info) for info in metrics().values()]


def _listed_method(info: MethodInfo) -> Listed:
    # of an instance: for some methods a setting decides whether scores have a sign
    signed = settings_of(info, {}).signed
    return Listed(
        name=info.name,
        summary=info.summary,
        settings=_settings(info.settings),
        signed=signed,
        cites=info.cites,
        version=info.version,
        aliases=info.aliases,
        group=info.group,
        looks_at=info.looks_at,
        only_for=info.only_for,
        price=info.price,
        misleads=info.misleads,
        page=info.page,
    )


def _listed_metric(info: MetricInfo) -> ListedMetric:
    instance = settings_of(info, {})
    return ListedMetric(
        name=info.name,
        summary=info.summary,
        settings=_settings(info.settings),
        better=instance.better,
        range=instance.range,
        chance=instance.chance,
        needs=" and ".join(str(need.name).lower() for need in info.needs),
        group=info.group,
        cites=info.cites,
        version=info.version,
        aliases=info.aliases,
        misleads=info.misleads,
        page=info.page,
    )


def _settings(settings: type) -> tuple[Setting, ...]:
    hints = get_type_hints(settings)
    listed = []
    for field in fields(settings):
        takes = _takes(hints[field.name])
        listed.append(Setting(field.name, field.default, takes, sentence_of(field)))
    return tuple(listed)


def _takes(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " | ".join(str(choice) for choice in get_args(hint))
    if get_origin(hint) in (Union, UnionType):
        return " | ".join(_takes(part) for part in get_args(hint))
    return getattr(hint, "__name__", str(hint))
