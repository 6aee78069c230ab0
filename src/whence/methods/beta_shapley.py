"""Beta Shapley values of the units, exactly or by sampling."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from whence.core.registry import Needs, method
from whence.core.scores import Scores
from whence.games.functionals import beta_shapley
from whence.games.scoring import AnyGame, Plan, Samples, score


@method("beta-shapley", version=1, cites="kwon2022beta")
@dataclass(frozen=True, slots=True)
class BetaShapley:
    """The change of the target when a unit joins others that are each present with a probability drawn from a Beta law.

    ``alpha`` and ``beta`` of 2 weigh middling sizes most, which is LIME of infinite bandwidth with any number of units removed; 1 and 1
    give Shapley values; a larger ``alpha`` favours few other units (Kwon & Zou 2022).
    Up to ``exact`` units all 2^d masks are run. Else ``samples`` masks are drawn in complement pairs; ``auto`` draws until the standard
    error of the ``top`` largest scores is at most ``tolerance`` of them, or ``budget`` masks are spent. ``estimator`` is ``plain``
    (weighted regression), ``surrogate`` (a ratio of sums fitted to the game, corrected by what it leaves over), or ``auto``, of these
    the one with the smaller error.
    """

    removal: str = "auto"
    alpha: float = 2.0
    beta: float = 2.0
    samples: Samples = "auto"
    top: int = 5
    tolerance: float = 0.1
    budget: int = 2000
    estimator: Literal["auto", "surrogate", "plain"] = "auto"
    exact: int = 12
    seed: int = 0

    needs: ClassVar[Needs] = Needs.GAME
    signed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.plan()
        if not (self.alpha > 0 and self.beta > 0):
            raise ValueError(f"alpha and beta must be positive, not {self.alpha} and {self.beta}")

    def plan(self) -> Plan:
        """How much to sample."""
        return Plan(self.samples, self.top, self.tolerance, self.budget, self.exact, self.seed)

    def __call__(self, game: AnyGame) -> Scores:
        return score(
            game, beta_shapley(game.size, self.alpha, self.beta), self.plan(), self.estimator
        )
