"""The two catalogues, of methods and of metrics: how one gets in, and how it is found."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Generic, TypeVar

from whence.core.errors import AuthorError
from whence.core.registry.declared import check_method, check_metric
from whence.core.registry.info import Info, MethodInfo, MetricInfo
from whence.core.registry.names import bare, found, not_found

T = TypeVar("T", bound=type)
I = TypeVar("I", bound=Info)  # noqa: E741


class Catalogue(Generic[I]):
    """Entries by name. Those of ``package`` are found by themselves: one file, and no list."""

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self.package = package
        self.entries: dict[str, I] = {}
        self._discovered = False

    def add(self, info: I) -> None:
        """Take in a new entry. A name that is taken is refused, unless it is the same class again.

        The same class again is a notebook cell that is run a second time.
        """
        is_our_own = info.settings.__module__.startswith(f"{self.package}.")
        if not is_our_own:
            self.discover()
        taken = self.entries.get(info.name)
        if taken is not None and _address(taken.settings) != _address(info.settings):
            raise AuthorError(
                f"@{self.kind}({info.name!r}) on {info.settings.__qualname__}: the name is taken "
                f"by {'.'.join(_address(taken.settings))}. Take another name."
            )
        self._refuse_taken_aliases(info)
        self.entries[info.name] = info

    def _refuse_taken_aliases(self, info: I) -> None:
        """An alias must not lead elsewhere. A new name may be another's alias: names come first."""
        for alias in info.aliases:
            for other in self.entries.values():
                answers_to = [bare(name) for name in (other.name, *other.aliases)]
                if other.name != info.name and bare(alias) in answers_to:
                    raise AuthorError(
                        f"@{self.kind}({info.name!r}) on {info.settings.__qualname__}: the alias "
                        f"{alias!r} leads to {other.name!r} already. Leave it out."
                    )

    def discover(self) -> None:
        """Import every module of the package, once; each registers what it holds."""
        if self._discovered:
            return
        self._discovered = True
        try:
            for module in pkgutil.iter_modules(import_module(self.package).__path__):
                import_module(f"{self.package}.{module.name}")
        except BaseException:
            self._discovered = False
            raise

    def all(self) -> Mapping[str, I]:
        """Every entry by name, in the order of the alphabet."""
        self.discover()
        return dict(sorted(self.entries.items()))

    def find(self, name: str) -> I:
        """The entry of that name, spelling or alias, or an error with the nearest one."""
        known = self.all()
        aliases = {entry.name: entry.aliases for entry in known.values()}
        proper = found(name, aliases)
        if proper is None:
            raise not_found(self.kind, name, aliases)
        return known[proper]


METHODS: Catalogue[MethodInfo] = Catalogue("method", "whence.methods")
METRICS: Catalogue[MetricInfo] = Catalogue("metric", "whence.metrics")


def method(name: str, *, version: int, cites: str, aliases: Sequence[str] = ()) -> Callable[[T], T]:
    """Register a class of settings as the method ``name``.

    The version rises when the mathematics changes. ``cites`` is the key of a paper in
    docs/references.md, or empty. ``aliases`` are other names that people know it by; upper case,
    hyphens and underscores make no difference and need none. What the class lacks is said at once,
    as an AuthorError.
    """

    def register(settings: Any) -> Any:
        check_method(name, version, cites, settings, aliases)
        METHODS.add(MethodInfo(name, settings, version, cites, tuple(aliases)))
        return settings

    return register


def metric(name: str, *, version: int, cites: str, aliases: Sequence[str] = ()) -> Callable[[T], T]:
    """Register a class of settings as the metric ``name``; the rest as for a method."""

    def register(settings: Any) -> Any:
        check_metric(name, version, cites, settings, aliases)
        METRICS.add(MetricInfo(name, settings, version, cites, tuple(aliases)))
        return settings

    return register


def methods() -> Mapping[str, MethodInfo]:
    """Every method by name."""
    return METHODS.all()


def metrics() -> Mapping[str, MetricInfo]:
    """Every metric by name."""
    return METRICS.all()


def find_method(name: str) -> MethodInfo:
    """The method of that name, spelling or alias, or an error with the nearest one.

    >>> find_method("IG").name, find_method("integrated_gradients").name
    ('integrated-gradients', 'integrated-gradients')
    """
    return METHODS.find(name)


def find_metric(name: str) -> MetricInfo:
    """The metric of that name, spelling or alias, or an error with the nearest one."""
    return METRICS.find(name)


def _address(settings: type) -> tuple[str, str]:
    return (settings.__module__, settings.__qualname__)
