"""Sensitivity-n: do the sums of scores go along with what the removal of n units does?"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from whence.core.registry import Better, Needs, metric, setting
from whence.games.protocol import AnyGame
from whence.metrics.correlation import pearson
from whence.metrics.walks import SO_MANY_SUBSETS, WALKS, check_samples, removals, usual_sizes


@metric("sensitivity-n", version=1, cites="ancona2018towards")
@dataclass(frozen=True, slots=True)
class SensitivityN:
    """Whether subsets of words with a larger sum of scores are those without which more falls.

    It is the correlation of sum and fall over random subsets of one size n, averaged over about ten
    sizes from few units to nearly all. Where sums or falls do not vary, it is zero.
    """

    samples: int = setting(WALKS, SO_MANY_SUBSETS)

    needs: ClassVar[Needs] = Needs.GAME | Needs.SCORES
    better: ClassVar[Better] = "higher"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    chance: ClassVar[float] = 0.0
    misleads: ClassVar[str] = (
        "It believes in sums: where words act together, no scores reach 1. Scores without a sign "
        "cannot foretell a target that some words push down."
    )

    def __post_init__(self) -> None:
        check_samples(self.samples)

    def passes(self, units: int) -> int:
        """One for each subset, and the whole text."""
        return self.samples * len(usual_sizes(units)) + 1

    def __call__(
        self, game: AnyGame, scores: Float[np.ndarray, "attribution unit"]
    ) -> Float[np.ndarray, " attribution"]:
        sizes = usual_sizes(game.size)
        removed = removals(game, self.samples, sizes)
        if len(sizes) == 0:  # one unit has no subset of which something is left
            return np.zeros(len(scores))
        sums = np.swapaxes(removed.sums_of(scores), 1, 2)
        return pearson(sums, removed.falls.T[None]).mean(1)
