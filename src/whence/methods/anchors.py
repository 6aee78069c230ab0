"""Anchors: the fewest units that, when kept, hold the label whatever else is removed.

Beam search from the empty anchor upwards, its candidates compared by KL-LUCB. Two things make it
cheap. A mask drawn for one anchor counts for every anchor between what was kept on purpose and what
was kept by chance. And a text whose masks all fit into the budget is not sampled at all: one pass
over the lattice of subsets gives the precision of every anchor there is.
"""

from dataclasses import dataclass
from math import comb
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.core.errors import Unsupported
from whence.core.percent import figures
from whence.core.percent import percent as rounded
from whence.core.registry import SEED, Needs, Passes, method, setting
from whence.core.scores import Scores
from whence.games.arms import Arms, Pool, all_sets, completions, grown, lattice_precisions
from whence.games.bounds import anytime_rate
from whence.games.protocol import AnyGame
from whence.games.settings import REMOVAL

# units, up to which all sets are candidates, not only the beam's: a mask drawn for the empty set
# counts for one in 2^size
SMALL = 3
# sets of one size, as long as there are no more
ALL = 2000
# completions of a set: no more are enumerated at once, as a verdict from draws takes about as many
FEW = 256
# completions of the anchor that is returned: so many are worth an exact precision
MANY = 1024
# draws behind each precision of which a score is the difference
FIRM = 128
# masks, where a model is large or a budget small: enough for rules of two units
LEAN = 256
# masks, below which no bound says anything
FEWEST = 64
# score of a unit of the anchor: it is in the rule, even if the draws show no fall without it
LEAST = 1e-6


@dataclass(frozen=True, eq=False)
class Anchor:
    """A set of units, what is known of its precision, and how that falls without each of them."""

    units: Int[np.ndarray, " kept"]
    precision: float
    interval: tuple[float, float]
    falls: Float[np.ndarray, " kept"]
    samples: int
    exact: bool
    holds: bool

    @property
    def coverage(self) -> float:
        """The share of all masks that keep the anchor."""
        return 2.0 ** -len(self.units)


