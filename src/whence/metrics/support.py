"""Support: insertion less deletion. It is what the evidence of signed scores measures."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int

from whence.core.registry import Better, Needs, metric, setting
from whence.games.protocol import AnyGame
from whence.metrics.curves import IN_STEPS, STEPS, Curves, area, curves


@metric("support", version=1, cites="petsiuk2018rise", aliases=("insertion-minus-deletion",))
@dataclass(frozen=True, slots=True)
class Support:
    """How much a ranking knows of what holds the target up: insertion less deletion.

    The area between the two curves. It is large if what is ranked first holds the target up, and
    what is ranked last speaks against it.
    """

    steps: int = setting(STEPS, IN_STEPS)

    needs: ClassVar[Needs] = Needs.GAME | Needs.RANKINGS
    better: ClassVar[Better] = "higher"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    chance: ClassVar[float] = 0.0
    misleads: ClassVar[str] = (
        "One number stands for two curves: what the text cannot do without, and what is "
        "enough by itself."
    )

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
