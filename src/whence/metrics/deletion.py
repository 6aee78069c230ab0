"""Deletion: how fast the target falls when the most important units leave first."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int

from whence.core.registry import Better, Needs, metric
from whence.games.protocol import AnyGame
from whence.metrics.curves import STEPS, area, first_units, steps_of, values_of


@metric("deletion", version=1, cites="petsiuk2018rise")
@dataclass(frozen=True, slots=True)
class Deletion:
    """The area under the target's curve while units leave the text, the most important first.

    The units leave in at most ``steps`` steps of about equal size. A ranking that knows what holds
    the target up makes the curve fall early, and the area is small.
    """

    steps: int = STEPS

    needs: ClassVar[Needs] = Needs.GAME | Needs.RANKINGS
    better: ClassVar[Better] = "lower"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    chance: ClassVar[float] = 0.5

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps is at least 1, not {self.steps}")

    def passes(self, units: int) -> int:
        """One for each step, and the whole text."""
        return min(units, self.steps) + 1

    def __call__(
        self, game: AnyGame, rankings: Int[np.ndarray, "ranking unit"]
    ) -> Float[np.ndarray, " ranking"]:
        steps = steps_of(game.size, self.steps)
        removed = first_units(rankings, steps)
        return area(values_of(game, ~removed), steps)
