"""AOPC: the area over the perturbation curve, the mean fall over all steps of the removal."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int

from whence.core.registry import Better, Needs, metric, setting
from whence.games.protocol import AnyGame
from whence.metrics.curves import IN_STEPS, STEPS, first_units, steps_of, values_of

IDEAL_UNITS = 100  # of the game that ``chance`` is about


@metric("aopc", version=1, cites="samek2017evaluating")
@dataclass(frozen=True, slots=True)
class AreaOverCurve:
    """How far the target has fallen, on average, while words leave, the most important first.

    It is the mean fall over the removals of the first 1, 2, …, d units; on a text with more units
    than ``steps``, over that many removals of about equal distance.
    """

    steps: int = setting(STEPS, IN_STEPS)

    needs: ClassVar[Needs] = Needs.GAME | Needs.RANKINGS
    better: ClassVar[Better] = "higher"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    misleads: ClassVar[str] = (
        "How high it can be depends on the model and the text, so numbers of two models do not "
        "compare; normalised-comprehensiveness does."
    )

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps is at least 1, not {self.steps}")

    @property
    def chance(self) -> float:
        """The mean share that is removed: without half of the units, half of the target is gone."""
        return float(steps_of(IDEAL_UNITS, self.steps)[1:].mean() / IDEAL_UNITS)

    def passes(self, units: int) -> int:
        """One for each step, and the whole text."""
        return min(units, self.steps) + 1

    def __call__(
        self, game: AnyGame, rankings: Int[np.ndarray, "ranking unit"]
    ) -> Float[np.ndarray, " ranking"]:
        steps = steps_of(game.size, self.steps)[1:]
        removed = first_units(rankings, steps)
        falls = game.full - values_of(game, ~removed)
        return falls.mean(1)
