"""Robustness: do texts that are nearly the same have nearly the same explanation?"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float

from whence.core.registry import SEED, Better, Needs, metric, setting
from whence.metrics.again import (
    NOTHING,
    Again,
    Explanation,
    NotMeasured,
    Other,
    check_units,
    distance,
    present,
)
from whence.models.changes import NoisyEmbeddings
from whence.models.exchanged import OneWordOther

HUNDRED = 100  # units of the text that ``chance`` is declared for


@metric("robustness", version=1, cites="alvarezmelis2018robustness", aliases=("lipschitz",))
@dataclass(frozen=True, slots=True)
class Robustness:
    """How far the explanation moves when the text hardly does; low is good.

    By embeddings: the largest move of the scores over that of the input, each as a share of its
    own length, among neighbours with a little noise. By edits: the mean move of the scores of
    unchanged words where another word is exchanged and the prediction stays.
    """

    by: Literal["embeddings", "edits"] = setting(
        "embeddings", "Which neighbours: a little noise on embeddings, or one word exchanged."
    )
    neighbours: int = setting(5, "How many neighbours of each text.")
    scale: float = setting(0.05, "The noise, as a share of the spread of the embeddings.")
    seed: int = setting(0, SEED)

    needs: ClassVar[Needs] = Needs.AGAIN
    better: ClassVar[Better] = "lower"
    range: ClassVar[tuple[float, float]] = (0.0, float("inf"))
    misleads: ClassVar[str] = (
        "Never read it without faithfulness beside it: an explainer that always says the same is "
        "perfectly robust. Where the model itself jumps, a true explanation jumps with it."
    )

    def __post_init__(self) -> None:
        if self.neighbours < 1 or not self.scale > 0:
            raise ValueError(
                "neighbours are 1 or more and scale is above 0, "
                f"not {self.neighbours} and {self.scale}"
            )

    @property
    def chance(self) -> float:
        """Of numbers with the mean zero, given to other units; the input moved by ``scale``.

        Two such explanations are sqrt(2 - 2c) apart, where c, their cosine, is about normal.
        """
        spread = 1 / sqrt(HUNDRED - 1)
        if self.by == "edits":
            return sqrt(2) * (1 - spread**2 / 8)
        # the largest of n normal numbers, on average (Blom, 1958)
        n = self.neighbours
        largest = NormalDist().inv_cdf((n - 0.375) / (n + 0.25)) * spread
        left_to_vary = (1 - largest / 2) * spread**2 / 8
        return sqrt(2 + 2 * largest) * (1 - left_to_vary) / self.scale

    def again(self) -> tuple[Again, ...]:
        """Once for each neighbour, under the same seed."""
        numbers = [self.seed + step for step in range(self.neighbours)]
        if self.by == "edits":
            return tuple(Again(text=OneWordOther(number)) for number in numbers)
        return tuple(Again(model=NoisyEmbeddings(self.scale, number)) for number in numbers)

    def __call__(self, first: Explanation, others: Sequence[Other]) -> float:
        check_units(first)
        there = present(others)
        if self.by == "edits":
            return float(np.mean([_on_unchanged(first, other) for other in there]))
        moves = [distance(first.scores, other.scores) for other in there]
        return largest_ratio(np.array(moves), np.array([other.moved or 0.0 for other in there]))


def largest_ratio(
    moves: Float[np.ndarray, " neighbour"], moved: Float[np.ndarray, " neighbour"]
) -> float:
    """The local Lipschitz constant, from below: the largest of ‖φ(x) − φ(z)‖ / ‖x − z‖.

    >>> largest_ratio(np.array([0.25, 0.75]), np.array([0.25, 0.5]))
    1.5
    """
    apart = moved > NOTHING
    if not apart.any():
        raise NotMeasured("no neighbour differs from the text.")
    return float((moves[apart] / moved[apart]).max())


def _on_unchanged(first: Explanation, other: Explanation) -> float:
    """How far the scores of the words moved that stayed as they were."""
    same = ~other.changed
    return distance(first.scores[same], other.scores[same])
