"""Ties: scores that are equal are judged beside permuted copies of themselves.

Tied scores rank tiers of units, and say nothing of the order within a tier. So their control is the
same tiers, filled with other units: a *copy*. Every random ranking that is there already gives one,
by cutting it into tiers of the same sizes. Both the scores and their copies are then a ranking
whose order within tiers was drawn by lot, and what the lot did is taken off both alike
(``smoothed``).

Copies may repeat. Under the hypothesis that the scores were given to the units at random, the copy
that the scores themselves are is any of the *distinct* ones with equal chance; so p counts these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial, prod

import numpy as np
from jaxtyping import Float, Int

from whence.metrics.curves import Curves, first_units


def are_tied(scores: Float[np.ndarray, " unit"]) -> bool:
    """Whether some scores are equal."""
    return len(np.unique(scores)) < len(scores)


def tiers_of(scores: Float[np.ndarray, " unit"]) -> Int[np.ndarray, " unit"]:
    """The tier of each unit: 0 for the highest score, and the same for equal ones.

    >>> tiers_of(np.array([0.5, 0.0, 2.0, 0.0])).tolist()
    [1, 2, 0, 2]
    """
    _, tiers = np.unique(-scores, return_inverse=True)
    return tiers


def sizes_of(scores: Float[np.ndarray, " unit"]) -> Int[np.ndarray, " tier"]:
    """How many units each tier has, the highest first.

    >>> sizes_of(np.array([0.5, 0.0, 2.0, 0.0])).tolist()
    [1, 1, 2]
    """
    return np.bincount(tiers_of(scores))


def number_of_copies(sizes: Int[np.ndarray, " tier"]) -> int:
    """In how many ways the units can be put into tiers of these sizes.

    >>> number_of_copies(np.array([2, 6])), number_of_copies(np.array([1, 1, 1]))
    (28, 6)
    """
    within_tiers = prod(factorial(size) for size in sizes.tolist())
    return factorial(int(sizes.sum())) // within_tiers


def tiers_in(
    orders: Int[np.ndarray, "row unit"], sizes: Int[np.ndarray, " tier"]
) -> Int[np.ndarray, "row unit"]:
    """The tier of each unit, if each order is cut into tiers of these sizes.

    >>> tiers_in(np.array([[2, 0, 1]]), np.array([1, 2])).tolist()
    [[1, 1, 0]]
    """
    place = np.argsort(orders, axis=1)
    return np.repeat(np.arange(len(sizes)), sizes)[place]


def mirrored(
    orders: Int[np.ndarray, "row unit"], sizes: Int[np.ndarray, " tier"]
) -> Int[np.ndarray, "row unit"]:
    """The orders with each tier reversed: what was first among equals is last.

    >>> mirrored(np.array([[2, 0, 1, 3]]), np.array([1, 3])).tolist()
    [[2, 3, 1, 0]]
    """
    tiers = np.split(orders, np.cumsum(sizes)[:-1], axis=1)
    return np.concatenate([tier[:, ::-1] for tier in tiers], axis=1)


def smoothed(
    curves: Curves, orders: Int[np.ndarray, "ranking unit"], sizes: Int[np.ndarray, " tier"]
) -> Curves:
    """The curves of orders that were drawn by lot within tiers, without what the lot did.

    A curve's height is about c_step + w · z, where z says which units went first. Their order
    within a tier was drawn by lot, so on average over lots z is the share z̄ of the tier that went
    first. The height less w · (z − z̄) is what the mean over lots would be, if units acted
    independently; it takes no pass. The weights w are fitted to all rows alike, so that no row is
    favoured.

    >>> orders = np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]])
    >>> first = first_units(orders, np.arange(4))
    >>> curves = Curves(np.arange(4), ~first @ [4.0, 2.0, 0.0], first @ [4.0, 2.0, 0.0])
    >>> smoothed(curves, orders, np.array([1, 2])).insertion[0].round(9)  # 4, then 2 and 0 alike
    array([0., 4., 5., 6.])
    """
    steps = curves.steps
    if len(sizes) == len(orders[0]) or len(steps) <= 2:
        return curves
    first = first_units(orders, steps).astype(np.float64)
    by_lot = first - _mean_over_lots(orders, sizes, steps)

    inner = slice(1, -1)  # at both ends all rows are alike
    both = np.stack([curves.deletion, curves.insertion], axis=-1)
    design = _centred(first[:, inner]).reshape(-1, orders.shape[1])
    heights = _centred(both[:, inner]).reshape(-1, 2)
    weights, *_ = np.linalg.lstsq(design, heights, rcond=None)
    without_lots = both - by_lot @ weights
    return Curves(steps, without_lots[..., 0], without_lots[..., 1])


def _mean_over_lots(
    orders: Int[np.ndarray, "ranking unit"],
    sizes: Int[np.ndarray, " tier"],
    steps: Int[np.ndarray, " step"],
) -> Float[np.ndarray, "ranking step unit"]:
    """How likely each unit is among the first, if the order within tiers is drawn by lot."""
    begins = np.cumsum(sizes) - sizes
    tier = tiers_in(orders, sizes)
    of_tier = (steps[:, None] - begins) / sizes  # step tier
    return of_tier.clip(0.0, 1.0)[:, tier].swapaxes(0, 1)


def _centred(rows: Float[np.ndarray, "row step column"]) -> Float[np.ndarray, "row step column"]:
    return rows - rows.mean(0)


@dataclass(frozen=True, eq=False)
class Copies:
    """Which rows are the same copy, and which of the copies are the scores themselves.

    ``is_complete`` says that every copy that there is, is among them.
    """

    of_row: Int[np.ndarray, " row"]
    own: int
    is_complete: bool

    @property
    def distinct(self) -> int:
        """How many copies there are, the scores themselves among them."""
        return int(self.of_row.max()) + 1

    def __len__(self) -> int:
        """The copies that the scores are held against."""
        return self.distinct if self.is_complete else self.distinct - 1

    @property
    def smallest_p(self) -> float:
        """The p of the scores, if no other copy is as good."""
        return 1 / self.distinct

    def mean(self, rows: Float[np.ndarray, " row *rest"]) -> Float[np.ndarray, " copy *rest"]:
        """The mean over the rows of each copy: they differ by lot alone."""
        total = np.zeros((self.distinct, *rows.shape[1:]))
        np.add.at(total, self.of_row, rows)
        count = np.bincount(self.of_row).reshape(-1, *[1] * (rows.ndim - 1))
        return total / count

    def apart(
        self, rows: Float[np.ndarray, " row *rest"]
    ) -> tuple[Float[np.ndarray, " 1 *rest"], Float[np.ndarray, " copy *rest"]]:
        """The scores' own mean, and those of the copies that they are held against."""
        means = self.mean(rows)
        own = means[self.own : self.own + 1]
        if self.is_complete:
            return own, means
        return own, np.delete(means, self.own, axis=0)

    def curves_apart(self, rows: Curves) -> tuple[Curves, Curves]:
        """The same of curves."""
        own_deletion, deletion = self.apart(rows.deletion)
        own_insertion, insertion = self.apart(rows.insertion)
        own = Curves(rows.steps, own_deletion, own_insertion)
        return own, Curves(rows.steps, deletion, insertion)


def copies_of(
    tiers: Int[np.ndarray, "row unit"], own: Int[np.ndarray, " unit"], number: int
) -> Copies:
    """The copies among the rows, of which ``number`` are possible; ``own`` is one of them.

    >>> copies = copies_of(np.array([[0, 1], [1, 0], [0, 1]]), np.array([0, 1]), number=2)
    >>> copies.own, copies.is_complete, copies.mean(np.array([1.0, 5.0, 3.0])).tolist()
    (0, True, [2.0, 5.0])
    """
    distinct, of_row = np.unique(tiers, axis=0, return_inverse=True)
    (place,) = np.flatnonzero((distinct == own).all(1)).tolist()
    return Copies(of_row.reshape(-1), place, len(distinct) == number)


def joined(parts: Sequence[Curves]) -> Curves:
    """The rows of several curves with the same steps, one after the other."""
    return Curves(
        parts[0].steps,
        np.concatenate([part.deletion for part in parts]),
        np.concatenate([part.insertion for part in parts]),
    )
