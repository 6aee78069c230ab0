"""A budget: how much a run may cost, in time or in passes through the model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from whence.core.durations import precise
from whence.core.errors import SettingsError

FULL = "full"
SECONDS = {
    "s": 1,
    "sec": 1,
    "second": 1,
    "seconds": 1,
    "m": 60,
    "min": 60,
    "minute": 60,
    "minutes": 60,
    "h": 3600,
    "hour": 3600,
    "hours": 3600,
}
PASSES = ("", "pass", "passes")
AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Budget:
    """Either seconds or passes; neither where the caller wants everything, whatever it costs.

    >>> Budget.of("2min"), Budget.of("500 passes")
    (Budget(seconds=120.0, passes=None), Budget(seconds=None, passes=500))
    >>> str(Budget.of("2min")), str(Budget.of(1500)), str(Budget.of("full"))
    ('2 min', '1,500 passes', 'full')
    """

    seconds: float | None = None
    passes: int | None = None

    @classmethod
    def of(cls, given: Any) -> Budget:
        """What "30s", "2min", "500 passes", 500 or "full" stands for."""
        if isinstance(given, Budget):
            return given
        if isinstance(given, str) and given.strip().lower() == FULL:
            return cls()
        match = AMOUNT.fullmatch(str(given))
        if match is None or isinstance(given, bool):
            raise _not_a_budget(given)
        amount, unit = float(match[1]), match[2].lower()
        if amount <= 0:
            raise _not_a_budget(given)
        if unit in PASSES:
            if amount != int(amount):
                raise _not_a_budget(given)
            return cls(passes=int(amount))
        if unit not in SECONDS:
            raise _not_a_budget(given)
        return cls(seconds=amount * SECONDS[unit])

    def __str__(self) -> str:
        if self.passes is not None:
            return f"{self.passes:,} passes"
        if self.seconds is not None:
            return precise(self.seconds)
        return FULL


def _not_a_budget(given: Any) -> SettingsError:
    return SettingsError(
        "a budget is a time such as '30s' or '2min', a number of passes such as '500 passes', "
        f"or 'full' for everything, not {given!r}."
    )
