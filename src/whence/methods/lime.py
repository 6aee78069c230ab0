"""LIME for text: the coefficients of a linear model fitted to the target around the text."""

from dataclasses import dataclass
from typing import ClassVar

from whence.core.registry import Needs, Passes, method
from whence.core.scores import Scores
from whence.games.functionals import lime
from whence.games.protocol import SetFunction
from whence.games.scoring import score
from whence.games.settings import Regression, Sampling


@method("lime", version=1, cites="ribeiro2016why")
@dataclass(frozen=True, slots=True)
class Lime(Sampling):
    """The coefficients of least squares from kept units to the target, near texts weighing more.

    From 1 to all units are removed, each number equally often; the weight
    falls with the cosine distance to the text as a Gaussian of ``bandwidth`` (the lime package's 25
    of 100 is 0.25; None is infinite). ``ridge`` is the penalty for each draw: the package's 1 in
    5000 is 0.0002, the default none, so that an additive game gives its own coefficients back.

    Up to ``exact`` units all 2^d masks are run. Else ``samples`` masks are drawn; ``auto`` draws
    until the standard error of the ``top`` largest scores is at most ``tolerance`` of them, or
    ``budget`` masks are spent. ``estimator`` is ``plain`` (the regression itself), ``surrogate`` (a
    ratio of sums fitted to the game, corrected by what it leaves over), or ``auto``, of these the
    one with the smaller error. Of one unit alone the score is v(all) − v(none).
    """

    estimator: Regression = "auto"
    exact: int = 10
    bandwidth: float | None = 0.25
    ridge: float = 0.0

    needs: ClassVar[Needs] = Needs.GAME
    signed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.plan()
        if self.bandwidth is not None and not self.bandwidth > 0:
            raise ValueError(
                f"bandwidth must be positive, or None for infinite, not {self.bandwidth}"
            )
        if not self.ridge >= 0:
            raise ValueError(f"ridge cannot be negative: {self.ridge}")

    def passes(self, units: int) -> Passes:
        return self.plan().passes(lime(units, self.bandwidth, self.ridge))

    def __call__(self, game: SetFunction) -> Scores:
        coefficients = lime(game.size, self.bandwidth, self.ridge)
        return score(game, coefficients, self.plan(), self.estimator)
