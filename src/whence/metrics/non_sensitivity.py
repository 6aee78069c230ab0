"""Non-sensitivity: on how many units do score and effect disagree on what is zero?"""

from dataclasses import dataclass
from math import inf
from typing import ClassVar, Literal

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

IDEAL_UNITS = 100  # of the game that ``chance`` is about; half of them do nothing


@metric("non-sensitivity", version=1, cites="nguyen2020quantitative")
@dataclass(frozen=True, slots=True)
class NonSensitivity:
    """On how many words the scores and the model disagree about whether the word does nothing.

    A unit counts if its score is zero though the target changes without it, or if its score is not
    zero though the target stays the same.
    """

    tolerance: float = setting(TOLERANCE, WITHIN_TOLERANCE)
    counted: Literal["units", "share"] = setting(
        "units", "A number of units, as in the paper, or their share, which texts compare by."
    )

    needs: ClassVar[Needs] = Needs.GAME | Needs.SCORES
    better: ClassVar[Better] = "lower"
    misleads: ClassVar[str] = (
        "No word of a transformer does exactly nothing, so the number hangs on the tolerance. "
        "Scores that are all other than zero get away with it where every word does something."
    )

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance)

    @property
    def range(self) -> tuple[float, float]:
        """From none to all."""
        return (0.0, 1.0) if self.counted == "share" else (0.0, inf)

    @property
    def chance(self) -> float:
        """Half of the units: two coins that fall alike every other time."""
        return 0.5 if self.counted == "share" else IDEAL_UNITS / 2

    def passes(self, units: int) -> int:
        """One without each unit, and the whole text."""
        return units + 1

    def __call__(
        self, game: AnyGame, scores: Float[np.ndarray, "attribution unit"]
    ) -> Float[np.ndarray, " attribution"]:
        does_nothing = are_zero(falls_without_each(game), self.tolerance, rounding_of(game))
        has_no_score = are_zero(scores, self.tolerance)
        disagree = has_no_score ^ does_nothing
        return disagree.mean(1) if self.counted == "share" else disagree.sum(1).astype(float)
