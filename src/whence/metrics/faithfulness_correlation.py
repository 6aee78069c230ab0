"""Faithfulness correlation: sensitivity-n at one size of subsets."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from whence.core.registry import Better, Needs, metric, setting
from whence.games.protocol import AnyGame
from whence.metrics.correlation import pearson
from whence.metrics.walks import SO_MANY_SUBSETS, WALKS, check_samples, removals


@metric("faithfulness-correlation", version=1, cites="bhatt2020evaluating")
@dataclass(frozen=True, slots=True)
class FaithfulnessCorrelation:
    """Whether the scores of a few words, added up, go along with the fall without these words.

    It is the correlation of sum and fall over random subsets of one size: ``share`` of the units,
    at least one. Where sums or falls do not vary, it is zero.
    """

    share: float = setting(0.2, "Which share of the units each subset holds.")
    samples: int = setting(WALKS, SO_MANY_SUBSETS)

    needs: ClassVar[Needs] = Needs.GAME | Needs.SCORES
    better: ClassVar[Better] = "higher"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    chance: ClassVar[float] = 0.0
    misleads: ClassVar[str] = (
        "The size of the subsets decides what is asked: single words, or half of the text. "
        "sensitivity-n takes the mean over sizes."
    )

    def __post_init__(self) -> None:
        check_samples(self.samples)
        if not 0 < self.share < 1:
            raise ValueError(f"share is between 0 and 1, not {self.share}")

    def passes(self, units: int) -> int:
        """One for each subset, and the whole text."""
        del units
        return self.samples + 1

    def __call__(
        self, game: AnyGame, scores: Float[np.ndarray, "attribution unit"]
    ) -> Float[np.ndarray, " attribution"]:
        # rounded as the sizes of sensitivity-n are, so that both ask for the same masks
        size = max(1, round(self.share * game.size))
        removed = removals(game, self.samples, np.array([size]))
        return pearson(removed.sums_of(scores)[:, :, 0], removed.falls[:, 0][None])
