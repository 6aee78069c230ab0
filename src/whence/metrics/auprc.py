"""AUPRC: the area under the curve of precision over recall, of the gold units."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.core.registry import Better, Needs, metric
from whence.metrics.gold import MISLEADS


@metric("auprc", version=1, cites="deyoung2020eraser", aliases=("average-precision",))
@dataclass(frozen=True, slots=True)
class Auprc:
    """How high the gold units stand in the ranking: the mean precision at each of them.

    It is the area of steps (average precision), as in scikit-learn.
    """

    needs: ClassVar[Needs] = Needs.GOLD | Needs.RANKINGS
    better: ClassVar[Better] = "higher"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    # of m gold units among n, with H the n-th harmonic number:
    # ((m - 1) / (n - 1) * (n - H) + H) / n, here with m = 50 and n = 100
    chance: ClassVar[float] = 0.52114
    misleads: ClassVar[str] = (
        f"{MISLEADS} Where most units are gold every ranking does well: see what chance gets."
    )

    def __call__(
        self, gold: Bool[np.ndarray, " unit"], rankings: Int[np.ndarray, "ranking unit"]
    ) -> Float[np.ndarray, " ranking"]:
        if not gold.any():
            return np.zeros(len(rankings))
        hits = gold[rankings]
        named = np.arange(1, len(gold) + 1)
        precision = hits.cumsum(1) / named
        return (precision * hits).sum(1) / gold.sum()
