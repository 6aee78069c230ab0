"""Beta Shapley values of the units, exactly or by sampling."""

from dataclasses import dataclass
from typing import ClassVar

from whence.core.registry import Needs, Passes, method, setting
from whence.core.scores import Scores
from whence.games.functionals import beta_shapley
from whence.games.protocol import SetFunction
from whence.games.scoring import score
from whence.games.settings import ESTIMATOR, Regression, Sampling


@method("beta-shapley", version=1, cites="kwon2022beta", aliases=("betashap",))
@dataclass(frozen=True, slots=True)
class BetaShapley(Sampling):
    """The change of the target when a word joins others, and you choose how many others there are.

    Each other word is present with a probability that is drawn from a Beta law. ``alpha`` and
    ``beta`` of 2 weigh middling numbers most, which is LIME of infinite bandwidth with any number
    of units removed; 1 and 1 give Shapley values (Kwon & Zou 2022).
    """

    estimator: Regression = setting("auto", ESTIMATOR)
    alpha: float = setting(
        2.0,
        "The larger, the more it counts what a word does among few others; 1 and 1 are "
        "Shapley values.",
    )
    beta: float = setting(2.0, "The larger, the more it counts what a word does among many others.")

    needs: ClassVar[Needs] = Needs.GAME
    signed: ClassVar[bool] = True
    price: ClassVar[str] = (
        "One pass for each of the 2^d texts with words removed, up to 12 words; beyond, some "
        "hundreds of passes, until the error is small."
    )
    misleads: ClassVar[str] = (
        "To choose alpha and beta after looking at the answers is to choose the answer. Only "
        "with 1 and 1 do the scores sum to the whole change."
    )

    def __post_init__(self) -> None:
        self.plan()
        if not (self.alpha > 0 and self.beta > 0):
            raise ValueError(f"alpha and beta must be positive, not {self.alpha} and {self.beta}")

    def passes(self, units: int) -> Passes:
        return self.plan().passes(beta_shapley(units, self.alpha, self.beta))

    def __call__(self, game: SetFunction) -> Scores:
        values = beta_shapley(game.size, self.alpha, self.beta)
        return score(game, values, self.plan(), self.estimator)
