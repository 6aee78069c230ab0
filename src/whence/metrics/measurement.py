"""One metric on one attribution, beside the same metric on random rankings."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from whence.core.attribution import Attribution
from whence.core.errors import InputError
from whence.core.measurement import Measurement
from whence.core.registry import Needs, as_values, find_metric, settings_dict, settings_of
from whence.games.protocol import AnyGame
from whence.metrics.protocol import Metric
from whence.metrics.rankings import RANKINGS, random_rankings, rankings_of
from whence.metrics.standing import standing
from whence.metrics.ties import (
    are_tied,
    copies_of,
    mirrored,
    number_of_copies,
    sizes_of,
    tiers_in,
    tiers_of,
)


def measure(
    game: AnyGame,
    attribution: Attribution,
    metric: str,
    *,
    rankings: int = RANKINGS,
    seed: int = 0,
    **settings: Any,
) -> Measurement:
    """A metric of an attribution, beside what random rankings of the same game get by it.

    The game says what is measured: its target, how that is read, and its removal. Keywords beyond
    these are the metric's settings. Where scores are equal, their order is drawn by lot, and the
    metric is the mean over that order and the one with equal scores the other way round; the
    control is rankings with the same ties, averaged alike.

    >>> import whence
    >>> model, text = whence.load("sentiment"), "a truly wonderful and moving little film"
    >>> a = whence.explain(model, text, "occlusion", target="positive")
    >>> v = whence.game(model, text, target="positive", read="probability")
    >>> m = whence.measure(v, a, "comprehensiveness")
    >>> str(m.verdict), m.value > m.random_mean
    ('better than random', True)
    """
    _check_fits(game, attribution)
    info = find_metric(metric)
    instance: Metric = settings_of(info, settings, seed)
    takes_scores = bool(info.needs & Needs.SCORES)

    paid_before = game.cost.forwards
    random = random_rankings(game, rankings, seed)
    if takes_scores:
        # random scores are the same numbers, given to other units
        ours = attribution.scores[None]
        others = _laid_out(attribution.scores, random.orders)
    else:
        ours = rankings_of(attribution.scores, game, seed)
        others = random.orders
    is_complete = random.is_complete
    if takes_scores or not are_tied(attribution.scores):
        value = float(as_values(instance(game, ours), info.name, len(ours)).mean())
        of_random = as_values(instance(game, others), info.name, len(others))
    else:
        rows = others if is_complete else np.concatenate([others, ours])
        sizes = sizes_of(attribution.scores)
        both = np.concatenate([rows, mirrored(rows, sizes)])
        values = as_values(instance(game, both), info.name, len(both))
        copies = copies_of(
            tiers_in(both, sizes), tiers_of(attribution.scores), number_of_copies(sizes)
        )
        own, of_random = copies.apart(values)
        value, is_complete = float(own.mean()), copies.is_complete
    beside = standing(
        value,
        of_random,
        better=instance.better,
        is_complete=is_complete,
        scale=max(abs(value), float(np.abs(of_random).max()), abs(game.full), abs(game.empty)),
    )
    return Measurement(
        metric=info.name,
        version=info.version,
        settings=settings_dict(instance),
        better=instance.better,
        method=attribution.method,
        target=game.target,
        removal=game.removal,
        value=beside.value,
        random_mean=beside.mean,
        random_low=beside.low,
        random_high=beside.high,
        rankings=len(of_random),
        beaten=beside.beaten,
        interval=beside.interval,
        p=beside.p,
        verdict=beside.verdict,
        seed=seed,
        forwards=game.cost.forwards - paid_before,
    )


def _check_fits(game: AnyGame, attribution: Attribution) -> None:
    units = len(attribution.scores)
    if units != game.size:
        raise InputError(f"the attribution scores {units} units, and the game has {game.size}.")
    theirs = (attribution.target.index, attribution.target.against_index)
    if theirs != (game.target.index, game.target.against_index):
        raise InputError(
            f"the attribution explains the {attribution.target.describe()}, "
            f"and the game gives the {game.target.describe()}."
        )


def _laid_out(
    scores: Float[np.ndarray, " unit"], orders: Int[np.ndarray, "ranking unit"]
) -> Float[np.ndarray, "ranking unit"]:
    """The sorted scores, given to the units in each order."""
    highest_first = np.sort(scores)[::-1]
    laid_out = np.empty(orders.shape)
    np.put_along_axis(laid_out, orders, np.tile(highest_first, (len(orders), 1)), axis=1)
    return laid_out
