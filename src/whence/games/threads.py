"""Small matrices on one thread.

A second thread waits longer for the first than the product takes, on a busy machine a hundred
times as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


@contextmanager
def one_thread() -> Iterator[None]:
    """numpy's and scipy's matrix products on one thread within a block; torch keeps its own.

    >>> with one_thread():
    ...     pass
    """
    with _pools().limit(limits=1, user_api="blas"):
        yield


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()
