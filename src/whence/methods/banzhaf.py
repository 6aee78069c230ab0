"""Banzhaf values of the units, exactly or by sampling."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from whence.core.registry import Needs, method
from whence.core.scores import Scores
from whence.games.functionals import banzhaf
from whence.games.scoring import AnyGame, Plan, Samples, score


@method("banzhaf", version=1, cites="banzhaf1965weighted")
@dataclass(frozen=True, slots=True)
class Banzhaf:
    """The change of the target when a unit joins, averaged over all subsets of the other units.

    Up to ``exact`` units all 2^d masks are run. Else ``samples`` masks are drawn in complement pairs; ``auto`` draws until the standard
    error of the ``top`` largest scores is at most ``tolerance`` of them, or ``budget`` masks are spent. ``estimator`` is ``plain``
    (weighted regression), ``surrogate`` (a ratio of sums fitted to the game, corrected by what it leaves over), or ``auto``, of these
    the one with the smaller error.
    """

    removal: str = "auto"
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

    def plan(self) -> Plan:
        """How much to sample."""
        return Plan(self.samples, self.top, self.tolerance, self.budget, self.exact, self.seed)

    def __call__(self, game: AnyGame) -> Scores:
        return score(game, banzhaf(game.size), self.plan(), self.estimator)
