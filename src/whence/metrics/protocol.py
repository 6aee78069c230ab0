"""What a metric is: a function of a game and of rankings that says which values are good ones."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from whence.core.registry import Better, Needs
from whence.games.protocol import AnyGame


@runtime_checkable
class Metric(Protocol):
    """One number for each ranking. Chance gets what the same function gives random rankings.

    ``better`` says which values are good. ``range`` holds the values on a game whose own values
    lie between 0 and 1; on other games a metric is in the game's unit, unless it has none.
    ``chance`` is the mean over random rankings of a hundred units that act independently and
    whose values sum to one. On any other game it is the random control that says what chance gets.
    """

    @property
    def needs(self) -> Needs:
        """A game, and either rankings or scores."""
        ...

    @property
    def better(self) -> Better:
        """Which values are the good ones: "higher" or "lower"."""
        ...

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest value, on a game with values from 0 to 1."""
        ...

    @property
    def chance(self) -> float:
        """What random rankings get, where units act independently."""
        ...

    def passes(self, units: int) -> int:
        """The most masks that one ranking of so many units asks the game for."""
        ...

    def __call__(self, game: AnyGame, rankings: Any, /) -> Float[np.ndarray, " ranking"]:
        """The value of each row of "ranking unit", the most important unit first.

        A metric that needs scores gets a row of "attribution unit" instead.
        """
        ...
