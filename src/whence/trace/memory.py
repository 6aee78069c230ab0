"""Memory: what a run will need, and what there is.

A run that does not fit is refused before it begins, and the refusal says what to do instead. One
that may come near its budget asks the C library to give back what goes, which takes time; any other
leaves it as it is, and the process then takes more than is in use.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

from whence.core.errors import TooLarge
from whence.core.sizes import human, parsed

SHARE = 0.8  # of the free memory that a run may take unless the caller says otherwise
GUESSED_FREE = 4 * 10**9  # bytes, where the system tells nothing

# Bytes from which memory has pages of its own, which go back when it goes; below, it is cut from a
# heap. This is where glibc begins; it goes up to 32 MB as a program frees larger blocks.
MAPPED = 2**17
NEVER_IN_A_HEAP = 2**25
# the numbers of these settings in glibc's malloc.h
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
IS_MAPPED = 2  # the bit of a block's size in glibc's malloc.c
LARGEST_HOLE = 2**30  # bytes; one that is larger is filled by several blocks
# The most that a process was seen to take is 3.2 times what the same run takes when held.
AT_MOST_TAKEN = 3.5


@dataclass(frozen=True)
class Heap:
    """How the C library keeps blocks: from which size they have pages of their own, and its holes.

    ``taken`` is what the heap takes for each byte that was ever in use at once; ``in_games`` is the
    same where batches of many shapes follow each other, and leave holes that fit no other.
    """

    mapped: int
    taken: float
    in_games: float


HELD = Heap(MAPPED, 1.0, 1.0)
# Left alone. Where holes lie is chance: 1.2 to 2.1 were measured, and 1.9 to 3.2 in games (BERT and
# GPT-2, 256 wide, 230 to 1,020 tokens; ``bench.forecast --as-it-comes``).
AS_IT_COMES = Heap(NEVER_IN_A_HEAP, 1.6, 2.5)


@dataclass(frozen=True)
class Forecast:
    """Bytes that a run keeps to its end, and bytes that it needs on the way.

    ``rough`` says why the run, or a part of it, could not be rehearsed; empty where it could.
    """

    kept: int
    working: int
    what: str = "attention maps"
    is_known: bool = True  # False where neither a measurement nor the configuration tells
    rough: str = ""

    @property
    def total(self) -> int:
        """The most that the run holds at once, beside the model itself."""
        return self.kept + self.working

    def __str__(self) -> str:
        """Said of a run before it begins; rough where a short text could not be tried.

        ``these 2 texts need about 1.2 GB (1 GB kept, 200 MB on the way)``
        """
        if not self.is_known:
            return f"how much memory {self.what} need is not known"
        words = (
            f"{self.what} need about {human(self.total)} "
            f"({human(self.kept)} kept, {human(self.working)} on the way)"
        )
        if self.rough:
            words += f", which is rough, as a short text could not be tried ({self.rough})"
        return words


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


def give_back_at_once() -> bool:
    """Hold glibc to giving large blocks back when they go; whether it could be asked.

    Tensors of a few megabytes else come to lie in the heap, where torch's alignment keeps a new one
    from the hole that one of the same size has left: a heap of 11.5 MB was seen to hold 4.1. The
    setting is of the process, and stays: glibc cannot be asked what it was. Each block then costs
    its page faults, which made runs of many batches up to half as slow again (``bench.holding``).
    """
    library = _glibc()
    if library is None:
        return False
    is_held = library.mallopt(M_MMAP_THRESHOLD, MAPPED)
    is_trimmed = library.mallopt(M_TRIM_THRESHOLD, MAPPED)
    give_back_now()
    return bool(is_held and is_trimmed)


# Addresses of the blocks that lie in holes of the heap. Threads may share it without a lock, which
# a forked child would find closed.
_stoppers: list[int] = []


def give_back_now() -> None:
    """Give back what is free in the heap, and let no large block lie there, if glibc is held.

    A large block has pages of its own only where the heap has no hole for it. The holes that
    loading a model left there took tensors of up to 14 MB, whose pages then stayed. So each is
    filled with blocks that nobody writes to, which take addresses and no memory.
    """
    library = _glibc()
    if library is None:
        return
    with contextlib.suppress(IndexError):
        while True:
            library.free(_stoppers.pop())
    library.malloc_trim(0)
    size = LARGEST_HOLE
    while size >= MAPPED:
        block = library.malloc(size)
        if block and not _has_own_pages(block):
            _stoppers.append(block)
            continue
        library.free(block)
        size //= 2


def give_back_holes() -> None:
    """Give back the pages of what is free in the heap; glibc is left as it is else.

    Passes of ever new sizes leave holes that the next ones do not fill: 480 of them on the bundled
    model, of 480 different sizes, took 111 MB, of which 6 were in use. To be asked for now and
    then in a long run, as the next pass has to fetch its pages anew.
    """
    library = _glibc()
    if library is not None:
        library.malloc_trim(0)


def _has_own_pages(block: int) -> bool:
    """Whether glibc has mapped a block: a bit of the size that it keeps before each."""
    size = ctypes.c_size_t.from_address(block - ctypes.sizeof(ctypes.c_size_t))
    return bool(size.value & IS_MAPPED)


def is_near(forecast: Forecast, budget: int) -> bool:
    """Whether a process that is left alone may take more than its budget.

    >>> is_near(Forecast(10**9, 0), 2 * 10**9), is_near(Forecast(10**9, 0), 4 * 10**9)
    (True, False)
    """
    return AT_MOST_TAKEN * forecast.total > budget


def can_be_held() -> bool:
    """Whether the C library is glibc, whose heap is known."""
    return _glibc() is not None


def _glibc() -> ctypes.CDLL | None:
    """The C library of this process, if it is that of GNU: others mean other things by it."""
    try:
        library = ctypes.CDLL(None)
    except (OSError, TypeError):
        return None
    if not hasattr(library, "gnu_get_libc_version"):
        return None
    library.malloc.argtypes, library.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
    library.free.argtypes, library.free.restype = [ctypes.c_void_p], None
    return library


def check(forecast: Forecast, memory: str | int | float | None, options: str) -> None:
    """Refuse a run over the budget, with what to do instead."""
    budget = as_bytes(memory)
    if is_near(forecast, budget):
        give_back_at_once()
    if forecast.total > budget:
        raise TooLarge(
            f"{forecast}, and the budget is {human(budget)}. "
            f"Options: {options}; or a larger budget, memory='…GB'."
        )