@method("anchors", version=1, cites="ribeiro2018anchors", aliases=("anchor",))
@dataclass(frozen=True, slots=True)
class Anchors:
    """The fewest words that hold the model's answer while they stay, whatever else is removed.

    A rule "if these words stay, the label stays", with two numbers. Its precision is the share of
    texts that keep the label, among those that keep the anchor and any other unit with probability
    1/2. Its coverage is the share of all such texts that keep the anchor: 2^-size.

    An anchor holds if its estimated precision reaches ``precision`` and the lower end of its
    interval is above ``precision`` less ``slack``. Of those that hold, the one with the fewest
    units is returned, then the most precise. With probability 1 − ``delta`` all intervals are
    right. Where all 2^d texts fit into ``budget``, the answer is exact. The score of a unit is the
    fall of precision when it leaves the anchor, and 0 outside of the anchor.
    """

    removal: str = setting("auto", REMOVAL)
    precision: float = setting(
        0.95, "In what share of the texts with other words removed the answer must stay the same."
    )
    delta: float = setting(
        0.1, "How often the reported intervals may be wrong: 0.1 makes them 90 % intervals."
    )
    tolerance: float = setting(
        0.15,
        "How exactly the best candidates of one size are told apart; smaller costs more passes.",
    )
    slack: float = setting(
        0.05, "How far the lower end of an anchor's interval may lie below the precision asked for."
    )
    beam: int = setting(
        4, "How many of the best sets of words are carried on from one size to the next."
    )
    batch: int = setting(32, "How many texts are run at a time for one candidate.")
    budget: int = setting(4096, "How many texts with words removed are run at most.")
    max_size: int | None = setting(
        None, "How many words an anchor may have at most; none sets no limit."
    )
    seed: int = setting(0, SEED)

    needs: ClassVar[Needs] = Needs.GAME
    signed: ClassVar[bool] = False
    only_for: ClassVar[str] = "the label that the model predicts"
    price: ClassVar[str] = (
        "One pass for each of the 2^d texts with words removed, up to 12 words; beyond, "
        "hundreds to 4096."
    )
    misleads: ClassVar[str] = (
        "It looks at the label alone: a probability that falls from 0.99 to 0.51 counts as "
        "kept. Enough is not necessary: other words may be enough as well."
    )

    def __post_init__(self) -> None:
        for name in ("precision", "delta", "tolerance"):
            share = getattr(self, name)
            if not 0 < share <= 1:
                raise ValueError(f"{name} is a share above 0 and up to 1, not {share}")
        if not 0 <= self.slack < self.precision:
            raise ValueError(
                f"slack is at least 0 and less than precision ({self.precision}), not {self.slack}"
            )
        for name in ("beam", "batch", "budget"):
            count = getattr(self, name)
            if count < 1:
                raise ValueError(f"{name} must be at least 1, not {count}")
        if self.max_size is not None and self.max_size < 0:
            raise ValueError(
                f"max_size is a number of units, 0 or more, or None for any, not {self.max_size}"
            )

    def lean(self, units: int) -> dict[str, int]:
        del units
        return {"budget": LEAN}

    def within(self, units: int, passes: int) -> dict[str, int]:
        del units
        return {"budget": min(self.budget, max(FEWEST, passes))}

    def passes(self, units: int) -> Passes:
        if 2**units <= self.budget:
            return Passes(forwards=2**units, pool="all masks")
        return Passes(forwards=self.budget, at_most=True)

    def __call__(self, game: AnyGame) -> Scores:
        label = game.label
        if label is None:
            raise Unsupported(
                "anchors hold a label, and this model has one output and no labels. "
                "Take a method of values, e.g. occlusion."
            )
        if game.target.index != label:
            raise Unsupported(
                "anchors explain the label that the model predicts, "
                f"and {game.target.label!r} is not it. Leave the target out, "
                "or take a method that explains any label, e.g. occlusion or shapley."
            )
        longest = game.size
        if self.max_size is not None:
            longest = min(self.max_size, game.size)
        if 2**game.size <= self.budget:
            anchor = self._enumerated(game, longest)
        else:
            anchor = self._searched(game, longest)
        return self._as_scores(game, anchor)

    def _enumerated(self, game: AnyGame, longest: int) -> Anchor:
        """The best anchor of all, from the labels of all masks."""
        masks = completions(np.zeros(game.size, dtype=bool))
        precision = lattice_precisions(game.labels(masks) == game.label)
        size = masks.sum(1)
        is_allowed = size <= longest
        is_valid = precision >= self.precision
        holds = bool((is_allowed & is_valid).any())
        # the last key counts first: of those that hold the smallest, then the most precise;
        # if none holds, the most precise
        if holds:
            order = np.lexsort((-precision, size, ~is_valid, ~is_allowed))
        else:
            order = np.lexsort((size, -precision, ~is_allowed))
        best = int(order[0])
        units = np.flatnonzero(masks[best])
        highest = float(precision[best])
        without_each = precision[best ^ (1 << units)]
        return Anchor(
            units=units,
            precision=highest,
            interval=(highest, highest),
            falls=highest - without_each,
            samples=len(masks),
            exact=True,
            holds=holds,
        )

    def _searched(self, game: AnyGame, longest: int) -> Anchor:
        """Beam search from the empty set upwards, as far as the budget goes.

        It is algorithm 2 of Ribeiro et al. 2018.
        """
        rng = np.random.default_rng([self.seed, *game.digest])
        pool = Pool(game, self.delta, self.budget, rng)
        beam = np.zeros((1, game.size), dtype=bool)
        highest_bound = -1.0
        best = None
        for size in range(longest + 1):
            arms = self._candidates(pool, beam, size)
            winner = self._settle(arms)
            if winner is not None:
                return self._trimmed(arms, winner, holds=True)
            leader = int(arms.low.argmax())
            bound = float(arms.low[leader])
            if bound > highest_bound:
                highest_bound = bound
                best = (arms, leader)
            if not pool.left:
                break
            beam = arms.sets[self._choose(arms)]
        assert best is not None
        return self._trimmed(*best, holds=False)

    def _candidates(self, pool: Pool, beam: Bool[np.ndarray, "set unit"], size: int) -> Arms:
        """The sets of a size that are looked at, with a first few draws for them."""
        units = beam.shape[1]
        if size <= SMALL and comb(units, size) <= ALL:
            nothing = np.zeros((1, units), dtype=bool)
            drawn = int(pool.tally(nothing)[1][0])
            pool.draw(nothing, 2 ** (size + 1) * self.batch - drawn)
            return Arms(pool, all_sets(units, size))
        # a mask drawn for a parent counts for half of its children
        pool.draw(beam, 2 * self.batch)
        return Arms(pool, grown(beam))

    def _settle(self, arms: Arms) -> int | None:
        """The most precise set that holds, if there is one.

        Before, it draws for those that still might hold, the likeliest first, for half of what is
        left of the budget.
        """
        pool = arms.pool
        stop_at = pool.left // 2
        while True:
            is_enough = arms.low > self.precision - self.slack
            holds = (arms.mean >= self.precision) & (is_enough | arms.exact)
            # to overlook a set that holds is a loss of coverage, not of truth: each has all of δ
            # to itself
            _, high = arms.interval(anytime_rate(arms.draws, self.delta))
            is_open = ~arms.exact & ~is_enough & (high >= self.precision)

            winner = None
            if holds.any():
                winner = int(np.where(holds, arms.mean, -1).argmax())
                is_open &= arms.mean > arms.mean[winner]
            likeliest_first = np.argsort(-arms.mean, kind="stable")
            wanted = likeliest_first[is_open[likeliest_first]][: self.beam].tolist()

            if wanted and pool.left > stop_at:
                arms.ask(wanted, self.batch, FEW)
            elif winner is not None and self._is_worth_enumerating(arms, winner):
                arms.ask([winner], self.batch, MANY)
            else:
                return winner

    def _is_worth_enumerating(self, arms: Arms, winner: int) -> bool:
        if arms.exact[winner]:
            return False
        completions_of_it = 2 ** (len(arms.sets[winner]) - arms.size)
        return completions_of_it <= min(arms.pool.left, MANY)

    def _choose(self, arms: Arms) -> Int[np.ndarray, " chosen"]:
        """The ``beam`` most precise sets, to within ``tolerance``.

        It is KL-LUCB (Kaufmann and Kalyanakrishnan 2013).
        """
        # more changed no answer in trials: draws shared with parents do most of it
        stop_at = arms.pool.left - arms.pool.left // 16
        while True:
            order = np.argsort(-arms.mean, kind="stable")
            top, rest = order[: self.beam], order[self.beam :]
            if not len(rest):
                return top
            weakest = int(top[arms.low[top].argmin()])
            rival = int(rest[arms.high[rest].argmax()])
            is_settled = arms.high[rival] - arms.low[weakest] <= self.tolerance
            if is_settled or arms.pool.left <= stop_at:
                return top
            arms.ask([weakest, rival], self.batch, self.batch)

    def _trimmed(self, arms: Arms, i: int, holds: bool) -> Anchor:
        """The anchor less the units that it can do without, and its falls without the others."""
        while True:
            kept = arms.sets[i]
            units = np.flatnonzero(kept)
            if not len(units):
                falls = np.zeros(0)
                break
            without = self._without_each(arms.pool, kept, units)
            smaller = self._settle(without) if holds else None
            if smaller is None:
                is_known = without.exact | (without.draws > 0)
                falls = np.where(is_known, arms.mean[i] - without.mean, 0.0)
                break
            arms, i = without, smaller
        return Anchor(
            units=units,
            precision=float(arms.mean[i]),
            interval=(float(arms.low[i]), float(arms.high[i])),
            falls=falls,
            samples=arms.pool.asked,
            exact=bool(arms.exact[i]),
            holds=holds,
        )

    def _without_each(
        self, pool: Pool, kept: Bool[np.ndarray, " unit"], units: Int[np.ndarray, " kept"]
    ) -> Arms:
        """The sets with one unit less, each with a firm number of draws."""
        one_each = np.eye(len(kept), dtype=bool)[units]
        without = Arms(pool, kept & ~one_each)
        is_thin = (without.draws < FIRM) & ~without.exact
        if is_thin.any():
            pool.draw(without.sets[is_thin], FIRM)
            without.update()
        return without

    def _as_scores(self, game: AnyGame, anchor: Anchor) -> Scores:
        scores = np.zeros(game.size)
        scores[anchor.units] = np.maximum(anchor.falls, LEAST)
        detail = {
            "anchor": anchor.units.tolist(),
            "precision": anchor.precision,
            "interval": list(anchor.interval),
            "coverage": anchor.coverage,
            "threshold": self.precision,
            "holds": anchor.holds,
            "samples": anchor.samples,
            "exact": anchor.exact,
        }
        return Scores(units=scores, note=self._note(game, anchor), detail=detail)

    def _note(self, game: AnyGame, anchor: Anchor) -> str:
        """The rule in words.

        Said of every anchor; where it is not as precise as was asked, that none was found. ``IF
        "not" is kept, the label stays negative in 97.2 % of removals (95 % interval: 95.1 % to 98.6
        %); coverage 50 %``
        """
        names = ", ".join(f'"{game.units.names[u]}"' for u in anchor.units)
        rule = "whatever is kept"
        if names:
            verb = "is" if len(anchor.units) == 1 else "are"
            rule = f"IF {names} {verb} kept"
        of_removals = "all removals"
        if not anchor.exact:
            low, high = anchor.interval
            bounds = f"{percent(low)} to {percent(high, up=True)}"
            of_removals = f"removals ({percent(1 - self.delta)} interval: {bounds})"
        note = (
            f"{rule}, the label stays {game.target.label} "
            f"in {percent(anchor.precision)} of {of_removals}; "
            f"coverage {figures(anchor.coverage, 3)} %"
        )
        if anchor.holds:
            return note
        limit = "" if self.max_size is None else f" and max_size={self.max_size}"
        return (
            f"no anchor of precision {percent(self.precision)} was found "
            f"within budget={self.budget}{limit}, which does not say that there is none; "
            f"the best one so far: {note}"
        )


def percent(share: float, up: bool = False) -> str:
    """A share to a tenth of a per cent, rounded so that it never promises more than there is.

    That is down, or ``up`` for the upper end of an interval.

    >>> percent(0.95), percent(0.9997), percent(0.9991, up=True)
    ('95 %', '99.9 %', '99.91 %')
    """
    tenths = np.floor(1000 * share + 1e-9)
    if up:
        tenths = np.ceil(1000 * share - 1e-9)
    if tenths in (0, 1000) and share not in (0, 1):
        return rounded(share, 2)  # which is none or all only where it is
    return f"{tenths / 10:g} %"
