"""One metric on one attribution, beside the same metric on random rankings."""

from __future__ import annotations

from typing import Any

import numpy as np

from whence.core.attribution import Attribution
from whence.core.errors import InputError
from whence.core.measurement import Measurement
from whence.core.registry import Needs, find_metric, settings_dict, settings_of
from whence.games.protocol import AnyGame
from whence.metrics.control import Subject, as_gold, beside_control
from whence.metrics.protocol import Metric
from whence.metrics.rankings import RANKINGS
from whence.metrics.standing import standing


def measure(
    game: AnyGame,
    attribution: Attribution,
    metric: str,
    *,
    gold: Any = None,
    rankings: int = RANKINGS,
    seed: int = 0,
    **settings: Any,
) -> Measurement:
    """A metric of an attribution, beside what random rankings of the same game get by it.

    The game says what is measured: its target, how that is read, and its removal. ``gold`` marks
    the units that are known to matter, or that people marked, for a metric that needs it. Keywords
    beyond these are the metric's settings. Where scores are equal, their order is drawn by lot, and
    the metric is the mean over that order and the one with equal scores the other way round; the
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
    subject = Subject(game, None if gold is None else as_gold(gold, game.size), seed)
    paid_before = game.cost.forwards
    value, of_random, is_complete = beside_control(
        instance, info.name, subject, attribution.scores, attribution.signed, rankings
    )
    beside = standing(
        value,
        of_random,
        better=instance.better,
        is_complete=is_complete,
        scale=max(abs(value), float(np.abs(of_random).max()), _scale_of(instance, game)),
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


def _scale_of(metric: Metric, game: AnyGame) -> float:
    """The size of the numbers that the metric reckons with, where they are the game's."""
    if not metric.needs & Needs.GAME:
        return 0.0
    return max(abs(game.full), abs(game.empty))


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
