"""One metric on several methods at once is the metric on each, beside its own control."""

from __future__ import annotations

import numpy as np
import pytest

from tests.games.made_up import additive
from whence.core.registry import Needs, metrics, settings_of
from whence.metrics.control import Subject, beside_control, values_on
from whence.metrics.rankings import random_rankings, rankings_of
from whence.metrics.several import Candidate, values_of_several
from whence.metrics.ties import are_tied, mirrored, sizes_of

NAMES = [name for name, info in metrics().items() if not info.needs & Needs.AGAIN]
WEIGHTS = np.array([0.4, 0.0, 0.3, 0.0, 0.2, 0.05, 0.05])
CANDIDATES = [
    Candidate(WEIGHTS, signed=True),
    Candidate(np.array([0.1, 0.7, 0.2, 0.3, 0.0, 0.4, 0.5]), signed=False),
    Candidate(np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]), signed=True),  # ties
]


@pytest.mark.parametrize("name", NAMES)
def test_each_gets_what_it_gets_alone(name: str) -> None:
    """The enemy: rows of one method counted for another, or a control of another method's."""
    metric = settings_of(metrics()[name], {})
    subject = Subject(additive(WEIGHTS), WEIGHTS > 0)
    together = values_of_several(metric, name, subject, CANDIDATES, rankings=30)
    for number, candidate in enumerate(CANDIDATES):
        scores = candidate.scores
        if metric.needs & Needs.RANKINGS and are_tied(scores):
            order = rankings_of(scores, subject.game)
            both = [order, mirrored(order, sizes_of(scores))]
            value = np.mean([values_on(metric, name, subject, one) for one in both])
            control = values_on(metric, name, subject, random_rankings(subject.game, 30).orders)
        else:
            value, control, _ = beside_control(
                metric, name, subject, scores, candidate.signed, rankings=30
            )
        assert together.own[number] == pytest.approx(value, abs=1e-9)
        assert together.control[number] == pytest.approx(control.mean(), abs=1e-9)
        # the variance of one more copy, and that of the mean of 30
        spread = control.std(ddof=1) * np.sqrt(1 + 1 / 30)
        assert together.spread[number] == pytest.approx(spread, abs=1e-9)
    assert ((together.beaten >= 0) & (together.beaten <= 1)).all()


def test_the_share_that_is_beaten_counts_ties_as_halves() -> None:
    metric = settings_of(metrics()["deletion"], {})
    idle = Subject(additive(np.zeros(5)))
    values = values_of_several(metric, "it", idle, [Candidate(np.arange(5.0), True)], 20)
    assert values.beaten.tolist() == [0.5]
    truth = Subject(additive(np.array([5.0, 0.1, 0.1, 0.1, 0.1, 0.1])))
    best = Candidate(np.array([5.0, 0.5, 0.4, 0.3, 0.2, 0.1]), signed=True)
    worst = Candidate(-best.scores, signed=True)
    values = values_of_several(metric, "it", truth, [best, worst], 60)
    assert values.beaten[0] > 0.9
    assert values.beaten[1] < 0.1
