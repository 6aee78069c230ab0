"""Thousands of timed interrupts over every method, many of them doubled: what is left changed.

    python -m bench.interrupts 3000

The test does the same with a tenth of them (tests/models/test_unbroken.py).
"""

from __future__ import annotations

import sys

from tests.models.test_unbroken import timed_interrupts
from whence.core.registry import methods


def main() -> None:
    """Print how many struck, how many runs were struck twice, and what was left changed."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    landed, twice, harm = timed_interrupts(count, list(methods()))
    print(f"{landed} interrupts struck a run; {twice} runs were struck twice at once")
    print(f"left changed: {len(harm)}")
    for line in harm:
        print(f"  {line}")
    sys.exit(bool(harm))


if __name__ == "__main__":
    main()
