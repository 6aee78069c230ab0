"""The control that every other method stands beside."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from whence.core.registry import SEED, Needs, method, setting
from whence.core.scores import Scores
from whence.trace.trace import Trace


@method("random", version=1, cites="", aliases=("random-scores",))
@dataclass(frozen=True, slots=True)
class Random:
    """A random number for each word: what every other method must beat.

    The numbers follow from the seed and the text, so that a text gets the same ones alone and in a
    batch.
    """

    seed: int = setting(0, SEED)

    needs: ClassVar[Needs] = Needs.NOTHING
    signed: ClassVar[bool] = False
    price: ClassVar[str] = "No pass at all."
    misleads: ClassVar[str] = (
        "It looks like an explanation. That is its use: see how easily a story can be told "
        "about it."
    )

    def __call__(self, trace: Trace) -> list[Scores]:
        scores = []
        for passage in trace.passages:
            rng = np.random.default_rng([self.seed, *passage.digest])
            scores.append(Scores(units=rng.random(len(passage.units))))
        return scores
