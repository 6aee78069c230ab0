"""Deletion: how fast the target falls when the most important units leave first."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int

from whence.core.registry import Better, Needs, metric, setting
from whence.games.protocol import AnyGame
from whence.metrics.curves import IN_STEPS, STEPS, area, first_units, steps_of, values_of


@metric("deletion", version=1, cites="petsiuk2018rise", aliases=("deletion-curve",))
@dataclass(frozen=True, slots=True)
class Deletion:
    """How fast the target falls when words leave the text, the most important first.

    It is the area under that curve. A ranking that knows what holds the target up makes the curve
    fall early, and the area is small.
    """

    steps: int = setting(STEPS, IN_STEPS)

    needs: ClassVar[Needs] = Needs.GAME | Needs.RANKINGS
    better: ClassVar[Better] = "lower"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    chance: ClassVar[float] = 0.5
    misleads: ClassVar[str] = (
        "A ranking may do well because it breaks the text early, not because it found what "
        "matters; the random control breaks texts too."
    )

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
