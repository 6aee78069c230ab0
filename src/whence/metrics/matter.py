"""Matter: support without signs. It is what the evidence of unsigned scores measures."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int

from whence.core.registry import Better, Needs, metric, setting
from whence.games.protocol import AnyGame
from whence.metrics.curves import IN_STEPS, STEPS, Curves, area, curves


@metric("matter", version=1, cites="petsiuk2018rise")
@dataclass(frozen=True, slots=True)
class Matter:
    """How much a ranking knows of what moves the target at all, for it or against it.

    It is how far deletion leads away from the target's value on the whole text, less how far away
    insertion still is. Scores without a sign cannot tell what speaks for the target from what
    speaks against it, and are not asked to.
    """

    steps: int = setting(STEPS, IN_STEPS)

    needs: ClassVar[Needs] = Needs.GAME | Needs.RANKINGS
    better: ClassVar[Better] = "higher"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    chance: ClassVar[float] = 0.0
    misleads: ClassVar[str] = (
        "Two words that pull in opposite directions cancel each other when both are removed, "
        "and seem not to matter."
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
        whole = curves.deletion[:, :1]
        away = np.abs(curves.deletion - whole)
        still_away = np.abs(curves.insertion - whole)
        return area(away - still_away, curves.steps)
