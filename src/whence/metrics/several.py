"""One metric on the scores of several methods at once, each beside its own control.

All rows go to the metric in one call, so that the game is asked for all masks together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
from jaxtyping import Float

from whence.core.registry import Better, Needs
from whence.metrics.control import Subject, drawn_scores, laid_out, values_on
from whence.metrics.protocol import Metric
from whence.metrics.rankings import random_rankings, rankings_of
from whence.metrics.standing import ROUNDING
from whence.metrics.ties import are_tied, mirrored, sizes_of


@dataclass(frozen=True, eq=False)
class Candidate:
    """The scores of one method on a text."""

    scores: Float[np.ndarray, " unit"]
    signed: bool


@dataclass(frozen=True, eq=False)
class Values:
    """What a metric gives several methods on one text.

    ``control`` is the mean over permuted copies of each method's own scores, and ``beaten`` the
    share of these that it does better than (a half is chance). ``spread`` is the standard
    deviation of own - control for one more such copy. ``random`` is the mean over rankings, or
    scores, that mean nothing.
    """

    own: Float[np.ndarray, " method"]
    control: Float[np.ndarray, " method"]
    beaten: Float[np.ndarray, " method"]
    spread: Float[np.ndarray, " method"]
    random: float


def values_of_several(
    metric: Metric,
    name: str,
    subject: Subject,
    candidates: Sequence[Candidate],
    rankings: int,
) -> Values:
    """The metric of each candidate, and of what it is held against.

    >>> import whence
    >>> from whence.core.registry import find_metric
    >>> v = whence.game(whence.load("sentiment"), "not bad at all", target="positive")
    >>> mine = [Candidate(np.array([0.1, 0.9, 0.2, 0.0]), signed=True)]
    >>> deletion = find_metric("deletion").settings()
    >>> values = values_of_several(deletion, "deletion", Subject(v), mine, rankings=24)
    >>> values.own.shape, bool(values.control[0] == values.random)
    ((1,), True)
    """
    if metric.needs & Needs.RANKINGS:
        return _of_rankings(metric, name, subject, candidates, rankings)
    return _of_scores(metric, name, subject, candidates, rankings)


def _of_rankings(
    metric: Metric, name: str, subject: Subject, candidates: Sequence[Candidate], rankings: int
) -> Values:
    """Ties are broken by lot, and the other way round: the mean of both.

    Turned round, a random order is as random as before. So the mean over random rankings with the
    same ties is that over any random rankings, and all methods share it.
    """
    rows, owners = [], []
    for number, candidate in enumerate(candidates):
        ranking = rankings_of(candidate.scores, subject.game, subject.seed)
        rows.append(ranking)
        owners.append(number)
        if are_tied(candidate.scores):
            rows.append(mirrored(ranking, sizes_of(candidate.scores)))
            owners.append(number)
    of_random = random_rankings(subject.game, rankings, subject.seed).orders
    values = values_on(metric, name, subject, np.concatenate([*rows, of_random]))
    own = _means_by_owner(values[: len(owners)], owners, len(candidates))
    random = values[len(owners) :]
    mean = float(random.mean())
    beaten = np.array([_beaten(value, random, metric.better) for value in own])
    # ties are broken twice, and the mean of both varies no more than one of them
    every = np.ones(len(candidates))
    return Values(own, mean * every, beaten, spread_by_chance(random) * every, mean)


def _of_scores(
    metric: Metric, name: str, subject: Subject, candidates: Sequence[Candidate], rankings: int
) -> Values:
    """The copies of scores are the same numbers on other units; of form alone, drawn numbers."""
    game, seed = subject.game, subject.seed
    orders = random_rankings(game, rankings, seed).orders
    looks_at_form_alone = metric.needs == Needs.SCORES
    rows = []
    for candidate in candidates:
        if looks_at_form_alone:
            copies = drawn_scores(game, len(orders), candidate.signed, seed)
        else:
            copies = laid_out(candidate.scores, orders)
        rows += [candidate.scores[None], copies]
    rows.append(drawn_scores(game, rankings, signed=True, seed=seed))
    values = values_on(metric, name, subject, np.concatenate(rows))

    # each candidate before its copies, and the drawn ones last
    blocks = values[: -len(rows[-1])].reshape(len(candidates), 1 + len(orders))
    own, copied = blocks[:, 0], blocks[:, 1:]
    pairs = zip(own, copied, strict=True)
    beaten = np.array([_beaten(value, others, metric.better) for value, others in pairs])
    spread = np.array([spread_by_chance(others) for others in copied])
    return Values(own, copied.mean(1), beaten, spread, float(values[-len(rows[-1]) :].mean()))


def spread_by_chance(copies: Float[np.ndarray, " copy"]) -> float:
    """The standard deviation of one more copy less the mean of these; NaN if there is only one.

    >>> round(spread_by_chance(np.array([0.0, 0.0, 0.0, 1.0])), 3)
    0.559
    """
    if len(copies) < 2:
        return nan
    return float(copies.std(ddof=1)) * sqrt(1 + 1 / len(copies))


def _beaten(value: float, others: Float[np.ndarray, " row"], better: Better) -> float:
    """The share of the others that the value is better than; an equal one counts a half."""
    near = ROUNDING * max(abs(value), float(np.abs(others).max()))
    ahead = value - others if better == "higher" else others - value
    wins, ties = ahead > near, np.abs(ahead) <= near
    return float((wins + ties / 2).mean())


def _means_by_owner(
    values: Float[np.ndarray, " row"], owners: Sequence[int] | np.ndarray, count: int
) -> Float[np.ndarray, " owner"]:
    sums = np.bincount(owners, weights=values, minlength=count)
    return sums / np.bincount(owners, minlength=count)
