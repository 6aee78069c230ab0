"""Shapley values without sampling, for the single-layer attention classifier."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from whence.core.registry import Needs, method
from whence.core.scores import Scores
from whence.games.game import Game
from whence.theory.exact import exact_shapley
from whence.theory.heads import ratio_of


@method("shapley-exact", version=1, cites="shapley1953value")
@dataclass(frozen=True, slots=True)
class ShapleyExact:
    """Shapley values by formula, for long texts too: for the single-layer attention classifier, and logits, only.

    Each head is a ratio of sums, whose average over all subsets of a size is a recursion over units; nothing is sampled and
    the model is not run again. A ``removal`` must leave the other words in their places.
    """

    removal: Literal["auto", "mask", "pad", "mean", "zero"] = "auto"

    needs: ClassVar[Needs] = Needs.GAME
    signed: ClassVar[bool] = True

    def __call__(self, game: Game) -> Scores:
        ratio = ratio_of(game.model, game.passage, game.target, game.removal)
        full, empty = ratio(
            np.stack([np.ones(game.size, dtype=bool), np.zeros(game.size, dtype=bool)])
        ).sum(1)
        return Scores(
            units=exact_shapley(ratio),
            change=float(full - empty),
            note="exact, by formula: no masks",
        )
