"""What Linux counts for this process.

Peaks come from here and not from ``getrusage``: that of a new process begins at what its parent
had, and a child of a large one then seems to need nothing.
"""

from __future__ import annotations

from pathlib import Path


def status(field: str) -> int:
    """Bytes of a field of ``/proc/self/status``, such as VmRSS and VmHWM (the most so far)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"{field} is not in /proc/self/status: this needs Linux")
