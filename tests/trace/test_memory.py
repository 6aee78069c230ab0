"""Budgets in bytes, and the refusal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from whence.core.errors import SettingsError, TooLarge
from whence.trace import memory
from whence.trace.memory import (
    Forecast,
    as_bytes,
    available,
    can_be_held,
    check,
    is_near,
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [("2GB", 2 * 10**9), ("1.5 MB", 1_500_000), ("3kb", 3000), (4096, 4096), ("2 GiB", 2 * 10**9)],
)
def test_sizes(given: str | int, expected: int) -> None:
    assert as_bytes(given) == expected


@pytest.mark.parametrize("wrong", ["", "much", "-2GB", "0", "2XB"])
def test_no_size(wrong: str) -> None:
    with pytest.raises(SettingsError, match="2GB"):
        as_bytes(wrong)


def test_the_environment_and_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHENCE_MEMORY", "3MB")
    assert as_bytes(None) == 3 * 10**6
    monkeypatch.delenv("WHENCE_MEMORY")
    assert available() > 0
    # what is free changes while others work: the share is of one reading
    monkeypatch.setattr(memory, "available", lambda: 5 * 10**9)
    assert as_bytes(None) == 4 * 10**9


def test_over_the_budget_is_refused_with_the_options() -> None:
    need = Forecast(3 * 10**9, 10**9)
    check(need, "4GB", "less")
    with pytest.raises(
        TooLarge, match=r"about 4 GB .* budget is 3\.9 GB\. Options: less"
    ) as refused:
        check(need, "3.9GB", "less")
    assert isinstance(refused.value, MemoryError)


# What the process still holds of 32 MB that were freed between blocks that are in use: as glibc
# is left by a large block; when held; and when held with holes from before it was.
HOLES = """
import ctypes
from pathlib import Path

from whence.trace.memory import M_MMAP_THRESHOLD, give_back_at_once

library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
library.free.argtypes = [ctypes.c_void_p]


def resident():
    return 4096 * int(Path("/proc/self/statm").read_text().split()[1])


def left_of_holes():
    blocks = [library.malloc(2**20) for _ in range(64)]
    for block in blocks:
        ctypes.memset(block, 1, 2**20)
    full = resident()
    for block in blocks[::2]:
        library.free(block)
    held = 32 * 2**20 - (full - resident())
    return held, blocks[1::2]


library.mallopt(M_MMAP_THRESHOLD, 32 * 2**20)
before, between_holes = left_of_holes()  # which stay there
could = give_back_at_once()
after, _ = left_of_holes()
print(could, before, after)
"""


@pytest.mark.skipif(not can_be_held(), reason="another C library")
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no resident memory to read")
def test_what_is_freed_goes_back_at_once() -> None:
    """As glibc is after a program has freed a block of 32 MB, all of it stays.

    The holes of the first half are there in the second. A library that is only told to map large
    blocks fills them first, and keeps what it fills. In a process of its own: the setting stays.
    """
    done = subprocess.run([sys.executable, "-c", HOLES], capture_output=True, text=True, check=True)
    could, before, after = done.stdout.split()
    assert could == "True"
    assert int(before) > 28 * 2**20
    assert int(after) < 4 * 2**20


def test_a_budget_is_near_where_a_heap_full_of_holes_would_exceed_it() -> None:
    """Twice the forecast was called far, and 3.2 times was measured."""
    needed = Forecast(6 * 10**8, 4 * 10**8)
    assert is_near(needed, 32 * 10**8)
    assert not is_near(needed, 36 * 10**8)
