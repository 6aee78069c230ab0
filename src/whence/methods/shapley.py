"""Shapley values of the units, exactly or by sampling."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from whence.core.registry import Needs, Passes, method, setting
from whence.core.scores import Scores
from whence.games.estimating import Estimate
from whence.games.functionals import shapley
from whence.games.permuting import from_orders
from whence.games.protocol import SetFunction
from whence.games.scoring import score, score_by
from whence.games.settings import Regression, Sampling


@method(
    "shapley",
    version=1,
    cites="shapley1953value",
    aliases=("shap", "kernel-shap", "shapley-value", "shapley-values"),
)
@dataclass(frozen=True, slots=True)
class Shapley(Sampling):
    """The change of the target when a word joins, averaged over all orders in which words can join.

    The scores sum to v(all) − v(none). ``kernel`` is the weighted regression of Covert & Lee 2021,
    ``permutation`` takes random orders and their reverses.
    """

    estimator: Literal["auto", "surrogate", "kernel", "permutation"] = setting(
        "auto",
        "How scores come from the texts that were run: kernel (a regression), surrogate (with "
        "a fitted stand-in of the model), permutation (random orders), or auto for the better "
        "of the first two.",
    )

    needs: ClassVar[Needs] = Needs.GAME
    signed: ClassVar[bool] = True
    price: ClassVar[str] = (
        "One pass for each of the 2^d texts with words removed, up to 12 words; beyond, some "
        "hundreds of passes, until the error is small."
    )
    misleads: ClassVar[str] = (
        "One number stands for many situations: a word that helps among few others and hurts "
        "among many gets the mean. Most texts behind it are texts that nobody would write."
    )

    def passes(self, units: int) -> Passes:
        passes = self.plan().passes(shapley(units))
        if self.estimator == "permutation" and passes.at_most:
            return replace(passes, pool="")  # orders, not pairs: no other method draws them
        return passes

    def __call__(self, game: SetFunction) -> Scores:
        if self.estimator == "permutation":
            scores = self._by_orders(game)
        elif self.estimator == "kernel":
            scores = self._by_regression(game, "plain")
        else:
            scores = self._by_regression(game, self.estimator)
        full, empty = game([[True] * game.size, [False] * game.size])
        return replace(scores, change=float(full - empty))

    def _by_orders(self, game: SetFunction) -> Scores:
        def sampled(samples: int) -> tuple[Estimate, int]:
            return from_orders(game, game.size, samples, self.seed)

        return score_by(sampled, game, shapley(game.size), self.plan())

    def _by_regression(self, game: SetFunction, estimator: Regression) -> Scores:
        scores = score(game, shapley(game.size), self.plan(), estimator)
        return _with_its_own_name(scores)


def _with_its_own_name(scores: Scores) -> Scores:
    """A plain regression on the game is Shapley's kernel estimator, and goes by that name here."""
    detail = dict(scores.detail or {})
    if detail.get("estimator") != "plain":
        return scores
    return replace(scores, detail=detail | {"estimator": "kernel"})
