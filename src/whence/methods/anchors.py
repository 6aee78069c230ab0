"""Anchors: the fewest units that, when kept, hold the label whatever else is removed.

Beam search from the empty anchor upwards, its candidates compared by KL-LUCB. Two things make it cheap. A mask drawn for one anchor
counts for every anchor between what was kept on purpose and what was kept by chance. And a text whose masks all fit into the budget is
not sampled at all: one pass over the lattice of subsets gives the precision of every anchor there is.
"""

from dataclasses import dataclass
from math import comb
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int

from whence.core.errors import Unsupported
from whence.core.registry import Needs, method
from whence.core.scores import Scores
from whence.games.arms import Arms, Pool, all_sets, completions, grown, lattice_precisions
from whence.games.bounds import anytime_rate
from whence.games.game import Game

SMALL = 3  # units, up to which all sets are candidates, not only the beam's: a mask drawn for the empty set counts for one in 2^size
ALL = 2000  # sets of one size, as long as there are no more
FEW = 256  # completions of a set: no more are enumerated at once, as a verdict from draws would take about as many
MANY = 1024  # completions of the anchor that is returned: so many are worth an exact precision
FIRM = 128  # draws behind each precision of which a score is the difference
LEAST = 1e-6  # score of a unit of the anchor: it is in the rule, even if the draws show no fall without it


@dataclass(frozen=True, eq=False)
class Found:
    """An anchor, what is known of its precision, and by how much that falls without each of its units."""

    units: Int[np.ndarray, " kept"]
    precision: float
    interval: tuple[float, float]
    falls: Float[np.ndarray, " kept"]
    samples: int
    exact: bool
    holds: bool


