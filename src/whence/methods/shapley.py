"""Shapley values of the units, exactly or by sampling."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from whence.core.registry import Needs, method
from whence.core.scores import Scores
from whence.games.functionals import shapley
from whence.games.permuting import from_orders
from whence.games.scoring import AnyGame, Plan, Samples, score, score_by


@method("shapley", version=1, cites="shapley1953value")
@dataclass(frozen=True, slots=True)
class Shapley:
    """The change of the target when a unit joins, averaged over all orders of joining: sums to v(all) − v(none).

    Up to ``exact`` units all 2^d masks are run. Else ``samples`` masks are drawn in complement pairs; ``auto`` draws until the standard
    error of the ``top`` largest scores is at most ``tolerance`` of them, or ``budget`` masks are spent. ``estimator`` is ``kernel``
    (weighted regression, Covert & Lee 2021), ``surrogate`` (a ratio of sums fitted to the game, corrected by what it leaves over),
    ``auto`` (of these the one with the smaller error) or ``permutation`` (random orders and their reverses).
    """

    removal: str = "auto"
    samples: Samples = "auto"
    top: int = 5
    tolerance: float = 0.1
    budget: int = 2000
    estimator: Literal["auto", "surrogate", "kernel", "permutation"] = "auto"
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
        functional, plan = shapley(game.size), self.plan()
        if self.estimator == "permutation":
            found = score_by(
                lambda samples: from_orders(game, game.size, samples, self.seed),
                game,
                functional,
                plan,
            )
        else:
            found = _named(
                score(
                    game,
                    functional,
                    plan,
                    "plain" if self.estimator == "kernel" else self.estimator,
                )
            )
        full, empty = game([[True] * game.size, [False] * game.size])
        return replace(found, change=float(full - empty))


def _named(found: Scores) -> Scores:
    """A plain regression on the game is Shapley's kernel estimator, and goes by that name here."""
    detail = dict(found.detail or {})
    if detail.get("estimator") != "plain":
        return found
    return replace(
        found,
        note=found.note.replace("plain estimate", "kernel estimate", 1),
        detail=detail | {"estimator": "kernel"},
    )
