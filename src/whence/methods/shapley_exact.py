"""Shapley values without sampling, for the single-layer attention classifier."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from whence.core.errors import Unsupported
from whence.core.registry import Needs, Passes, method, setting
from whence.core.scores import Scores
from whence.games.game import Game
from whence.games.protocol import AnyGame
from whence.games.ratio import RatioOfSums
from whence.models.model import Model
from whence.theory.exact import exact_shapley
from whence.theory.heads import ratio_of, single_layer_of

ONLY_FOR = "the single-layer attention classifier, read as logits"


@method("shapley-exact", version=1, cites="shapley1953value", aliases=("exact-shapley",))
@dataclass(frozen=True, slots=True)
class ShapleyExact:
    """Shapley values by formula, of long texts too; for the single-layer attention classifier only.

    Each head is a ratio of sums, whose average over all subsets of a size is a recursion over
    units; nothing is sampled and the model is not run again.
    """

    removal: Literal["auto", "mask", "pad", "mean", "zero"] = setting(
        "auto", "What stands where a unit was removed; the other words must stay in their places."
    )

    needs: ClassVar[Needs] = Needs.GAME
    signed: ClassVar[bool] = True
    only_for: ClassVar[str] = ONLY_FOR
    price: ClassVar[str] = "No pass beyond the prediction itself."
    misleads: ClassVar[str] = (
        "Exact means the exact Shapley value, not the truth about the model. The removal "
        "still decides much."
    )

    def check_model(self, model: Model) -> None:
        """Raise Unsupported for any other model."""
        single_layer_of(model)

    def passes(self, units: int) -> Passes:
        del units
        return Passes()

    def __call__(self, game: AnyGame) -> Scores:
        """Said of all its scores. ``exact, by formula: nothing was sampled``"""
        ratio = as_ratio(game, "shapley-exact")
        whole_and_nothing = np.array([[True] * game.size, [False] * game.size])
        full, empty = ratio(whole_and_nothing).sum(1)
        return Scores(
            units=exact_shapley(ratio),
            change=float(full - empty),
            note="exact, by formula: nothing was sampled",
        )


def as_ratio(game: AnyGame, name: str) -> RatioOfSums:
    """The game as a sum of ratios of sums, which it is for the single-layer model alone."""
    if not isinstance(game, Game):
        raise Unsupported(
            f"{name} is a formula of the single-layer attention classifier alone (bundled: "
            f"'single-layer'), and a {type(game).__name__} is a game of something else."
        )
    return ratio_of(game.model, game.passage, game.target, game.removal)
