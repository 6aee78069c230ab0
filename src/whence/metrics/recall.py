"""Recall of gold features: how many of the units that matter are among those named first?"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.core.registry import Better, Needs, metric, setting
from whence.metrics.gold import MISLEADS, first_of

HUNDRED = 100  # units of the text that ``chance`` is declared for


@metric("recall", version=1, cites="ribeiro2016why", aliases=("recall-of-gold-features",))
@dataclass(frozen=True, slots=True)
class Recall:
    """The share of the gold units that are among the first units of the ranking.

    The authors name ten words of long reviews, to a model that uses no more than ten of each.
    """

    budget: int = setting(5, "How many units the explanation may name.")

    needs: ClassVar[Needs] = Needs.GOLD | Needs.RANKINGS
    better: ClassVar[Better] = "higher"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    misleads: ClassVar[str] = (
        f"{MISLEADS} On a text with no more units than the budget every ranking gets 1."
    )

    def __post_init__(self) -> None:
        if self.budget < 1:
            raise ValueError(f"budget is 1 or more, not {self.budget}")

    @property
    def chance(self) -> float:
        """What is drawn without putting back holds the same share of any units."""
        return min(self.budget, HUNDRED) / HUNDRED

    def __call__(
        self, gold: Bool[np.ndarray, " unit"], rankings: Int[np.ndarray, "ranking unit"]
    ) -> Float[np.ndarray, " ranking"]:
        if not gold.any():
            return np.zeros(len(rankings))
        return first_of(rankings, self.budget)[:, gold].mean(1)
