"""Small matrices on one thread.

A second thread waits longer for the first than the product takes, on a busy machine a hundred
times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

from whence.models.unbroken import unbroken

P = ParamSpec("P")
T = TypeVar("T")


def on_one_thread(function: Callable[P, T]) -> Callable[P, T]:
    """The function, with numpy's and scipy's matrix products on one thread; torch keeps its own.

    >>> @on_one_thread
    ... def product(a, b):
    ...     return a * b
    >>> product(2, 3)
    6
    """

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with unbroken(_pools().limit(limits=1, user_api="blas")):
            return function(*args, **kwargs)

    return run


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()
