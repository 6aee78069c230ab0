"""One metric on one attribution: the value, the random control, and what does not fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

import whence
from whence.core.errors import AuthorError, InputError, SettingsError, UnknownName
from whence.core.evidence import Verdict
from whence.core.registry import METRICS, Needs, metric, metrics
from whence.metrics.deletion import Deletion
from whence.metrics.rankings import random_rankings, rankings_of
from whence.metrics.standing import standing, wilson
from whence.models.model import Model

TEXT = "a truly wonderful and moving little film"
RANKED = Needs.GAME | Needs.RANKINGS


@pytest.fixture(scope="module")
def model() -> Model:
    return whence.load("sentiment")


@pytest.fixture(scope="module")
def occlusion(model: Model) -> whence.Attribution:
    return whence.explain(model, TEXT, "occlusion", target="positive", evidence=False)


def test_value_control_and_interval(model: Model, occlusion: whence.Attribution) -> None:
    v = whence.game(model, TEXT, target="positive")
    measured = whence.measure(v, occlusion, "deletion", rankings=150, seed=4, steps=5)
    random = Deletion(5)(v, random_rankings(v, 150, seed=4).orders)
    assert measured.value == Deletion(5)(v, rankings_of(occlusion.scores, v, 4)).mean()
    assert measured.random_mean == random.mean()
    assert measured.beaten == (measured.value < random).mean()  # lower is better
    assert measured.interval == wilson(measured.beaten, 150)
    assert measured.p == ((random <= measured.value).sum() + 1) / 151
    assert measured.verdict == Verdict.BETTER
    assert measured.settings == {"steps": 5}
    assert (measured.method, measured.removal, measured.rankings) == ("occlusion", "mask", 150)
    assert 0 < measured.forwards <= 150 * Deletion(5).passes(v.size) + Deletion(5).passes(v.size)
    assert "lower is better" in str(measured)
    assert "better than random." in str(measured)


def test_tied_scores_are_averaged_as_their_control_is(
    model: Model, occlusion: whence.Attribution
) -> None:
    """An order by lot and its mirror, for the scores and for every copy of them, by hand.

    The enemies: single orders as the control; copies counted as often as they were drawn.
    """
    v = whence.game(model, TEXT, target="positive")
    scores = np.zeros(7)
    scores[[2, 4]] = 1.0
    measured = whence.measure(v, replace(occlusion, scores=scores), "deletion", rankings=60)
    rows = np.concatenate([random_rankings(v, 60).orders, rankings_of(scores, v)])
    by_copy: dict[frozenset[int], list[float]] = {}
    for order in rows.tolist():
        mirror = order[:2][::-1] + order[2:][::-1]
        values = Deletion()(v, np.array([order, mirror]))
        by_copy.setdefault(frozenset(order[:2]), []).append(float(values.mean()))
    means = {copy: np.mean(values) for copy, values in by_copy.items()}
    own = means[frozenset((2, 4))]
    assert measured.value == pytest.approx(own, abs=1e-9)
    as_good = sum(mean <= own + 1e-9 for mean in means.values())
    assert measured.p == pytest.approx(as_good / len(means))
    assert len(means) <= 21
    assert measured.rankings == len(means) - (len(means) < 21)


def test_the_reverse_is_worse(model: Model, occlusion: whence.Attribution) -> None:
    v = whence.game(model, TEXT, target="positive")
    reverse = replace(occlusion, scores=-occlusion.scores)
    # of rankings: a metric that takes scores by their size, or the best scale, sees no sign
    for name in (name for name, info in metrics().items() if info.needs == RANKED):
        ours = whence.measure(v, occlusion, name)
        theirs = whence.measure(v, reverse, name)
        assert ours.beaten > 0.5 > theirs.beaten, name


def test_another_reading_is_another_unit(model: Model, occlusion: whence.Attribution) -> None:
    v = whence.game(model, TEXT, target="positive", read="probability")
    assert -1 <= whence.measure(v, occlusion, "comprehensiveness").value <= 1


def test_what_does_not_fit(model: Model, occlusion: whence.Attribution) -> None:
    shorter = whence.game(model, "a moving film", target="positive")
    with pytest.raises(InputError, match="scores 7 units, and the game has 3"):
        whence.measure(shorter, occlusion, "deletion")
    other = whence.game(model, TEXT, target="negative")
    with pytest.raises(InputError, match="explains the logit of positive, and the game gives"):
        whence.measure(other, occlusion, "deletion")
    v = whence.game(model, TEXT, target="positive")
    with pytest.raises(UnknownName, match="Did you mean 'comprehensiveness'"):
        whence.measure(v, occlusion, "comprehensivness")
    with pytest.raises(SettingsError, match="metric 'deletion', setting 'steps'"):
        whence.measure(v, occlusion, "deletion", steps="many")


def test_a_metric_of_scores_gets_scores(
    model: Model, occlusion: whence.Attribution, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its control is the same numbers, given to other units."""
    monkeypatch.setattr(METRICS, "entries", dict(metrics()))
    given: list[np.ndarray] = []

    @metric("share-of-the-first", version=1, cites="")
    @dataclass(frozen=True)
    class ShareOfTheFirst:
        """The first unit's part of all scores."""

        needs: ClassVar[Needs] = Needs.GAME | Needs.SCORES
        better: ClassVar[str] = "higher"
        range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
        chance: ClassVar[float] = 0.01

        def passes(self, units: int) -> int:
            return 0

        def __call__(self, game: Any, scores: np.ndarray) -> np.ndarray:
            given.append(scores)
            return scores[:, 0] / np.abs(scores).sum(1)

    v = whence.game(model, TEXT, target="positive")
    whence.measure(v, occlusion, "share-of-the-first")
    ours, random = given
    np.testing.assert_array_equal(ours, occlusion.scores[None])
    assert random.shape == (100, 7)
    np.testing.assert_array_equal(
        np.sort(random, axis=1), np.tile(np.sort(occlusion.scores), (100, 1))
    )


def test_a_metric_that_returns_nonsense_is_told(
    model: Model, occlusion: whence.Attribution, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Deletion, "__call__", lambda self, game, rankings: None)
    v = whence.game(model, TEXT, target="positive")
    with pytest.raises(AuthorError, match="metric 'deletion' returned None"):
        whence.measure(v, occlusion, "deletion")


def test_lower_is_better_is_the_mirror_of_higher() -> None:
    random = np.random.default_rng(0).normal(size=100)
    high = standing(1.5, random, better="higher", is_complete=False, scale=1.0)
    low = standing(-1.5, -random, better="lower", is_complete=False, scale=1.0)
    assert (high.beaten, high.p, high.verdict) == (low.beaten, low.p, low.verdict)
    assert high.beaten > 0.9
