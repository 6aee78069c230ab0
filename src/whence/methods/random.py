"""The control that every other method stands beside."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from whence.core.registry import Needs, method
from whence.core.scores import Scores
from whence.trace.trace import Trace


@method("random", version=1, cites="")
@dataclass(frozen=True, slots=True)
class Random:
    """A random number for each unit: what a method must beat to be worth anything.

    The numbers follow from the seed and the text, so that a text gets the same ones alone and in a
    batch.
    """

    seed: int = 0

    needs: ClassVar[Needs] = Needs.NOTHING
    signed: ClassVar[bool] = False

    def __call__(self, trace: Trace) -> list[Scores]:
        scores = []
        for passage in trace.passages:
            rng = np.random.default_rng([self.seed, *passage.digest])
            scores.append(Scores(units=rng.random(len(passage.units))))
        return scores
