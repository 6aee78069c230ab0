"""Shapley values of the units, exactly or by sampling."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from whence.core.registry import Needs, Passes, method
from whence.core.scores import Scores
from whence.games.estimating import Estimate
from whence.games.functionals import shapley
from whence.games.permuting import from_orders
from whence.games.protocol import SetFunction
from whence.games.scoring import score, score_by
from whence.games.settings import Regression, Sampling


@method("shapley", version=1, cites="shapley1953value")
@dataclass(frozen=True, slots=True)
class Shapley(Sampling):
    """The change of the target when a unit joins, over all orders: sums to v(all) − v(none).

    Up to ``exact`` units all 2^d masks are run. Else
    ``samples`` masks are drawn in complement pairs; ``auto`` draws until the standard error of the
    ``top`` largest scores is at most ``tolerance`` of them, or ``budget`` masks are spent.
    ``estimator`` is ``kernel`` (weighted regression, Covert & Lee 2021), ``surrogate`` (a ratio of
    sums fitted to the game, corrected by what it leaves over), ``auto`` (of these the one with the
    smaller error) or ``permutation`` (random orders and their reverses).
    """

    estimator: Literal["auto", "surrogate", "kernel", "permutation"] = "auto"

    needs: ClassVar[Needs] = Needs.GAME
    signed: ClassVar[bool] = True

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
    note = scores.note.replace("plain estimate", "kernel estimate", 1)
    return replace(scores, note=note, detail=detail | {"estimator": "kernel"})
