"""Implementation invariance: one function, written in several ways, has one explanation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from whence.core.registry import SEED, Better, Needs, metric, setting
from whence.metrics.again import (
    NOTHING,
    Again,
    Explanation,
    Other,
    check_units,
    present,
    similarity_to,
)
from whence.models.rewired import PermutedHeads, PermutedNeurons, ScaledQueries, ScaledValues


@metric("implementation-invariance", version=1, cites="sundararajan2017axiomatic")
@dataclass(frozen=True, slots=True)
class ImplementationInvariance:
    """How alike the explanations of a model and of its rewired copies are.

    The copies compute the same with other weights: heads and neurons change places, queries grow
    as keys shrink, values as the projection behind them does. Each copy is run beside the model
    first; one that does not say the same is left out.
    """

    by: Literal["distance", "spearman"] = setting(
        "distance", "How two explanations are compared: by their scores, or by their ranks."
    )
    seed: int = setting(0, SEED)

    needs: ClassVar[Needs] = Needs.AGAIN
    better: ClassVar[Better] = "higher"
    misleads: ClassVar[str] = (
        "It says nothing of truth: whoever looks at the text alone is perfectly invariant. Four "
        "copies are tried, and there are endlessly many."
    )

    @property
    def range(self) -> tuple[float, float]:
        """Ranks may be opposite."""
        return (0.0, 1.0) if self.by == "distance" else (-1.0, 1.0)

    @property
    def chance(self) -> float:
        """Two random directions in a hundred dimensions are at right angles, or nearly so."""
        return 0.2938 if self.by == "distance" else 0.0

    def again(self) -> tuple[Again, ...]:
        """Four copies, under the same seed."""
        copies = (
            PermutedHeads(self.seed),
            PermutedNeurons(self.seed),
            ScaledQueries(),
            ScaledValues(self.seed),
        )
        return tuple(Again(model=copy) for copy in copies)

    def __call__(self, first: Explanation, others: Sequence[Other]) -> float:
        check_units(first)
        there = present(others)
        if self.by == "spearman":
            alike = similarity_to(first.scores, [other.scores for other in there])
        else:
            alike = [1 - share_apart(first.scores, other.scores) for other in there]
        return float(np.mean(alike))


def share_apart(scores: np.ndarray, others: np.ndarray) -> float:
    """The distance of two explanations by the most that it can be, from 0 to 1.

    >>> share_apart(np.array([1.0, 2.0]), np.array([-1.0, -2.0]))
    1.0
    """
    most = float(np.linalg.norm(scores) + np.linalg.norm(others))
    if most <= NOTHING:
        return 0.0
    return float(np.linalg.norm(scores - others)) / most
