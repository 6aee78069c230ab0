"""LIME without sampling, for the single-layer attention classifier."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from whence.core.registry import Needs, method
from whence.core.scores import Scores
from whence.games.game import Game
from whence.theory.exact import exact_lime
from whence.theory.heads import ratio_of


@method("lime-exact", version=1, cites="ribeiro2016why")
@dataclass(frozen=True, slots=True)
class LimeExact:
    """LIME's coefficients for endlessly many samples, by formula: for the single-layer attention classifier, and logits, only.

    ``bandwidth`` as for lime (None is infinite). Each head is a ratio of sums, whose average over all subsets of a size is a recursion
    over units; nothing is sampled and the model is not run again. A ``removal`` must leave the other words in their places.
    """

    removal: Literal["auto", "mask", "pad", "mean", "zero"] = "auto"
    bandwidth: float | None = 0.25

    needs: ClassVar[Needs] = Needs.GAME
    signed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.bandwidth is not None and not self.bandwidth > 0:
            raise ValueError(
                f"bandwidth must be positive, or None for infinite, not {self.bandwidth}"
            )

    def __call__(self, game: Game) -> Scores:
        ratio = ratio_of(game.model, game.passage, game.target, game.removal)
        return Scores(units=exact_lime(ratio, self.bandwidth), note="exact, by formula: no masks")
