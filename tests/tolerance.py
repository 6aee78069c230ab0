"""How far two ways of computing the same number may lie apart, derived from dtype and size."""

from __future__ import annotations

from typing import Any

import numpy as np


def rounding(terms: int, scale: Any, dtype: Any = np.float32, slack: float = 4.0) -> float:
    """The difference that rounding alone can make between two orders of the same sums.

    Every one of ``terms`` additions and multiplications on the way to a number rounds it by at most
    half of the dtype's ``eps``, relative to the numbers that are added. So a sum that is made in
    another order (another batch, other threads, another processor) moves by at most
    ``terms · eps · scale``, where ``scale`` is the size of what is added: give the arrays
    themselves, and the largest entry counts. ``slack`` stands for what is not counted one by one,
    such as exp and the division of a softmax.

    A test that uses it also shows that its enemy, the wrong version that it names, lies far beyond.

    >>> rounding(100, [-2.0, 0.5]) == 4 * 100 * 2.0**-23 * 2.0
    True
    """
    largest = float(np.abs(np.asarray(scale, dtype=np.float64)).max())
    return slack * terms * float(np.finfo(dtype).eps) * largest
