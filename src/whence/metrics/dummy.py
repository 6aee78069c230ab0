"""Dummy: has every unit that never changes anything the score zero?"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from whence.core.registry import Better, Needs, metric, setting
from whence.games.protocol import AnyGame
from whence.metrics.curves import first_units, values_of
from whence.metrics.effects import (
    TOLERANCE,
    WITHIN_TOLERANCE,
    are_zero,
    check_tolerance,
    rounding_of,
)
from whence.metrics.walks import walks


@metric("dummy", version=1, cites="sundararajan2017axiomatic", aliases=("null-player",))
@dataclass(frozen=True, slots=True)
class Dummy:
    """How many of the words that change nothing, whatever else is kept, have the score zero.

    All units leave the text in random orders. A unit is a dummy if the target stayed the same in
    each of them when it left. Where there is no dummy, nothing can be wrong, and it is one.
    """

    tolerance: float = setting(TOLERANCE, WITHIN_TOLERANCE)
    samples: int = setting(5, "In how many random orders the units leave.")

    needs: ClassVar[Needs] = Needs.GAME | Needs.SCORES
    better: ClassVar[Better] = "higher"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    chance: ClassVar[float] = 0.5
    misleads: ClassVar[str] = (
        "A transformer seldom has a word that changes nothing at all; without one, every method "
        "gets 1. A unit that matters in rare company may be taken for a dummy."
    )

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance)
        if self.samples < 1:
            raise ValueError(f"samples is at least 1, not {self.samples}")

    def passes(self, units: int) -> int:
        """One for each unit of each order; all begin with the whole text and end with none."""
        return self.samples * (units - 1) + 2

    def __call__(
        self, game: AnyGame, scores: Float[np.ndarray, "attribution unit"]
    ) -> Float[np.ndarray, " attribution"]:
        orders = walks(game, self.samples)
        gone = first_units(orders, np.arange(game.size + 1))
        steps = np.diff(values_of(game, ~gone), axis=1)
        change_of_unit = np.empty(orders.shape)
        np.put_along_axis(change_of_unit, orders, steps, axis=1)

        largest_change = np.abs(change_of_unit).max(0)
        is_dummy = are_zero(largest_change, self.tolerance, rounding_of(game))
        if not is_dummy.any():
            return np.ones(len(scores))
        has_no_score = are_zero(scores, self.tolerance)
        return has_no_score[:, is_dummy].mean(1)
