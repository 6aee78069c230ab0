"""Sufficiency: how much of the target is missing when only the most important units are kept."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int

from whence.core.registry import Better, Needs, metric
from whence.games.protocol import AnyGame
from whence.metrics.curves import SHARES, counts_of, first_units, values_of


@metric("sufficiency", version=1, cites="deyoung2020eraser")
@dataclass(frozen=True, slots=True)
class Sufficiency:
    """What is missing of the target when only the words that are ranked first are kept.

    It is the mean fall when only the most important 1, 5, 10, 20 and 50 % of the units are kept. A
    share is rounded up to whole units, so that at least one is kept. The authors read the target
    as a probability.
    """

    needs: ClassVar[Needs] = Needs.GAME | Needs.RANKINGS
    better: ClassVar[Better] = "lower"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    chance: ClassVar[float] = 0.828  # one less the mean of the shares
    misleads: ClassVar[str] = (
        "A few words without the others are hardly a text: the model may be sure of anything. On "
        "a text of ten words, 1, 5 and 10 % are the same one word."
    )

    def passes(self, units: int) -> int:
        """One for each share, and the whole text."""
        del units
        return len(SHARES) + 1

    def __call__(
        self, game: AnyGame, rankings: Int[np.ndarray, "ranking unit"]
    ) -> Float[np.ndarray, " ranking"]:
        kept = first_units(rankings, counts_of(game.size))
        missing = game.full - values_of(game, kept)
        return missing.mean(1)
