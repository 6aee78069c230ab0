"""Sensitivity: has every unit whose removal changes the target a score?"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from whence.core.registry import Better, Needs, metric, setting
from whence.games.protocol import AnyGame
from whence.metrics.effects import (
    TOLERANCE,
    WITHIN_TOLERANCE,
    are_zero,
    check_tolerance,
    falls_without_each,
    rounding_of,
)


@metric("sensitivity", version=1, cites="sundararajan2017axiomatic")
@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How many of the words whose removal changes the target have a score other than zero.

    It is a share of those units. Where no removal of one unit changes anything, there is nothing to
    miss, and it is one.
    """

    tolerance: float = setting(TOLERANCE, WITHIN_TOLERANCE)

    needs: ClassVar[Needs] = Needs.GAME | Needs.SCORES
    better: ClassVar[Better] = "higher"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    chance: ClassVar[float] = 0.5
    misleads: ClassVar[str] = (
        "A method that gives every word a score passes, however wrong the scores are: read it "
        "beside dummy, which catches that."
    )

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance)

    def passes(self, units: int) -> int:
        """One without each unit, and the whole text."""
        return units + 1

    def __call__(
        self, game: AnyGame, scores: Float[np.ndarray, "attribution unit"]
    ) -> Float[np.ndarray, " attribution"]:
        changes = ~are_zero(falls_without_each(game), self.tolerance, rounding_of(game))
        if not changes.any():
            return np.ones(len(scores))
        has_score = ~are_zero(scores, self.tolerance)
        return has_score[:, changes].mean(1)
