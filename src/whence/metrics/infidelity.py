"""Infidelity: how far are the sums of scores from what the removal of many units does?"""

from dataclasses import dataclass
from math import inf
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from whence.core.registry import Better, Needs, metric, setting
from whence.games.protocol import AnyGame
from whence.metrics.curves import steps_of
from whence.metrics.walks import SO_MANY_SUBSETS, WALKS, check_samples, removals, usual_sizes


@metric("infidelity", version=2, cites="yeh2019infidelity")
@dataclass(frozen=True, slots=True)
class Infidelity:
    """How wrongly the scores of many words, added up, foretell the fall without these words.

    It is the mean squared error over random subsets of several sizes, in the target's unit squared.
    ``normalise`` first brings the scores to the scale that fits best, so that methods whose scores
    have another unit compare. It never turns the signs round: such scores are scaled to zero.
    """

    normalise: bool = setting(True, "Bring the scores to the scale that fits best.")
    samples: int = setting(WALKS, SO_MANY_SUBSETS)

    needs: ClassVar[Needs] = Needs.GAME | Needs.SCORES
    better: ClassVar[Better] = "lower"
    chance: ClassVar[float] = 0.0097  # by simulation: twice the variance of a fall of one size
    misleads: ClassVar[str] = (
        "Scores that are all alike fit well where the fall depends on how many words are gone. "
        "Scores that are wrong in every sign are no worse than none at all."
    )

    def __post_init__(self) -> None:
        check_samples(self.samples)

    @property
    def range(self) -> tuple[float, float]:
        """Bounded on the best scale: scores that say nothing are scaled to zero."""
        return (0.0, 1.0) if self.normalise else (0.0, inf)

    def passes(self, units: int) -> int:
        """One for each subset, the whole text and the empty one."""
        return self.samples * len(usual_sizes(units)) + 2

    def __call__(
        self, game: AnyGame, scores: Float[np.ndarray, "attribution unit"]
    ) -> Float[np.ndarray, " attribution"]:
        # all units at once, too: what they sum to is what the whole text is more than the empty one
        sizes = steps_of(game.size)[1:]
        removed = removals(game, self.samples, sizes)
        foretold = removed.sums_of(scores)
        if self.normalise:
            foretold = _on_the_best_scale(foretold, removed.falls)
        return ((foretold - removed.falls) ** 2).mean((1, 2))


def _on_the_best_scale(
    sums: Float[np.ndarray, "attribution walk size"], falls: Float[np.ndarray, "walk size"]
) -> Float[np.ndarray, "attribution walk size"]:
    """The sums, times the factor with the least squared error: E[sum · fall] / E[sum²], or 0.

    A negative factor would make the reverse of the truth as good as the truth.
    """
    largest = np.abs(sums).max((1, 2), keepdims=True)
    sums = sums / np.where(largest > 0, largest, 1.0)  # so that no square vanishes
    products = (sums * falls).sum((1, 2), keepdims=True)
    squares = (sums**2).sum((1, 2), keepdims=True)
    return sums * np.maximum(products, 0.0) / np.where(squares > 0, squares, 1.0)
