"""The control that every other method stands beside."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.registry import Needs, method
from whence.trace.trace import Trace


@method("random", version=1, cites="")
@dataclass(frozen=True, slots=True)
class Random:
    """A random number for each unit: what a method must beat to be worth anything.

    The numbers follow from the seed and the text, so that a text gets the same ones alone and in a batch.
    """

    seed: int = 0

    needs: ClassVar[Needs] = Needs.NOTHING
    signed: ClassVar[bool] = False

    def __call__(self, trace: Trace) -> Float[Tensor, "batch token"]:
        scores = torch.zeros(trace.content.shape, dtype=torch.float64)
        for row, passage in zip(scores, trace.passages, strict=True):
            # one number for each unit, laid on its first token: a word in four pieces has no better chance than another
            _, first = np.unique(passage.unit_of, return_index=True)
            first = first[passage.unit_of[first] >= 0]
            row[first] = torch.from_numpy(np.random.default_rng([self.seed, *passage.digest]).random(len(first)))
        return scores
