"""Insertion: how fast the target rises when the most important units enter an empty text first."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int

from whence.core.registry import Better, Needs, metric
from whence.games.protocol import AnyGame
from whence.metrics.curves import STEPS, area, first_units, steps_of, values_of


@metric("insertion", version=1, cites="petsiuk2018rise")
@dataclass(frozen=True, slots=True)
class Insertion:
    """The area under the target's curve while units enter an empty text, the most important first.

    The units enter in at most ``steps`` steps of about equal size. A ranking that knows what holds
    the target up makes the curve rise early, and the area is large.
    """

    steps: int = STEPS

    needs: ClassVar[Needs] = Needs.GAME | Needs.RANKINGS
    better: ClassVar[Better] = "higher"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    chance: ClassVar[float] = 0.5

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
