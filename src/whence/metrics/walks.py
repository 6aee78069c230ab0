"""Walks: all units leave the text one by one, in an order that is drawn by lot.

The sets that are gone along a walk are random subsets of every size. Infidelity, sensitivity-n,
faithfulness-correlation and dummy all look at the same walks, and so do all rows of a call: a game
that remembers pays for them once. They are drawn from a stream of their own, so that they know
nothing of the rankings of the control.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.games.protocol import AnyGame
from whence.metrics.curves import first_units, steps_of, values_of

WALKS = 100
SO_MANY_SUBSETS = "How many random subsets of each size are removed."
WALKS_STREAM = 4  # of random numbers; rankings.py, control.py and windows.py have the others


@dataclass(frozen=True, eq=False)
class Removals:
    """Random subsets of several sizes, and how far the target falls without each."""

    subsets: Bool[np.ndarray, "walk size unit"]
    falls: Float[np.ndarray, "walk size"]

    def sums_of(
        self, scores: Float[np.ndarray, "attribution unit"]
    ) -> Float[np.ndarray, "attribution walk size"]:
        """What the scores of each subset sum to."""
        return np.moveaxis(self.subsets @ scores.T, -1, 0)


def walks(game: AnyGame, count: int = WALKS) -> Int[np.ndarray, "walk unit"]:
    """Random orders of the game's players. Fewer walks are the first of more.

    >>> import whence
    >>> v = whence.game(whence.load("sentiment"), "not bad at all")
    >>> bool((walks(v, 2) == walks(v, 9)[:2]).all())
    True
    """
    rng = np.random.default_rng([WALKS_STREAM, *game.digest])
    sorted_rows = np.tile(np.arange(game.size), (count, 1))
    return rng.permuted(sorted_rows, axis=1)


def usual_sizes(units: int) -> Int[np.ndarray, " size"]:
    """The sizes of subsets that are neither none nor all: those of the steps of a curve.

    >>> usual_sizes(3).tolist(), usual_sizes(50).tolist()
    ([1, 2], [5, 10, 15, 20, 25, 30, 35, 40, 45])
    """
    return steps_of(units)[1:-1]


def removals(game: AnyGame, count: int, sizes: Int[np.ndarray, " size"]) -> Removals:
    """``count`` random subsets of each of the sizes, removed; in one call of the game."""
    subsets = first_units(walks(game, count), sizes)
    return Removals(subsets, game.full - values_of(game, ~subsets))


def check_samples(samples: int) -> None:
    """Raise a ValueError unless there are enough subsets for a correlation."""
    if samples < 2:
        raise ValueError(f"samples is at least 2, not {samples}")
