"""Deletion and insertion curves: the target as units are removed from the text, or put into an empty one, in the order of a ranking."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.games.game import Game

STEPS = 10  # of a curve, at most: a longer text is removed a tenth at a time


@dataclass(frozen=True, eq=False)
class Curves:
    """The target's value after each step, for several rankings; ``steps`` counts the units removed, or inserted, so far."""

    steps: Int[np.ndarray, " step"]
    deletion: Float[np.ndarray, "ranking step"]
    insertion: Float[np.ndarray, "ranking step"]

    def support(self) -> Float[np.ndarray, " ranking"]:
        """The area between the insertion and the deletion curve: large if what is ranked first holds the target up."""
        return self._area(self.insertion - self.deletion)

    def matter(self) -> Float[np.ndarray, " ranking"]:
        """The same without signs, for rankings by importance alone: how far deletion leads away from the target's value on the whole
        text, less how far away insertion still is."""
        whole = self.deletion[:, :1]
        return self._area(np.abs(self.deletion - whole) - np.abs(self.insertion - whole))

    def _area(self, heights: Float[np.ndarray, "ranking step"]) -> Float[np.ndarray, " ranking"]:
        return np.trapezoid(heights, self.steps / self.steps[-1], axis=1)


def steps_of(units: int, most: int = STEPS) -> Int[np.ndarray, " step"]:
    """From no unit to all, in at most ``most`` steps of about equal size.

    >>> steps_of(4).tolist(), steps_of(25, 5).tolist()
    ([0, 1, 2, 3, 4], [0, 5, 10, 15, 20, 25])
    """
    return np.unique(np.round(np.linspace(0, units, min(units, most) + 1)).astype(np.int64))


def curve_masks(
    rankings: Int[np.ndarray, "ranking unit"], steps: Int[np.ndarray, " step"]
) -> Bool[np.ndarray, "curve ranking step unit"]:
    """The masks of the deletion curves (first) and of the insertion curves.

    >>> curve_masks(np.array([[2, 0, 1]]), np.array([0, 1, 3]))[0, 0].tolist()
    [[True, True, True], [True, True, False], [False, False, False]]
    """
    place = np.argsort(rankings, axis=1)[:, None, :]
    first = place < steps[:, None]
    return np.stack([~first, first])


def curves(game: Game, rankings: Int[np.ndarray, "ranking unit"], most: int = STEPS) -> Curves:
    """The curves of several rankings, in one call of the game.

    >>> import whence
    >>> v = whence.game(whence.load("sentiment"), "not bad at all")
    >>> c = curves(v, np.array([[0, 1, 2, 3]]))
    >>> bool(c.deletion[0, 0] == c.insertion[0, -1] == v.full)
    True
    """
    steps = steps_of(game.size, most)
    masks = curve_masks(rankings, steps)
    deletion, insertion = game(masks.reshape(-1, game.size)).reshape(masks.shape[:3])
    return Curves(steps, deletion, insertion)