@method("anchors", version=1, cites="ribeiro2018anchors")
@dataclass(frozen=True, slots=True)
class Anchors:
    """The largest rule "if these units are kept, the label stays", with its precision and coverage; a unit scores what it adds to it.

    Precision is the share of masks that keep the label, among those that keep the anchor and any other unit with probability 1/2. An
    anchor holds if its estimated precision reaches ``precision`` and its lower bound is above ``precision`` less ``slack``; of those
    that hold, the one with the largest coverage (2^-size: the fewest units) is returned, then the most precise. With probability
    1 − ``delta`` all intervals are right. The ``beam`` best of each size, to within ``tolerance``, are carried on, up to ``max_size``.
    At most ``budget`` masks are asked, ``batch`` at a time for each candidate; where all 2^d masks fit in, the answer is exact. A score is
    the fall of precision when the unit leaves the anchor, and 0 outside of it. ``removal`` says what stands in place of what is removed.
    """

    removal: str = "auto"
    precision: float = 0.95
    delta: float = 0.1
    tolerance: float = 0.15
    slack: float = 0.05
    beam: int = 4
    batch: int = 32
    budget: int = 4096
    max_size: int | None = None
    seed: int = 0

    needs: ClassVar[Needs] = Needs.GAME
    signed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name in ("precision", "delta", "tolerance"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(
                    f"{name} is a share above 0 and up to 1, not {getattr(self, name)}"
                )
        if not 0 <= self.slack < self.precision:
            raise ValueError(
                f"slack is at least 0 and less than precision ({self.precision}), not {self.slack}"
            )
        for name in ("beam", "batch", "budget"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.max_size is not None and self.max_size < 0:
            raise ValueError(
                f"max_size is a number of units, 0 or more, or None for any, not {self.max_size}"
            )

    def __call__(self, game: Game) -> Scores:
        if len(game.logits) < 2:
            raise Unsupported(
                "anchors hold a label, and this model has one output and no labels. Take a method of values, e.g. occlusion."
            )
        if game.target.index != game.label:
            raise Unsupported(
                f"anchors explain the label that the model predicts, and {game.target.label!r} is not it. "
                "Leave the target out, or take a method that explains any label, e.g. occlusion or shapley."
            )
        longest = game.size if self.max_size is None else min(self.max_size, game.size)
        enumerable = 2**game.size <= self.budget
        return self._result(
            game, self._enumerated(game, longest) if enumerable else self._searched(game, longest)
        )

    def _enumerated(self, game: Game, longest: int) -> Found:
        """The best anchor of all, from the labels of all masks."""
        masks = completions(np.zeros(game.size, dtype=bool))
        precision = lattice_precisions(game.labels(masks) == game.label)
        size = masks.sum(1)
        allowed, valid = size <= longest, precision >= self.precision
        holds = bool((allowed & valid).any())
        # the last key counts first: of those that hold the smallest, then the most precise; if none holds, the most precise
        order = np.lexsort(
            (-precision, size, ~valid, ~allowed) if holds else (size, -precision, ~allowed)
        )
        best = int(order[0])
        units = np.flatnonzero(masks[best])
        p = float(precision[best])
        return Found(
            units,
            p,
            (p, p),
            p - precision[best ^ (1 << units)],
            len(masks),
            exact=True,
            holds=holds,
        )

    def _searched(self, game: Game, longest: int) -> Found:
        """Beam search from the empty set upwards (Ribeiro et al. 2018, algorithm 2), as far as the budget goes."""
        pool = Pool(
            game, self.delta, self.budget, np.random.default_rng([self.seed, *game.passage.digest])
        )
        beam = nothing = np.zeros((1, game.size), dtype=bool)
        best = (-1.0, None)
        for size in range(longest + 1):
            if size <= SMALL and comb(game.size, size) <= ALL:
                pool.draw(nothing, 2 ** (size + 1) * self.batch - int(pool.tally(nothing)[1][0]))
                arms = Arms(pool, all_sets(game.size, size))
            else:
                pool.draw(
                    beam, 2 * self.batch
                )  # a mask drawn for a parent counts for half of its children
                arms = Arms(pool, grown(beam))
            winner = self._settle(arms)
            if winner is not None:
                return self._found(arms, winner, holds=True)
            highest = int(arms.low.argmax())
            best = max(best, (float(arms.low[highest]), (arms, highest)), key=lambda b: b[0])
            if not pool.left:
                break
            beam = arms.sets[self._choose(arms)]
        assert best[1] is not None
        return self._found(*best[1], holds=False)

    def _settle(self, arms: Arms) -> int | None:
        """The most precise set that holds, after drawing for those that still might, the likeliest first, for half of what is left."""
        pool, stop_at = arms.pool, arms.pool.left // 2
        while True:
            enough = arms.low > self.precision - self.slack
            holds = (arms.mean >= self.precision) & (enough | arms.exact)
            # to overlook a set that holds is a loss of coverage, not of truth: each has all of δ to itself
            open_ = (
                ~arms.exact
                & ~enough
                & (arms.interval(anytime_rate(arms.draws, self.delta))[1] >= self.precision)
            )
            winner = int(np.where(holds, arms.mean, -1).argmax()) if holds.any() else None
            if winner is not None:
                open_ &= arms.mean > arms.mean[winner]
            wanted = [int(i) for i in np.argsort(-arms.mean, kind="stable") if open_[i]][
                : self.beam
            ]
            if wanted and pool.left > stop_at:
                arms.ask(wanted, self.batch, FEW)
            elif (
                winner is not None
                and not arms.exact[winner]
                and 2 ** (len(arms.sets[winner]) - arms.size) <= min(pool.left, MANY)
            ):
                arms.ask([winner], self.batch, MANY)
            else:
                return winner

    def _choose(self, arms: Arms) -> Int[np.ndarray, " chosen"]:
        """The ``beam`` most precise sets, to within ``tolerance`` (KL-LUCB: Kaufmann and Kalyanakrishnan 2013)."""
        stop_at = (
            arms.pool.left - arms.pool.left // 16
        )  # more changed no answer in trials: draws shared with parents do most of it
        while True:
            order = np.argsort(-arms.mean, kind="stable")
            top, rest = order[: self.beam], order[self.beam :]
            if not len(rest):
                return top
            weakest, rival = top[arms.low[top].argmin()], rest[arms.high[rest].argmax()]
            if arms.high[rival] - arms.low[weakest] <= self.tolerance or arms.pool.left <= stop_at:
                return top
            arms.ask([int(weakest), int(rival)], self.batch, self.batch)

    def _found(self, arms: Arms, i: int, holds: bool) -> Found:
        """The anchor, less the units that it can do without, and by how much its precision falls without each of the others."""
        while True:
            kept, units = arms.sets[i], np.flatnonzero(arms.sets[i])
            if not len(units):
                falls = np.zeros(0)
                break
            without = Arms(arms.pool, kept & ~np.eye(len(kept), dtype=bool)[units])
            if (thin := (without.draws < FIRM) & ~without.exact).any():
                arms.pool.draw(without.sets[thin], FIRM)
                without.update()
            smaller = self._settle(without) if holds else None
            if smaller is None:
                falls = np.where(
                    without.exact | (without.draws > 0), arms.mean[i] - without.mean, 0.0
                )
                break
            arms, i = without, smaller
        interval = (float(arms.low[i]), float(arms.high[i]))
        return Found(
            units, float(arms.mean[i]), interval, falls, arms.pool.asked, bool(arms.exact[i]), holds
        )

    def _result(self, game: Game, found: Found) -> Scores:
        scores = np.zeros(game.size)
        scores[found.units] = np.maximum(found.falls, LEAST)
        detail = {
            "anchor": found.units.tolist(),
            "precision": found.precision,
            "interval": list(found.interval),
            "coverage": 2.0 ** -len(found.units),
            "threshold": self.precision,
            "holds": found.holds,
            "samples": found.samples,
            "exact": found.exact,
        }
        return Scores(units=scores, note=self._note(game, found), detail=detail)

    def _note(self, game: Game, found: Found) -> str:
        names = ", ".join(f'"{game.passage.names[u]}"' for u in found.units)
        rule = (
            f"IF {names} {'is' if len(found.units) == 1 else 'are'} kept"
            if names
            else "whatever is kept"
        )
        low, high = found.interval
        sure = (
            "all removals"
            if found.exact
            else f"removals ({percent(1 - self.delta)} interval: {percent(low)} to {percent(high, up=True)})"
        )
        stays = f"the label stays {game.target.label} in {percent(found.precision)} of {sure}"
        note = f"{rule}, {stays}; coverage {100 * 2.0 ** -len(found.units):.3g} %"
        if found.holds:
            return note
        limit = "" if self.max_size is None else f" and max_size={self.max_size}"
        return f"no anchor of precision {percent(self.precision)} was found within budget={self.budget}{limit}; the best one: {note}"


def percent(share: float, up: bool = False) -> str:
    """A share to a tenth of a per cent, rounded down (or ``up``), so that it never promises more than there is.

    >>> percent(0.95), percent(0.9997), percent(0.9991, up=True)
    ('95 %', '99.9 %', '100 %')
    """
    tenths = np.ceil(1000 * share - 1e-9) if up else np.floor(1000 * share + 1e-9)
    return f"{tenths / 10:g} %"
