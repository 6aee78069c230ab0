"""Memory: what a run will need, and what there is.

A run that does not fit is refused before it begins, and the refusal says what to do instead.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from whence.core.errors import TooLarge
from whence.core.sizes import human, parsed

SHARE = 0.8  # of the free memory that a run may take unless the caller says otherwise
GUESSED_FREE = 4 * 10**9  # bytes, where the system tells nothing


@dataclass(frozen=True)
class Forecast:
    """Bytes that a run keeps to its end, and bytes that it needs on the way."""

    kept: int
    working: int
    what: str = "attention maps"
    is_known: bool = True  # False where neither a measurement nor the configuration tells

    @property
    def total(self) -> int:
        """The most that the run holds at once, beside the model itself."""
        return self.kept + self.working

    def __str__(self) -> str:
        if not self.is_known:
            return f"how much memory {self.what} need is not known"
        return (
            f"{self.what} need about {human(self.total)} "
            f"({human(self.kept)} kept, {human(self.working)} on the way)"
        )


def as_bytes(memory: str | int | float | None) -> int:
    """A budget in bytes, from "2GB", "500 MB" or a number.

    None stands for the environment's WHENCE_MEMORY, and without it for most of what is free.

    >>> as_bytes("2GB"), as_bytes("1.5 M")
    (2000000000, 1500000)
    """
    if memory is None:
        memory = os.environ.get("WHENCE_MEMORY") or int(SHARE * available())
    return parsed(memory)


def available() -> int:
    """Bytes that this process can still get: what the system has, within a container's limit."""
    free = _free_in_system()
    left = _left_in_container()
    if left is None:
        return free
    return max(0, min(free, left))


def _free_in_system() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable"):
                return int(line.split()[1]) * 1024  # the file counts in units of 1,024 bytes
    except (OSError, ValueError):
        pass

    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    return GUESSED_FREE


def _left_in_container() -> int | None:
    """None where no limit is set."""
    try:
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
    except (OSError, ValueError):
        return None
    return limit - used


def check(forecast: Forecast, memory: str | int | float | None, options: str) -> None:
    """Refuse a run over the budget, with what to do instead."""
    budget = as_bytes(memory)
    if forecast.total > budget:
        raise TooLarge(
            f"{forecast}, and the budget is {human(budget)}. "
            f"Options: {options}; or a larger budget, memory='…GB'."
        )
