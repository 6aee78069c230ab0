"""The control: what a metric gives permuted copies of the scores that it measures.

A metric of rankings gets random rankings; where scores are equal, random rankings with the same
ties. A metric of scores gets the same numbers, given to other units. A metric of the form alone
would not see that, so it gets numbers drawn from the normal distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.core.errors import InputError, Unsupported
from whence.core.registry import Needs, as_values
from whence.games.protocol import AnyGame
from whence.metrics.protocol import Metric
from whence.metrics.rankings import RANKINGS, random_rankings, rankings_of
from whence.metrics.ties import (
    are_tied,
    copies_of,
    mirrored,
    number_of_copies,
    sizes_of,
    tiers_in,
    tiers_of,
)

DRAWN_STREAM = 3  # of random numbers: scores that mean nothing


@dataclass(frozen=True, eq=False)
class Subject:
    """What the explanations of one text are held against.

    ``gold`` marks the units that are known to matter, or that people marked; None if nobody knows.
    """

    game: AnyGame
    gold: Bool[np.ndarray, " unit"] | None = None
    seed: int = 0


def as_gold(given: Any, units: int) -> Bool[np.ndarray, " unit"]:
    """A mask of the gold units, checked.

    >>> as_gold([0, 1, 0], 3).tolist()
    [False, True, False]
    """
    mask = np.asarray(given)
    if mask.shape != (units,) or not np.isin(mask, (0, 1)).all():
        raise InputError(
            f"gold marks each of the {units} units by True or False, and this is {given!r:.60}."
        )
    return mask.astype(bool)


def values_on(
    metric: Metric, name: str, subject: Subject, rows: np.ndarray
) -> Float[np.ndarray, " row"]:
    """The metric of each row of rankings or scores, given what it needs beside them."""
    needs = metric.needs
    if needs & Needs.AGAIN:
        raise Unsupported(
            f"{name} compares an explanation with others of its kind, made again; "
            "whence.evaluate does that."
        )
    if needs & Needs.GAME:
        values = metric(subject.game, rows)
    elif needs & Needs.GOLD:
        if subject.gold is None:
            raise InputError(
                f"{name} needs to know which units are the right ones: give gold=, True for each "
                "unit that is known to matter."
            )
        values = metric(subject.gold, rows)
    else:
        values = metric(rows)
    return as_values(values, name, len(rows))


def beside_control(
    metric: Metric,
    name: str,
    subject: Subject,
    scores: Float[np.ndarray, " unit"],
    signed: bool,
    rankings: int = RANKINGS,
) -> tuple[float, Float[np.ndarray, " ranking"], bool]:
    """The metric of the scores, that of their copies, and whether these are all that there are."""
    game, seed = subject.game, subject.seed
    random = random_rankings(game, rankings, seed)
    if metric.needs & Needs.SCORES:
        looks_at_form_alone = metric.needs == Needs.SCORES
        if looks_at_form_alone:
            others = drawn_scores(game, rankings, signed, seed)
        else:
            others = laid_out(scores, random.orders)
        own = values_on(metric, name, subject, scores[None])
        is_complete = random.is_complete and not looks_at_form_alone
        return float(own[0]), values_on(metric, name, subject, others), is_complete

    own_ranking = rankings_of(scores, game, seed)
    if not are_tied(scores):
        own = values_on(metric, name, subject, own_ranking)
        of_random = values_on(metric, name, subject, random.orders)
        return float(own[0]), of_random, random.is_complete

    rows = random.orders
    if not random.is_complete:
        rows = np.concatenate([rows, own_ranking])
    sizes = sizes_of(scores)
    both = np.concatenate([rows, mirrored(rows, sizes)])
    values = values_on(metric, name, subject, both)
    copies = copies_of(tiers_in(both, sizes), tiers_of(scores), number_of_copies(sizes))
    own, of_random = copies.apart(values)
    return float(own.mean()), of_random, copies.is_complete


def laid_out(
    scores: Float[np.ndarray, " unit"], orders: Int[np.ndarray, "ranking unit"]
) -> Float[np.ndarray, "ranking unit"]:
    """The sorted scores, given to the units in each order.

    >>> laid_out(np.array([0.1, 0.7, 0.2]), np.array([[2, 0, 1]])).tolist()
    [[0.2, 0.1, 0.7]]
    """
    highest_first = np.sort(scores)[::-1]
    rows = np.empty(orders.shape)
    np.put_along_axis(rows, orders, np.tile(highest_first, (len(orders), 1)), axis=1)
    return rows


def drawn_scores(
    game: AnyGame, count: int, signed: bool, seed: int = 0
) -> Float[np.ndarray, "row unit"]:
    """Scores that mean nothing; without a sign where the method gives none."""
    rng = np.random.default_rng([seed, DRAWN_STREAM, *game.digest])
    drawn = rng.standard_normal((count, game.size))
    return drawn if signed else np.abs(drawn)
