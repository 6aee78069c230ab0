"""What metrics of gold units share: the units that a ranking puts first, beside those marked."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int

# Said of every metric that asks for marked words.
MISLEADS = (
    "Where people marked the units it is agreement with people, not truth: a model may have "
    "reasons of its own, and an explanation that shows them is right."
)


def first_of(
    rankings: Int[np.ndarray, "ranking unit"], count: int
) -> Bool[np.ndarray, "ranking unit"]:
    """Marks the first ``count`` units of each ranking.

    >>> first_of(np.array([[2, 0, 1]]), 2).tolist()
    [[True, False, True]]
    """
    marked = np.zeros(rankings.shape, dtype=bool)
    np.put_along_axis(marked, rankings[:, :count], True, axis=1)
    return marked
