"""Deletion and insertion curves: the target while units leave the text, or enter an empty one.

The units go in the order of a ranking, the most important first. The areas under these curves are
metrics, and the evidence stands on the area between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.core.evidence import USUAL_STEPS
from whence.games.protocol import AnyGame

STEPS = USUAL_STEPS
# the sentence of the setting ``steps``, for whatever metric has it
IN_STEPS = "In how many steps of about equal size all units go, at most."
# of the units that are removed, or kept, as in ERASER (DeYoung et al. 2020)
SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)


@dataclass(frozen=True, eq=False)
class Curves:
    """Both curves of several rankings: the target's value after each step.

    ``steps`` counts the units removed, or put in, so far.
    """

    steps: Int[np.ndarray, " step"]
    deletion: Float[np.ndarray, "ranking step"]
    insertion: Float[np.ndarray, "ranking step"]

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest value on any curve, and the largest."""
        both = (self.deletion, self.insertion)
        return float(min(c.min() for c in both)), float(max(c.max() for c in both))

    @property
    def largest(self) -> float:
        """The largest value on any curve, whatever its sign: the scale of rounding errors."""
        return float(max(np.abs(self.deletion).max(), np.abs(self.insertion).max()))


def area(
    heights: Float[np.ndarray, "ranking step"], steps: Int[np.ndarray, " step"]
) -> Float[np.ndarray, " ranking"]:
    """The area under each row by the trapezoidal rule, the whole way counted as one.

    >>> area(np.array([[1.0, 0.5, 0.0]]), np.array([0, 1, 2]))
    array([0.5])
    """
    return np.trapezoid(heights, steps / steps[-1], axis=1)


def steps_of(units: int, most: int = STEPS) -> Int[np.ndarray, " step"]:
    """From no unit to all, in at most ``most`` steps of about equal size.

    >>> steps_of(4).tolist(), steps_of(25, 5).tolist()
    ([0, 1, 2, 3, 4], [0, 5, 10, 15, 20, 25])
    """
    even = np.linspace(0, units, min(units, most) + 1)
    return np.unique(np.round(even).astype(np.int64))


def counts_of(units: int) -> Int[np.ndarray, " share"]:
    """How many units each of ``SHARES`` is: rounded up, so that it is at least one.

    >>> counts_of(10).tolist(), counts_of(140).tolist()
    ([1, 1, 1, 2, 5], [2, 7, 14, 28, 70])
    """
    return np.ceil(np.array(SHARES) * units).astype(np.int64)


def first_units(
    rankings: Int[np.ndarray, "ranking unit"], counts: Int[np.ndarray, " count"]
) -> Bool[np.ndarray, "ranking count unit"]:
    """For each ranking and each count, a mask that is True for so many of its first units.

    >>> first_units(np.array([[2, 0, 1]]), np.array([0, 1]))[0].tolist()
    [[False, False, False], [False, False, True]]
    """
    place = np.argsort(rankings, axis=1)[:, None, :]
    return place < counts[:, None]


def values_of(game: AnyGame, masks: Bool[np.ndarray, "*rows unit"]) -> Float[np.ndarray, "*rows"]:
    """The game's value at each mask of an array of them, in one call of the game."""
    rows = masks.reshape(-1, game.size)
    return game(rows).reshape(masks.shape[:-1])


def curve_masks(
    rankings: Int[np.ndarray, "ranking unit"], steps: Int[np.ndarray, " step"]
) -> Bool[np.ndarray, "curve ranking step unit"]:
    """The masks of the deletion curves (first) and of the insertion curves.

    >>> curve_masks(np.array([[2, 0, 1]]), np.array([0, 1, 3]))[0, 0].tolist()
    [[True, True, True], [True, True, False], [False, False, False]]
    """
    first = first_units(rankings, steps)
    return np.stack([~first, first])


def curves(game: AnyGame, rankings: Int[np.ndarray, "ranking unit"], most: int = STEPS) -> Curves:
    """Both curves of several rankings, in one call of the game.

    >>> import whence
    >>> v = whence.game(whence.load("sentiment"), "not bad at all")
    >>> c = curves(v, np.array([[0, 1, 2, 3]]))
    >>> bool(c.deletion[0, 0] == c.insertion[0, -1] == v.full)
    True
    """
    steps = steps_of(game.size, most)
    deletion, insertion = values_of(game, curve_masks(rankings, steps))
    return Curves(steps, deletion, insertion)
