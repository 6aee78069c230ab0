"""Monotonicity: do larger scores belong to units whose removal does more?"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from whence.core.registry import Better, Needs, metric
from whence.games.protocol import AnyGame
from whence.metrics.correlation import spearman
from whence.metrics.effects import are_zero, falls_without_each, rounding_of


@metric(
    "monotonicity",
    version=1,
    cites="nguyen2020quantitative",
    aliases=("monotonicity-correlation",),
)
@dataclass(frozen=True, slots=True)
class Monotonicity:
    """Whether words with larger scores, whatever the sign, matter more when they are removed.

    It is Spearman's rank correlation between the sizes of the scores and the loss without each
    unit: the squared difference to the target's value on the whole text. Equal values share the
    mean of their ranks. Where all scores, or all losses, are equal, it is zero.
    """

    needs: ClassVar[Needs] = Needs.GAME | Needs.SCORES
    better: ClassVar[Better] = "higher"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    chance: ClassVar[float] = 0.0
    misleads: ClassVar[str] = (
        "It looks at one removal at a time, so occlusion gets a perfect 1 by its own definition, "
        "and units that stand in for each other seem not to matter."
    )

    def passes(self, units: int) -> int:
        """One without each unit, and the whole text."""
        return units + 1

    def __call__(
        self, game: AnyGame, scores: Float[np.ndarray, "attribution unit"]
    ) -> Float[np.ndarray, " attribution"]:
        falls = falls_without_each(game)
        falls[are_zero(falls, 0.0, rounding_of(game))] = 0.0
        # the ranks of |fall| are those of the loss, fall²
        return spearman(np.abs(scores), np.abs(falls)[None])
