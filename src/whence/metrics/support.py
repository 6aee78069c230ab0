"""Support: insertion less deletion. It is what the evidence of signed scores measures."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int

from whence.core.registry import Better, Needs, metric
from whence.games.protocol import AnyGame
from whence.metrics.curves import STEPS, Curves, area, curves


@metric("support", version=1, cites="petsiuk2018rise")
@dataclass(frozen=True, slots=True)
class Support:
    """The area between the insertion and the deletion curve: insertion less deletion.

    It is large if what is ranked first holds the target up, and what is ranked last speaks against
    it. Each curve has at most ``steps`` steps.
    """

    steps: int = STEPS

    needs: ClassVar[Needs] = Needs.GAME | Needs.RANKINGS
    better: ClassVar[Better] = "higher"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    chance: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps is at least 1, not {self.steps}")

    def passes(self, units: int) -> int:
        """Two for each step; both curves begin and end with the whole text and the empty one."""
        return 2 * min(units, self.steps)

    def __call__(
        self, game: AnyGame, rankings: Int[np.ndarray, "ranking unit"]
    ) -> Float[np.ndarray, " ranking"]:
        return self.of(curves(game, rankings, self.steps))

    def of(self, curves: Curves) -> Float[np.ndarray, " ranking"]:
        """The same from curves that are there already."""
        return area(curves.insertion - curves.deletion, curves.steps)
