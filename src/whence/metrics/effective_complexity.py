"""Effective complexity: how many of the first units are enough?"""

from dataclasses import dataclass
from math import inf, sqrt
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int

from whence.core.registry import Better, Needs, metric, setting
from whence.games.protocol import AnyGame
from whence.metrics.curves import IN_STEPS, STEPS, first_units, steps_of, values_of

IDEAL_UNITS = 100  # of the game that ``chance`` is about


@metric("effective-complexity", version=1, cites="nguyen2020quantitative")
@dataclass(frozen=True, slots=True)
class EffectiveComplexity:
    """How many of the words that are ranked first are enough to hold the target.

    It is the smallest k for which the loss with all but the first k units removed is at most
    ``epsilon`` of the loss with all removed. The loss is the squared difference to the target's
    value on the whole text. On a text with more units than ``steps``, k is one of that many steps.
    """

    epsilon: float = setting(
        0.01, "The loss that is allowed, as a share of the loss without any unit."
    )
    steps: int = setting(STEPS, IN_STEPS)
    counted: Literal["units", "share"] = setting(
        "units", "A number of units, as in the paper, or their share, which texts compare by."
    )

    needs: ClassVar[Needs] = Needs.GAME | Needs.RANKINGS
    better: ClassVar[Better] = "lower"
    misleads: ClassVar[str] = (
        "A few words without the others are hardly a text, and the target may be reached by "
        "accident: the smallest k counts, also if more units lead away again."
    )

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon < 1:
            raise ValueError(f"epsilon is from 0 to below 1, not {self.epsilon}")
        if self.steps < 1:
            raise ValueError(f"steps is at least 1, not {self.steps}")

    @property
    def range(self) -> tuple[float, float]:
        """From none to all."""
        return (0.0, 1.0) if self.counted == "share" else (0.0, inf)

    @property
    def chance(self) -> float:
        """Where all but √epsilon of the target is there, up to about one unit of a hundred."""
        left = sqrt(self.epsilon)
        units_in_a_step = IDEAL_UNITS / min(self.steps, IDEAL_UNITS)
        # one unit less where little is left (by renewal theory, for weights that are exponential
        # or zero), half a unit more where half is left (by symmetry), a line between; and the
        # step is as good as its end
        enough = IDEAL_UNITS * (1 - left) - 1 + 3 * left + (units_in_a_step - 1) / 2
        enough = min(enough, IDEAL_UNITS)
        return enough / IDEAL_UNITS if self.counted == "share" else enough

    def passes(self, units: int) -> int:
        """One for each step, the whole text and the empty one."""
        return min(units, self.steps) + 1

    def __call__(
        self, game: AnyGame, rankings: Int[np.ndarray, "ranking unit"]
    ) -> Float[np.ndarray, " ranking"]:
        steps = steps_of(game.size, self.steps)
        kept = first_units(rankings, steps)
        losses = (game.full - values_of(game, kept)) ** 2
        # at most, not less than, so that a target that nothing moves needs no unit
        is_enough = losses <= self.epsilon * losses[:, :1]
        is_enough[:, -1] = True
        enough = steps[is_enough.argmax(1)].astype(float)
        return enough / game.size if self.counted == "share" else enough
