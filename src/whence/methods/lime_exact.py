"""LIME without sampling, for the single-layer attention classifier."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from whence.core.registry import Needs, Passes, method, setting
from whence.core.scores import Scores
from whence.games.protocol import AnyGame
from whence.methods.shapley_exact import ONLY_FOR, as_ratio
from whence.models.model import Model
from whence.theory.exact import exact_lime
from whence.theory.heads import single_layer_of


@method("lime-exact", version=1, cites="ribeiro2016why", aliases=("exact-lime",))
@dataclass(frozen=True, slots=True)
class LimeExact:
    """LIME with endlessly many samples, by formula; for the single-layer attention classifier only.

    Each head is a ratio of sums, whose average over all subsets of a size is a recursion over
    units; nothing is sampled and the model is not run again.
    """

    removal: Literal["auto", "mask", "pad", "mean", "zero"] = setting(
        "auto", "What stands where a unit was removed; the other words must stay in their places."
    )
    bandwidth: float | None = setting(
        0.25,
        "How fast a text loses weight as more of its words are removed; none weighs all alike.",
    )

    needs: ClassVar[Needs] = Needs.GAME
    signed: ClassVar[bool] = True
    only_for: ClassVar[str] = ONLY_FOR
    price: ClassVar[str] = "No pass beyond the prediction itself."
    misleads: ClassVar[str] = (
        "Exact means the exact value of LIME, not the truth about the model. The removal "
        "still decides much."
    )

    def __post_init__(self) -> None:
        if self.bandwidth is not None and not self.bandwidth > 0:
            raise ValueError(
                f"bandwidth must be positive, or None for infinite, not {self.bandwidth}"
            )

    def check_model(self, model: Model) -> None:
        """Raise Unsupported for any other model."""
        single_layer_of(model)

    def passes(self, units: int) -> Passes:
        del units
        return Passes()

    def __call__(self, game: AnyGame) -> Scores:
        """Said of all its scores. ``exact, by formula: nothing was sampled``"""
        ratio = as_ratio(game, "lime-exact")
        return Scores(
            units=exact_lime(ratio, self.bandwidth), note="exact, by formula: nothing was sampled"
        )
