"""Comprehensiveness: how much of the target goes with the most important units."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int

from whence.core.registry import Better, Needs, metric
from whence.games.protocol import AnyGame
from whence.metrics.curves import SHARES, counts_of, first_units, values_of


@metric("comprehensiveness", version=1, cites="deyoung2020eraser")
@dataclass(frozen=True, slots=True)
class Comprehensiveness:
    """How far the target falls without the words that are ranked first.

    It is the mean fall without the most important 1, 5, 10, 20 and 50 % of the units. A share is
    rounded up to whole units, so that at least one is removed. The authors read the target as a
    probability.
    """

    needs: ClassVar[Needs] = Needs.GAME | Needs.RANKINGS
    better: ClassVar[Better] = "higher"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    chance: ClassVar[float] = 0.172  # the mean of the shares
    misleads: ClassVar[str] = (
        "Words that say the same hide one another: without one of them nothing falls. On a "
        "text of ten words, 1, 5 and 10 % are the same one word."
    )

    def passes(self, units: int) -> int:
        """One for each share, and the whole text."""
        del units
        return len(SHARES) + 1

    def __call__(
        self, game: AnyGame, rankings: Int[np.ndarray, "ranking unit"]
    ) -> Float[np.ndarray, " ranking"]:
        removed = first_units(rankings, counts_of(game.size))
        falls = game.full - values_of(game, ~removed)
        return falls.mean(1)
