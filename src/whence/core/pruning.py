"""What heads are worth over a data set, which of them hurt, which can go, and pruning curves.

All of it is arithmetic on a matrix "text × head": the loss without the head, less that of the whole
model. Above 0 the head helps, below 0 it hurts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.core.audit import Place
from whence.core.bootstrap import (
    DRAWS,
    FEWEST_TEXTS,
    ROUNDING,
    Mean,
    means,
    told_apart,
    wilson,
    within,
)
from whence.core.errors import InputError, unknown_name

HALVES_STREAM = 16  # of random numbers
ORDERS_STREAM = 17
MOST_STEPS = 9  # of a curve in an audit, none and all heads among them


@dataclass(frozen=True, eq=False)
class Hurting:
    """Heads without which the loss falls: named on one half of the texts, tried on the other.

    ``named`` are judged together with all heads, and ``confirmed`` together with all that were
    named: each step keeps the chance of even one false claim at 5 %. ``held_out`` is the change of
    the loss on the other half, for each that was named: it is free of the luck that got it named.
    """

    named: tuple[int, ...]
    confirmed: tuple[int, ...]
    held_out: tuple[Mean, ...]


def worth(values: Float[np.ndarray, "text head"], seed: int = 0) -> list[Mean]:
    """The mean change of the loss without each head, with its interval.

    >>> values = np.array([[0.5, 0.0], [0.7, 0.0], [0.6, 0.0], [0.4, 0.0], [0.3, 0.0]])
    >>> [round(head.mean, 3) for head in worth(values)]
    [0.5, 0.0]
    """
    return means(values, seed)


@runtime_checkable
class Known(Protocol):
    """Something whose mean lies in an interval: a Mean, or an Effect."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """None where too little is known."""
        ...


def helping(heads: Sequence[Known], tolerance: float) -> Bool[np.ndarray, " head"]:
    """Heads without which the loss rises by more than ``tolerance``, with the whole interval.

    >>> from whence.core.bootstrap import means_together
    >>> values = np.array([[0.5, 0.0], [0.7, 0.0], [0.6, 0.0], [0.4, 0.0], [0.3, 0.0]])
    >>> helping(means_together(values), 0.01).tolist()
    [True, False]
    """
    _check(tolerance)
    return np.array([h.interval is not None and h.interval[0] > tolerance for h in heads])


def spared(heads: Sequence[Known], tolerance: float) -> Bool[np.ndarray, " head"]:
    """Heads that can go: without one of them the loss rises by less than ``tolerance``.

    That is shown, and not just not refuted: a head of which too little is known is not among them.
    It is said of each head alone; what several cost together is for the pruning curve to say.

    >>> from whence.core.bootstrap import means_together
    >>> rng = np.random.default_rng(0)
    >>> idle, unclear = rng.normal(0, 0.01, size=50), rng.normal(0, 3.0, size=50)
    >>> spared(means_together(np.stack([idle, unclear], axis=1)), tolerance=0.05).tolist()
    [True, False]
    """
    _check(tolerance)
    return np.array([h.interval is not None and h.interval[1] < tolerance for h in heads])


def _check(tolerance: float) -> None:
    if tolerance <= 0:
        raise InputError(f"tolerance is a rise of the loss above 0, not {tolerance}.")


def hurting(
    values: Float[np.ndarray, "text head"], tolerance: float, seed: int = 0, draws: int = DRAWS
) -> Hurting:
    """Heads without which the loss falls by more than ``tolerance``, on both halves of the texts.

    >>> rng = np.random.default_rng(0)
    >>> values = rng.normal(0, 0.1, size=(60, 3)) - np.array([0.0, 0.2, 0.0])
    >>> hurting(values, 0.01).confirmed
    (1,)
    """
    _check(tolerance)
    first, second = halves(len(values), seed)
    named = np.flatnonzero(_falls(values[first], tolerance, seed, draws))
    held_out = values[second][:, named]
    again = _falls(held_out, tolerance, seed, draws)
    return Hurting(
        named=tuple(named.tolist()),
        confirmed=tuple(named[again].tolist()),
        held_out=tuple(means(held_out, seed, draws)),
    )


def _falls(
    values: Float[np.ndarray, "text head"], tolerance: float, seed: int, draws: int
) -> Bool[np.ndarray, " head"]:
    if not values.shape[1]:
        return np.zeros(0, dtype=bool)
    # the largest statistic of all: of skewed losses it claims less than balanced intervals do
    beyond = values + tolerance
    return told_apart(beyond, seed, draws, scale=tolerance) & (_mean(beyond) < 0)


def halves(
    texts: int, seed: int = 0
) -> tuple[Int[np.ndarray, " first"], Int[np.ndarray, " second"]]:
    """The numbers of the texts in two halves, drawn by lot; of an odd number the second has more.

    >>> [half.tolist() for half in halves(5)]
    [[0, 4], [1, 2, 3]]
    """
    drawn = np.random.default_rng([seed, HALVES_STREAM, texts]).permutation(texts)
    middle = texts // 2
    return np.sort(drawn[:middle]), np.sort(drawn[middle:])


def least_worth_first(values: Float[np.ndarray, "text head"]) -> Int[np.ndarray, " head"]:
    """The heads in the order in which they would be removed: what hurts first, what helps last.

    >>> least_worth_first(np.array([[0.5, -0.1, 0.2]])).tolist()
    [1, 2, 0]
    """
    return np.argsort(_mean(values), kind="stable")


def least_moving_first(values: Float[np.ndarray, "text head"]) -> Int[np.ndarray, " head"]:
    """The heads by the mean size of the change, the smallest first (as Michel et al. 2019 rank).

    A head that helps on one half of the texts as much as it hurts on the other is worth nothing in
    the mean and is not idle: several such heads together may be what the model knows.

    >>> least_moving_first(np.array([[0.5, 0.1, -0.2], [-0.5, 0.1, -0.2]])).tolist()
    [1, 2, 0]
    """
    return np.argsort(_mean(np.abs(values)), kind="stable")


def random_orders(heads: int, count: int, seed: int = 0) -> Int[np.ndarray, "order head"]:
    """Random orders of the heads, which a pruning curve is held against.

    >>> random_orders(4, 2).shape
    (2, 4)
    """
    rng = np.random.default_rng([seed, ORDERS_STREAM, heads])
    return np.array([rng.permutation(heads) for _ in range(count)]).reshape(count, heads)


def _mean(values: Float[np.ndarray, "text head"]) -> Float[np.ndarray, " head"]:
    """Over the texts on which it was measured; NaN, of which nothing is claimed, where none was."""
    measured = np.isfinite(values)
    texts = measured.sum(0)
    sums = np.where(measured, values, 0.0).sum(0)
    return np.divide(sums, texts, out=np.full(texts.shape, np.nan), where=texts > 0)


@dataclass(frozen=True, eq=False)
class PruningCurves:
    """The loss, and whether the model is right, as the first heads of each order are removed.

    Values are kept text by text, so that orders can be compared on the same texts. ``right`` is NaN
    for a regression.
    """

    orders: tuple[str, ...]
    steps: Int[np.ndarray, " step"]  # how many heads are removed
    loss: Float[np.ndarray, "order step text"]
    right: Float[np.ndarray, "order step text"]

    def mean_loss(self, order: str, seed: int = 0) -> list[Mean]:
        """At each step, with its interval over the texts."""
        return means(self.loss[self._row(order)].T, seed)

    def share_right(self, order: str, seed: int = 0) -> list[Mean]:
        """At each step, with its interval over the texts."""
        return means(self.right[self._row(order)].T, seed)

    def below(self, order: str, others: Sequence[str], seed: int = 0) -> list[Mean]:
        """How far the loss of an order lies below the mean of others, at each step.

        Orders are compared text by text. An interval above 0 is an order that is better than they
        are; it is of the texts, with these orders given.
        """
        return means(self.gaps(order, others), seed)

    def told_apart(
        self, order: str, others: Sequence[str], seed: int = 0
    ) -> Bool[np.ndarray, " step"]:
        """The steps at which that is not zero, where all steps are judged together."""
        return told_apart(self.gaps(order, others), seed)

    def gaps(self, order: str, others: Sequence[str]) -> Float[np.ndarray, "text step"]:
        """The same text by text."""
        if not others:
            raise InputError("an order is compared with at least one other.")
        mean_of_others = self.loss[[self._row(other) for other in others]].mean(0)
        gaps = (mean_of_others - self.loss[self._row(order)]).T
        # where all orders are the same, the mean of them differs in its last digits
        last_digits = ROUNDING * np.abs(self.loss).max(initial=0.0)
        return np.where(np.abs(gaps) > last_digits, gaps, 0.0)

    def _row(self, order: str) -> int:
        if order not in self.orders:
            raise unknown_name("order", order, self.orders)
        return self.orders.index(order)

    def joined(self, other: PruningCurves) -> PruningCurves:
        """These texts and those: the same orders and steps."""
        same_steps = np.array_equal(self.steps, other.steps)
        if self.orders != other.orders or not same_steps:
            raise InputError("curves are joined where they have the same orders and steps.")
        return replace(
            self,
            loss=np.concatenate([self.loss, other.loss], axis=2),
            right=np.concatenate([self.right, other.right], axis=2),
        )


# ---------------------------------------------------------------------- what an audit keeps


@dataclass(frozen=True)
class MeanCurve:
    """The task at each step, as means over texts. ``right`` is empty for a regression."""

    loss: tuple[Mean, ...]
    right: tuple[Mean, ...]


@dataclass(frozen=True)
class PrunedOrder:
    """What becomes of the task as heads go in one order.

    ``below_random`` is how far the loss lies below the mean of the random orders, text by text: an
    interval above 0 is a better order. ``apart`` are the steps at which that is not zero, where all
    steps of all orders are judged together.
    """

    name: str
    heads: tuple[Place, ...]
    curve: MeanCurve
    below_random: tuple[Mean, ...]
    apart: tuple[bool, ...]


@dataclass(frozen=True)
class Pruning:
    """Heads removed one after the other, on texts that did not decide in which order.

    The orders come from ``ordered_on`` texts and are tried on ``texts`` others, of ``held_out``
    that there were. ``control`` is the mean of the random orders, each of which is in ``random``.
    """

    steps: tuple[int, ...]  # how many heads are removed
    orders: tuple[PrunedOrder, ...]
    random: tuple[MeanCurve, ...]
    control: MeanCurve
    ordered_on: int
    texts: int
    held_out: int
    forwards: int

    @property
    def heads(self) -> int:
        """How many there are: all of them are gone at the last step."""
        return self.steps[-1]


def pruning_of(
    curves: PruningCurves,
    orders: Mapping[str, Sequence[Place]],
    *,
    ordered_on: int,
    held_out: int,
    forwards: int,
    seed: int = 0,
) -> Pruning:
    """What an audit keeps of curves. ``orders`` are those that are no random ones, with heads."""
    control = [name for name in curves.orders if name not in orders]
    gaps = [curves.gaps(name, control) for name in orders]
    of_orders = np.split(told_apart(np.concatenate(gaps, axis=1), seed), len(orders))
    pruned = []
    for (name, heads), apart in zip(orders.items(), of_orders, strict=True):
        pruned.append(
            PrunedOrder(
                name=name,
                heads=tuple(heads),
                curve=_mean_curve(curves, [name], seed),
                below_random=tuple(curves.below(name, control, seed)),
                apart=tuple(apart.tolist()),
            )
        )
    return Pruning(
        steps=tuple(curves.steps.tolist()),
        orders=tuple(pruned),
        random=tuple(_mean_curve(curves, [name], seed) for name in control),
        control=_mean_curve(curves, control, seed),
        ordered_on=ordered_on,
        texts=curves.loss.shape[2],
        held_out=held_out,
        forwards=forwards,
    )


def _mean_curve(curves: PruningCurves, orders: Sequence[str], seed: int) -> MeanCurve:
    """Of one order, or of the mean of several on each text."""
    rows = [curves.orders.index(order) for order in orders]
    right = curves.right[rows].mean(0).T
    loss = []
    for mean in means(curves.loss[rows].mean(0).T, seed):
        loss.append(replace(mean, interval=within(mean.interval, (0.0, inf))))
    is_known = bool(np.isfinite(right).all())
    return MeanCurve(tuple(loss), _shares(right) if is_known else ())


def _shares(right: Float[np.ndarray, "text step"]) -> tuple[Mean, ...]:
    """With Wilson's intervals: texts that are all right have no spread that could be drawn again.

    Of the mean of several orders these are too wide rather than too narrow, as it is less spread
    than a share.
    """
    texts = len(right)
    shares = []
    for share in right.mean(0).tolist():
        interval = wilson(share, texts) if texts >= FEWEST_TEXTS else None
        shares.append(Mean(share, interval, texts))
    return tuple(shares)


def even_steps(heads: int, most: int = MOST_STEPS) -> tuple[int, ...]:
    """Numbers of heads to remove, from none to all, at most so many of them.

    >>> even_steps(48), even_steps(3)
    ((0, 6, 12, 18, 24, 30, 36, 42, 48), (0, 1, 2, 3))
    """
    steps = np.linspace(0, heads, min(most, heads + 1))
    return tuple(np.unique(np.round(steps).astype(int)).tolist())
