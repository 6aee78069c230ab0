"""Banzhaf values of the units, exactly or by sampling."""

from dataclasses import dataclass
from typing import ClassVar

from whence.core.registry import Needs, Passes, method
from whence.core.scores import Scores
from whence.games.functionals import banzhaf
from whence.games.protocol import SetFunction
from whence.games.scoring import score
from whence.games.settings import Regression, Sampling


@method("banzhaf", version=1, cites="banzhaf1965weighted")
@dataclass(frozen=True, slots=True)
class Banzhaf(Sampling):
    """The change of the target when a unit joins, averaged over all subsets of the other units.

    Up to ``exact`` units all 2^d masks are run. Else ``samples`` masks are drawn in complement
    pairs; ``auto`` draws until the standard error of the ``top`` largest scores is at most
    ``tolerance`` of them, or ``budget`` masks are spent. ``estimator`` is ``plain`` (weighted
    regression), ``surrogate`` (a ratio of sums fitted to the game, corrected by what it leaves
    over), or ``auto``, of these the one with the smaller error.
    """

    estimator: Regression = "auto"

    needs: ClassVar[Needs] = Needs.GAME
    signed: ClassVar[bool] = True

    def passes(self, units: int) -> Passes:
        return self.plan().passes(banzhaf(units))

    def __call__(self, game: SetFunction) -> Scores:
        return score(game, banzhaf(game.size), self.plan(), self.estimator)
