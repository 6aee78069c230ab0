"""Beta Shapley values of the units, exactly or by sampling."""

from dataclasses import dataclass
from typing import ClassVar

from whence.core.registry import Needs, Passes, method
from whence.core.scores import Scores
from whence.games.functionals import beta_shapley
from whence.games.protocol import SetFunction
from whence.games.scoring import score
from whence.games.settings import Regression, Sampling


@method("beta-shapley", version=1, cites="kwon2022beta")
@dataclass(frozen=True, slots=True)
class BetaShapley(Sampling):
    """The change when a unit joins others, each present with a probability drawn from a Beta law.

    ``alpha`` and
    ``beta`` of 2 weigh middling sizes most, which is LIME of infinite bandwidth with any number of
    units removed; 1 and 1 give Shapley values; a larger ``alpha`` favours few other units (Kwon &
    Zou 2022).

    Up to ``exact`` units all 2^d masks are run. Else ``samples`` masks are drawn in complement
    pairs; ``auto`` draws until the standard error of the ``top`` largest scores is at most
    ``tolerance`` of them, or ``budget`` masks are spent. ``estimator`` is ``plain`` (weighted
    regression), ``surrogate`` (a ratio of sums fitted to the game, corrected by what it leaves
    over), or ``auto``, of these the one with the smaller error.
    """

    estimator: Regression = "auto"
    alpha: float = 2.0
    beta: float = 2.0

    needs: ClassVar[Needs] = Needs.GAME
    signed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.plan()
        if not (self.alpha > 0 and self.beta > 0):
            raise ValueError(f"alpha and beta must be positive, not {self.alpha} and {self.beta}")

    def passes(self, units: int) -> Passes:
        return self.plan().passes(beta_shapley(units, self.alpha, self.beta))

    def __call__(self, game: SetFunction) -> Scores:
        values = beta_shapley(game.size, self.alpha, self.beta)
        return score(game, values, self.plan(), self.estimator)
