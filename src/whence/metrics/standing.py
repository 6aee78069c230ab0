"""Standing: where a ranking's value lies among the values of random rankings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from whence.core.bootstrap import wilson
from whence.core.evidence import Verdict, is_within
from whence.core.registry import Better

ROUNDING = 1e-9  # of the largest value: closer than that, two values are equal
BAND = (0.025, 0.975)  # the quantiles that 95 % lie between


@dataclass(frozen=True)
class Standing:
    """A ranking's value beside those of random rankings of the same units.

    ``low`` to ``high`` hold 95 % of the random ones. ``beaten`` is the share of them that the
    ranking beats (a half is chance), with a 95 % ``interval`` (Wilson's). ``p`` is the chance that
    a random ranking does as well, and ``p_worse`` that one does no better.
    """

    value: float
    mean: float
    low: float
    high: float
    beaten: float
    interval: tuple[float, float]
    p: float
    p_worse: float
    verdict: Verdict


def standing(
    value: float,
    random: Float[np.ndarray, " ranking"],
    *,
    better: Better,
    is_complete: bool,
    scale: float,
) -> Standing:
    """The value of a ranking beside the ``random`` ones, by the same metric.

    ``is_complete`` says that the random rankings are all that there are. ``scale`` is the size of
    the numbers that the values were computed from, which rounding errors are in proportion to.

    >>> every_order = np.arange(24.0)
    >>> standing(23.0, every_order, better="higher", is_complete=True, scale=23.0).p
    0.041666666666666664
    """
    sign = 1.0 if better == "higher" else -1.0
    near = ROUNDING * scale
    count = len(random)
    wins = int((sign * value > sign * random + near).sum())
    ties = int((np.abs(value - random) <= near).sum())
    beaten = (wins + ties / 2) / count
    p_better = _rank_p(count - wins, count, is_complete)
    p_worse = _rank_p(wins + ties, count, is_complete)
    low, high = np.quantile(random, BAND)
    return Standing(
        value=value,
        mean=float(random.mean()),
        low=float(low),
        high=float(high),
        beaten=beaten,
        interval=wilson(beaten, count),
        p=p_better,
        p_worse=p_worse,
        verdict=_verdict(p_better, p_worse),
    )


def _verdict(p_better: float, p_worse: float) -> Verdict:
    if is_within(p_better):
        return Verdict.BETTER
    if is_within(p_worse):
        return Verdict.WORSE
    return Verdict.SAME


def _rank_p(as_good: int, count: int, is_complete: bool) -> float:
    """The share of rankings that are as good as this one.

    One more is counted where the ranking itself is not among them, as it would be by chance.
    """
    if is_complete:
        return as_good / count
    return (as_good + 1) / (count + 1)
