"""Two runs do not work in one folder: the second is refused while the first lives.

The lock is the operating system's, so it is gone with the process that holds it, however that
ended.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from whence.core.errors import InputError
from whence.runs.places import Folder, Place

LOCK = ".lock"


@contextmanager
def held(place: Place) -> Iterator[None]:
    """Keep others out of a folder. (An object store has no locks: there nobody is kept out.)"""
    if not isinstance(place, Folder):
        yield
        return
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return

    try:
        place.path.mkdir(parents=True, exist_ok=True)
        handle = os.open(place.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as problem:
        raise InputError(
            f"cannot write into {place.name!r}: {problem.strerror or problem}."
        ) from problem
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 100, 0).decode(errors="replace").strip() or "unknown"
            raise InputError(
                f"another run works in {place.name!r} (process {holder}). "
                "Wait until it is done, or stop it; what it has done is kept."
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(handle)
