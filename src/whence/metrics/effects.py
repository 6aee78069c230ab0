"""What the removal of single units does, and what counts as nothing."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from whence.games.protocol import AnyGame
from whence.metrics.standing import ROUNDING

TOLERANCE = 1e-3
WITHIN_TOLERANCE = (
    "Up to which share of the largest score, or of the largest effect, one counts as zero."
)


def falls_without_each(game: AnyGame) -> Float[np.ndarray, " unit"]:
    """How far the target falls without each unit, all others kept.

    >>> import whence
    >>> v = whence.game(whence.load("sentiment"), "not bad at all")
    >>> falls = falls_without_each(v)
    >>> bool(falls[0] == v.full - v([[0, 1, 1, 1]])[0])
    True
    """
    return game.full - game(~np.eye(game.size, dtype=bool))


def are_zero(
    values: Float[np.ndarray, "*rows unit"], tolerance: float, rounding: float = 0.0
) -> Bool[np.ndarray, "*rows unit"]:
    """Which values are zero, or as good as zero beside the largest of their row.

    >>> are_zero(np.array([2.0, -0.001, 0.5]), tolerance=0.001).tolist()
    [False, True, False]
    """
    sizes = np.abs(values)
    largest = sizes.max(-1, keepdims=True)
    return sizes <= np.maximum(tolerance * largest, rounding)


def rounding_of(game: AnyGame) -> float:
    """Differences of the game's values that are no more than this are rounding errors."""
    return ROUNDING * abs(game.full)


def check_tolerance(tolerance: float) -> None:
    """Raise a ValueError unless the tolerance leaves something above it."""
    if not 0 <= tolerance < 1:
        raise ValueError(f"tolerance is from 0 to below 1, not {tolerance}")
