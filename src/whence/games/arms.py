"""Sets of units as the arms of a bandit.

The precision of a set is how often the label stays when the set is kept and every other unit is
left to a coin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.games.bounds import anytime_rate, kl_interval, log_choose
from whence.games.protocol import AnyGame

# Draws that are held against all sets together, so that thousands of sets stay small.
AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class Enumerated:
    """A set, all masks that keep it, and which of them kept the label."""

    kept: Bool[np.ndarray, " unit"]
    masks: Bool[np.ndarray, "mask unit"]
    same: Bool[np.ndarray, " mask"]


class Pool:
    """Every mask drawn so far, and whether it kept the label; ``left`` is how many more to ask.

    A mask that was drawn with the units ``given`` kept, and the others left to a coin, is a fair
    draw for each set A with given ⊆ A ⊆ mask: that the coin happened to keep all of A says nothing
    about the units outside of A.
    """

    def __init__(self, game: AnyGame, delta: float, budget: int, rng: np.random.Generator) -> None:
        self.game = game
        self.delta = delta
        self.left = budget
        self.asked = 0
        self.rng = rng
        self.masks = np.zeros((0, game.size), dtype=bool)
        self.given = np.zeros((0, game.size), dtype=bool)
        self.same = np.zeros(0, dtype=bool)
        self.enumerated: list[Enumerated] = []

    def draw(self, sets: Bool[np.ndarray, "set unit"], count: int) -> None:
        """Draw ``count`` masks for each set in one call; fewer, evenly, where the budget ends."""
        given = np.tile(sets, (max(count, 0), 1))[: self.left]
        if not len(given):
            return
        masks = given | self.rng.integers(0, 2, given.shape).astype(bool)
        self.masks = np.concatenate([self.masks, masks])
        self.given = np.concatenate([self.given, given])
        self.same = np.concatenate([self.same, self._ask(masks)])

    def enumerate(self, kept: Bool[np.ndarray, " unit"]) -> None:
        """Ask all masks that keep the set.

        From then on its precision, and that of every larger set, is known exactly.
        """
        masks = completions(kept)
        self.enumerated.append(Enumerated(kept, masks, self._ask(masks)))

    def _ask(self, masks: Bool[np.ndarray, "mask unit"]) -> Bool[np.ndarray, " mask"]:
        self.left -= len(masks)
        self.asked += len(masks)
        return self.game.labels(masks) == self.game.label

    def tally(
        self, sets: Bool[np.ndarray, "set unit"], since: int = 0
    ) -> tuple[Int[np.ndarray, " set"], Int[np.ndarray, " set"]]:
        """For each set, how many fair draws kept the label, and how many there are.

        Only draws from number ``since`` on are counted.
        """
        hits = np.zeros(len(sets), dtype=np.int64)
        draws = np.zeros(len(sets), dtype=np.int64)
        inside = sets.T.astype(np.float32)
        outside = (~sets).T.astype(np.float32)
        for first in range(since, len(self.same), AT_ONCE):
            part = slice(first, first + AT_ONCE)
            missing = (~self.masks[part]).astype(np.float32) @ inside
            forced = self.given[part].astype(np.float32) @ outside
            fair = (missing == 0) & (forced == 0)
            hits += (fair & self.same[part, None]).sum(0)
            draws += fair.sum(0)
        return hits, draws


class Arms:
    """Sets of one size: estimated precisions, and an interval from ``low`` to ``high`` for each.

    Draws and enumeration narrow the intervals. With probability at least 1 − δ all intervals of
    all sets of all sizes are right, at all times: a set of k of d units has the share
    1 / (C(d, k)·(k + 1)·(k + 2)) of δ, and these shares sum to one. So it does no harm that which
    sets are looked at, and for how long, depends on the draws themselves.
    """

    def __init__(self, pool: Pool, sets: Bool[np.ndarray, "set unit"]) -> None:
        self.pool = pool
        self.sets = sets
        self.size = int(sets[0].sum())
        of_sizes = float(np.log((self.size + 1) * (self.size + 2)))
        self.log_arms = log_choose(sets.shape[1], self.size) + of_sizes
        self.hits = np.zeros(len(sets), dtype=np.int64)
        self.draws = np.zeros(len(sets), dtype=np.int64)
        # The precision of a set whose completions were enumerated.
        self.known = np.full(len(sets), np.nan)
        self._counted = 0
        self._looked = 0
        self.update()

    def update(self) -> None:
        """Take in what the pool has drawn and enumerated since."""
        hits, draws = self.pool.tally(self.sets, self._counted)
        self.hits = self.hits + hits
        self.draws = self.draws + draws
        self._counted = len(self.pool.masks)

        for whole in self.pool.enumerated[self._looked :]:
            larger = self.sets[:, whole.kept].all(1) & np.isnan(self.known)
            for i in np.flatnonzero(larger):
                keeps_all = whole.masks[:, self.sets[i]].all(1)
                self.known[i] = whole.same[keeps_all].mean()
        self._looked = len(self.pool.enumerated)

        rate = anytime_rate(self.draws, self.pool.delta, self.log_arms)
        self.low, self.high = self.interval(rate)

    @property
    def exact(self) -> Bool[np.ndarray, " set"]:
        """True where the precision is known, not estimated."""
        return ~np.isnan(self.known)

    @property
    def mean(self) -> Float[np.ndarray, " set"]:
        """The precision, known or estimated; one half where nothing was drawn."""
        estimated = np.where(self.draws > 0, self.hits / np.maximum(self.draws, 1), 0.5)
        return np.where(self.exact, self.known, estimated)

    def interval(
        self, rate: Float[np.ndarray, " set"]
    ) -> tuple[Float[np.ndarray, " set"], Float[np.ndarray, " set"]]:
        """The interval at another rate than the one of ``low`` and ``high``."""
        low, high = kl_interval(self.hits, self.draws, rate)
        return np.where(self.exact, self.known, low), np.where(self.exact, self.known, high)

    def ask(self, which: Sequence[int] | Int[np.ndarray, " asked"], count: int, few: int) -> None:
        """Draw ``count`` masks for each of these arms.

        Where no more than ``few`` masks keep the set, all of them are asked instead.
        """
        all_of_them = 2 ** (self.sets.shape[1] - self.size)
        drawn = []
        for i in which:
            if self.exact[i]:
                continue
            if all_of_them <= min(few, self.pool.left):
                self.pool.enumerate(self.sets[i])
            else:
                drawn.append(i)
        self.pool.draw(self.sets[drawn], count)
        self.update()


def completions(kept: Bool[np.ndarray, " unit"]) -> Bool[np.ndarray, "mask unit"]:
    """All masks that keep these units; the first unit that is free changes fastest.

    >>> completions(np.array([False, True, False])).astype(int)
    array([[0, 1, 0],
           [1, 1, 0],
           [0, 1, 1],
           [1, 1, 1]])
    """
    free = np.flatnonzero(~kept)
    masks = np.tile(kept, (2 ** len(free), 1))
    masks[:, free] = np.arange(2 ** len(free))[:, None] >> np.arange(len(free)) & 1
    return masks


def lattice_precisions(same: Bool[np.ndarray, " mask"]) -> Float[np.ndarray, " mask"]:
    """The precision of every set of units, from whether each mask keeps the label.

    Bit i of the number of a mask, or of a set, is unit i.

    >>> lattice_precisions(np.array([False, True, False, True]))  # the label is unit 0
    array([0.5, 1. , 0.5, 1. ])
    """
    units = len(same).bit_length() - 1
    share = same.astype(np.float64)
    # What a set leaves open is the mean over both of its continuations.
    for unit in range(units):
        pairs = share.reshape(-1, 2, 2**unit)
        pairs[:, 0] = (pairs[:, 0] + pairs[:, 1]) / 2
    return share


def all_sets(units: int, size: int) -> Bool[np.ndarray, "set unit"]:
    """Every set of ``size`` units.

    >>> all_sets(3, 2).astype(int)
    array([[1, 1, 0],
           [1, 0, 1],
           [0, 1, 1]])
    """
    sets = np.zeros((comb(units, size), units), dtype=bool)
    for row, chosen in zip(sets, combinations(range(units), size), strict=True):
        row[list(chosen)] = True
    return sets


def grown(sets: Bool[np.ndarray, "set unit"]) -> Bool[np.ndarray, "larger unit"]:
    """Every set that has one unit more than one of these, once each.

    >>> grown(np.array([[True, False, False]])).astype(int)
    array([[1, 0, 1],
           [1, 1, 0]])
    """
    larger = sets[:, None, :] | np.eye(sets.shape[1], dtype=bool)
    return np.unique(larger[~sets], axis=0)
