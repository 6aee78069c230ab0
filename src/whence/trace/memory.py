"""Memory: what a run will need, and what there is. A run that does not fit is refused with its options before it begins."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from whence.core.errors import SettingsError, TooLarge

SHARE = 0.8  # of the free memory that a run may take unless the caller says otherwise
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


@dataclass(frozen=True)
class Forecast:
    """Bytes that a run keeps to its end, and bytes that it needs on the way."""

    kept: int
    working: int
    what: str = "attention maps"

    @property
    def total(self) -> int:
        """The peak over the model."""
        return self.kept + self.working

    def __str__(self) -> str:
        return f"{self.what} need about {human(self.total)} ({human(self.kept)} kept, {human(self.working)} on the way)"


def human(size: int | float) -> str:
    """A number of bytes as people say it.

    >>> human(9_663_676_416), human(512)
    ('9.66 GB', '512 B')
    """
    for power, unit in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= power:
            return f"{size / power:.3g} {unit}"
    return f"{int(size)} B"


def as_bytes(memory: str | int | float | None) -> int:
    """A budget in bytes from "2GB", "500 MB", a number, or None: the environment's WHENCE_MEMORY, else most of what is free.

    >>> as_bytes("2GB"), as_bytes("1.5 M")
    (2000000000, 1500000)
    """
    if memory is None:
        memory = os.environ.get("WHENCE_MEMORY") or int(SHARE * available())
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", str(memory), re.IGNORECASE)
    if not found or float(found[1]) <= 0:
        raise SettingsError(
            f"a memory budget is a number of bytes or a size such as '2GB' or '500MB', not {memory!r}."
        )
    return int(float(found[1]) * UNITS[found[2].lower()])


def available() -> int:
    """Bytes that this process can still get: what the system calls available, within a container's limit."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(
            int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")
        )
    except (OSError, StopIteration, ValueError):
        free = (
            os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
            if hasattr(os, "sysconf")
            else 4 * 10**9
        )
    try:
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
    except (OSError, ValueError):
        return free
    return max(0, min(free, limit - used))


def check(forecast: Forecast, memory: str | int | float | None, options: str) -> None:
    """Refuse a run over the budget, with what to do instead."""
    budget = as_bytes(memory)
    if forecast.total > budget:
        raise TooLarge(
            f"{forecast}, and the budget is {human(budget)}. Options: {options}; or a larger budget, memory='…GB'."
        )
