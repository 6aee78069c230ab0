"""Banzhaf values of the units, exactly or by sampling."""

from dataclasses import dataclass
from typing import ClassVar

from whence.core.registry import Needs, Passes, method, setting
from whence.core.scores import Scores
from whence.games.functionals import banzhaf
from whence.games.protocol import SetFunction
from whence.games.scoring import score
from whence.games.settings import ESTIMATOR, Regression, Sampling


@method(
    "banzhaf",
    version=1,
    cites="banzhaf1965weighted",
    aliases=("banzhaf-value", "banzhaf-values"),
)
@dataclass(frozen=True, slots=True)
class Banzhaf(Sampling):
    """The change of the target when a word joins, averaged over all sets of the other words."""

    estimator: Regression = setting("auto", ESTIMATOR)

    needs: ClassVar[Needs] = Needs.GAME
    signed: ClassVar[bool] = True
    price: ClassVar[str] = (
        "One pass for each of the 2^d texts with words removed, up to 12 words; beyond, some "
        "hundreds of passes, until the error is small."
    )
    misleads: ClassVar[str] = (
        "Half of the words are missing in a typical text that it runs, so the removal decides "
        "much. The scores do not sum to anything."
    )

    def passes(self, units: int) -> Passes:
        return self.plan().passes(banzhaf(units))

    def __call__(self, game: SetFunction) -> Scores:
        return score(game, banzhaf(game.size), self.plan(), self.estimator)
