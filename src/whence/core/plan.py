"""A Plan: what a run does to keep its cost within bounds, and why.

It is part of the result, as fewer random rankings or samples are rougher.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from whence.core.evidence import USUAL_RANKINGS, USUAL_STEPS
from whence.core.request import Wish
from whence.core.stored import Stored, as_stored


@dataclass(frozen=True)
class Plan:
    """The size of the control, the settings that were lowered, larger units, and methods left out.

    ``settings`` holds, by method, only settings that the caller did not give; ``left_out`` says of
    each method why. ``units`` are the kind that was taken in the place of ``asked_units``, the
    smaller ones that were asked for; both are empty where units are as asked. ``reason`` is empty
    where nothing had to be made smaller.

    >>> Plan().is_full, Plan(rankings=39, steps=5, reason="the budget is 30 s").describe()
    (True, 'Leaner than usual, as the budget is 30 s: 39 random rankings (usually 100) and 5 steps \
(usually 10).')
    """

    rankings: int = USUAL_RANKINGS
    steps: int = USUAL_STEPS
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    units: str = ""
    asked_units: str = ""

    @property
    def is_full(self) -> bool:
        """Whether everything was done as it was asked for."""
        return not self.reason

    def wishes(self, asked: tuple[Wish, ...]) -> tuple[Wish, ...]:
        """The wishes that remain, with their lowered settings."""
        remaining = []
        for wish in asked:
            if wish.method not in self.left_out:
                lowered = self.settings.get(wish.method, {})
                remaining.append(Wish(wish.method, {**lowered, **wish.settings}))
        return tuple(remaining)

    def describe(self) -> str:
        """What was made smaller, and why, in one sentence; empty for the full plan.

        Said where a budget made something smaller.
        """
        if self.is_full:
            return ""
        parts = []
        if self.rankings != USUAL_RANKINGS:
            parts.append(f"{self.rankings} random rankings (usually {USUAL_RANKINGS})")
        if self.steps != USUAL_STEPS:
            parts.append(f"{self.steps} steps (usually {USUAL_STEPS})")
        if self.settings:
            parts.append(f"fewer samples for {_listed(self.settings)}")
        if self.units:
            parts.append(f"{self.units}s as units (not {self.asked_units}s)")
        if self.left_out:
            parts.append(f"no {_joined(sorted(self.left_out), 'or')}")
        return f"Leaner than usual, as {self.reason}: {_joined(parts)}."

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        stored = asdict(self)
        for name in ("units", "asked_units"):
            if not stored[name]:
                del stored[name]  # as it was before there were such: older versions read it
        return stored

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any] | Stored) -> Plan:
        """What ``to_dict`` gave."""
        return as_stored(stored, "plan").record(cls)


def _listed(names: Mapping[str, Any]) -> str:
    return _joined(sorted(names))


def _joined(parts: list[str], last: str = "and") -> str:
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {last} {parts[-1]}"
