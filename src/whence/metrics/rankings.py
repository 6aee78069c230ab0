"""Rankings: of scores, and at random."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from math import factorial

import numpy as np
from jaxtyping import Float, Int

from whence.core.evidence import USUAL_RANKINGS
from whence.games.protocol import AnyGame

RANKINGS = USUAL_RANKINGS
MOST_LISTED = 8  # units of which all orders are listed, if there are few enough of them
# of random numbers, so that the method ``random``, of the same seed, does not share the control's
CONTROL_STREAM = 1
TIES_STREAM = 2


@dataclass(frozen=True, eq=False)
class RandomRankings:
    """What every ranking of the same units is held against."""

    orders: Int[np.ndarray, "ranking unit"]
    is_complete: bool  # every order that there is, once

    def __len__(self) -> int:
        return len(self.orders)


def random_rankings(game: AnyGame, count: int = RANKINGS, seed: int = 0) -> RandomRankings:
    """Random rankings of the game's players, or all of them where there are no more than that.

    >>> import whence
    >>> len(random_rankings(whence.game(whence.load("sentiment"), "not bad at all")))
    24
    """
    units = game.size
    if _are_listed(units, count):
        return RandomRankings(np.array(list(permutations(range(units)))), is_complete=True)
    rng = np.random.default_rng([seed, CONTROL_STREAM, *game.digest])
    sorted_rows = np.tile(np.arange(units), (count, 1))
    return RandomRankings(rng.permuted(sorted_rows, axis=1), is_complete=False)


def number_of_rankings(units: int, count: int = RANKINGS) -> int:
    """How many random rankings there will be: all orders, where these are no more than ``count``.

    >>> number_of_rankings(4), number_of_rankings(5)
    (24, 100)
    """
    return factorial(units) if _are_listed(units, count) else count


def _are_listed(units: int, count: int) -> bool:
    return units <= MOST_LISTED and factorial(units) <= count


def rankings_of(
    scores: Float[np.ndarray, " unit"], game: AnyGame, seed: int = 0
) -> Int[np.ndarray, "1 unit"]:
    """The ranking of the scores; where some are equal, by lots drawn from the seed."""
    return orders_of(scores, np.random.default_rng([seed, TIES_STREAM, *game.digest]))


def orders_of(
    scores: Float[np.ndarray, " unit"], rng: np.random.Generator
) -> Int[np.ndarray, "1 unit"]:
    """The ranking of the scores, highest first, with equal ones in random order.

    >>> orders_of(np.array([0.1, 0.7, 0.2]), np.random.default_rng(0)).tolist()
    [[1, 2, 0]]
    """
    lots = rng.random(len(scores))
    return np.lexsort((lots, -scores))[None]
