"""LIME for text: the coefficients of a linear model fitted to the target around the text."""

from dataclasses import dataclass
from typing import ClassVar

from whence.core.registry import Needs, Passes, method, setting
from whence.core.scores import Scores
from whence.games.functionals import lime
from whence.games.protocol import SetFunction
from whence.games.scoring import score
from whence.games.settings import ESTIMATOR, EXACT, Regression, Sampling


@method("lime", version=1, cites="ribeiro2016why")
@dataclass(frozen=True, slots=True)
class Lime(Sampling):
    """How the target changes with each word, by a linear model fitted to texts with words removed.

    From 1 to all units are removed, each number equally often. A text's weight falls with its
    cosine distance to the whole text as a Gaussian of ``bandwidth`` (the lime package's 25 of 100
    is 0.25). Without a ``ridge`` an additive game gives its own coefficients back. Of one unit
    alone the score is v(all) − v(none).
    """

    estimator: Regression = setting("auto", ESTIMATOR)
    exact: int = setting(10, EXACT)
    bandwidth: float | None = setting(
        0.25,
        "How fast a text loses weight as more of its words are removed; none weighs all alike.",
    )
    ridge: float = setting(
        0.0,
        "How strongly scores are pulled towards zero; the lime package's 1 with 5000 samples "
        "is 0.0002.",
    )

    needs: ClassVar[Needs] = Needs.GAME
    signed: ClassVar[bool] = True
    price: ClassVar[str] = (
        "One pass for each of the 2^d texts with words removed, up to 10 words; beyond, some "
        "hundreds of passes, until the error is small."
    )
    misleads: ClassVar[str] = (
        "The bandwidth and the removal decide much: 0.25 is a habit, not a finding. A linear "
        'model that fits badly still gives scores; detail["r2"] says how well it fits.'
    )

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
