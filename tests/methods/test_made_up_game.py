"""Every black-box method, and the evidence, on a game of features that has no text and no model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.games.made_up import FeatureGame, additive
from whence.core.errors import Unsupported
from whence.core.evidence import Verdict
from whence.core.registry import Needs, as_unit_scores, methods, settings_of
from whence.games.protocol import AnyGame
from whence.metrics.evidence import control, evidence

WEIGHTS = np.array([3.0, -0.5, 0.1, 0.7, -0.2, 0.3, 0.05, 0.4])
BLACK_BOX = [name for name, info in methods().items() if info.needs & Needs.GAME]
OF_A_MODEL = [name for name in BLACK_BOX if "single-layer" in methods()[name].only_for]
OF_ANY_GAME = [name for name in BLACK_BOX if name not in OF_A_MODEL]


def defaults(name: str) -> Any:
    return settings_of(methods()[name], {})


def test_it_is_a_game() -> None:
    assert isinstance(additive(WEIGHTS), AnyGame)


@pytest.mark.parametrize("name", OF_ANY_GAME)
def test_methods_and_evidence_run_on_features(name: str) -> None:
    game = additive(WEIGHTS, start=-1.0)
    method = defaults(name)
    scores = as_unit_scores(method(game), name, game.units.names)
    assert scores.units is not None
    assert scores.units.argmax() == 0
    if method.signed:  # the values of an additive game are its weights, for all of them
        np.testing.assert_allclose(scores.units, WEIGHTS, atol=1e-9)
    verdict = evidence(scores.units, method.signed, [control(game)])
    (trial,) = verdict.trials
    assert trial.removal == "switch-off"
    if method.signed:
        assert verdict.verdict == Verdict.BETTER


@pytest.mark.parametrize("name", OF_ANY_GAME)
def test_the_same_on_more_features_than_can_be_enumerated(name: str) -> None:
    weights = np.random.default_rng(0).normal(size=20)
    weights[7] = 12.0
    game = additive(weights)
    scores = as_unit_scores(defaults(name)(game), name, game.units.names)
    assert scores.units is not None
    assert scores.units.argmax() == 7


@pytest.mark.parametrize("name", OF_A_MODEL)
def test_a_formula_of_one_model_refuses_by_name(name: str) -> None:
    with pytest.raises(Unsupported, match=f"{name} is a formula of .*FeatureGame is a game of"):
        defaults(name)(additive(WEIGHTS))


def test_anchors_name_features_and_refuse_a_game_without_labels() -> None:
    game = additive(WEIGHTS, start=-1.0)
    assert 'IF "feature 0" is kept, the label stays yes' in defaults("anchors")(game).note

    class Unlabelled(FeatureGame):
        label = None

    with pytest.raises(Unsupported, match="one output and no labels"):
        defaults("anchors")(Unlabelled(8, lambda z: z @ WEIGHTS))
