"""Insertion: how fast the target rises when the most important units enter an empty text first."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int

from whence.core.registry import Better, Needs, metric, setting
from whence.games.protocol import AnyGame
from whence.metrics.curves import IN_STEPS, STEPS, area, first_units, steps_of, values_of


@metric("insertion", version=1, cites="petsiuk2018rise", aliases=("insertion-curve",))
@dataclass(frozen=True, slots=True)
class Insertion:
    """How fast the target rises when words enter an empty text, the most important first.

    It is the area under that curve. A ranking that knows what holds the target up makes the curve
    rise early, and the area is large.
    """

    steps: int = setting(STEPS, IN_STEPS)

    needs: ClassVar[Needs] = Needs.GAME | Needs.RANKINGS
    better: ClassVar[Better] = "higher"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    chance: ClassVar[float] = 0.5
    misleads: ClassVar[str] = (
        "The first steps are texts of one or two words, far from what the model was trained "
        "on. A word that only works with another one does nothing alone."
    )

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps is at least 1, not {self.steps}")

    def passes(self, units: int) -> int:
        """One for each step, and the empty text."""
        return min(units, self.steps) + 1

    def __call__(
        self, game: AnyGame, rankings: Int[np.ndarray, "ranking unit"]
    ) -> Float[np.ndarray, " ranking"]:
        steps = steps_of(game.size, self.steps)
        kept = first_units(rankings, steps)
        return area(values_of(game, kept), steps)
