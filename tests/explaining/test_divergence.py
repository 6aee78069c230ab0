"""The reading ``kl``: how far what could stand at a place diverges, beside its slow definition.

The slow one is run by transformers alone, one prefix at a time.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from scipy.special import rel_entr

import whence
from tests.explaining.test_outputs import (
    CONTINUATION,
    PROMPT,
    TINY,
    double,
    prefix_logits,
    sides,
    written,
)
from tests.families import build
from whence.core.errors import TargetError, Unsupported
from whence.core.target import Reference, Target
from whence.games.game import game_of
from whence.models.model import Model

FLOAT32 = 1e-5


def chances(model: Model, source: list[int], prefix: list[int]) -> np.ndarray:
    with torch.no_grad():
        return prefix_logits(model, source, prefix).softmax(-1).numpy()


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_a_game_of_divergences_is_that_of_each_prefix_alone(family: str) -> None:
    # would catch: the other direction, a sum over one token, and another output's reference
    model = double(family)
    passage = written(model, "word")
    rng = np.random.default_rng(0)
    masks = rng.random((4, len(passage.unit_spans))) < 0.6
    masks[0] = True
    game = game_of(model, passage, Target(at=passage.outputs - 1, read="kl"), "delete")
    for output in range(passage.outputs):
        about = game.about(Target(at=output, read="kl"))
        whole = chances(model, *sides(model, passage, output))
        border = passage.output_place(0) - 1 if model.is_encoder_decoder else 0
        end = passage.output_place(output)
        for mask, value in zip(masks, about(masks[:, : about.size]), strict=True):
            kept = np.concatenate([mask, [True]])[passage.before(output).unit_of][:end]
            source = passage.ids[:border][kept[:border]].tolist()
            prefix = passage.ids[border:end][kept[border:]].tolist()
            now = chances(model, source, prefix)
            assert value == pytest.approx(rel_entr(whole, now).sum(), abs=TINY), output


def test_nothing_diverges_where_nothing_is_removed() -> None:
    model = build("gpt2")
    g = whence.generate(
        model, PROMPT, "occlusion", continuation=CONTINUATION, read="kl", evidence=False
    )
    for output in g.explained:
        assert g.of(output).value == pytest.approx(0.0, abs=FLOAT32)
        # a divergence is never below zero, so no unit can have brought it down by being there
        assert g.of(output).scores.max() <= FLOAT32
        assert g.of(output).scores.min() < -1e-3


def test_several_outputs_diverge_by_the_sum() -> None:
    model = double("gpt2")
    passage = written(model, "word")
    game = game_of(model, passage, Target(at=0, until=3, read="kl"), "delete")
    mask = np.zeros((1, game.size), dtype=bool)
    mask[0, 0] = True
    each = [game.about(Target(at=k, read="kl")) for k in range(3)]
    # the same text without the same words: what was written between them stays
    kept = [np.concatenate([mask[0], np.ones(one.size - game.size, bool)])[None] for one in each]
    apart = [one(own)[0] for one, own in zip(each, kept, strict=True)]
    assert game(mask)[0] == pytest.approx(sum(apart), abs=TINY)
    assert min(apart) > 1e-3


@pytest.mark.parametrize("method", ["gradient-x-input", "gradient-l2", "generic-attention"])
def test_slopes_are_refused_where_the_divergence_is_flat(method: str) -> None:
    # would catch: rounding errors that are ranked as if they were scores
    with pytest.raises(Unsupported, match="every slope is zero"):
        whence.generate(
            build("gpt2"), PROMPT, method, continuation=CONTINUATION, read="kl", evidence=False
        )


def test_integrated_gradients_sum_to_what_has_diverged_at_the_baseline() -> None:
    model = double("gpt2")
    g = whence.generate(
        model,
        model.encode(PROMPT, units="token"),
        {"integrated-gradients": {"baseline": "mean", "tolerance": 1e-6}},
        continuation=CONTINUATION,
        outputs=[2],
        read="kl",
        evidence=False,
    )
    passage = g.passage
    game = game_of(model, passage, Target(at=2, read="kl"), "mean")
    masks = np.zeros((2, game.size), dtype=bool)
    masks[1, 0] = True
    nothing = game(masks)[0]
    assert nothing > 1e-3
    assert g.of(2).scores.sum() == pytest.approx(-nothing, rel=1e-4)


def test_of_a_context_the_divergence_is_the_measure_of_the_first_step() -> None:
    # would catch: a divergence from the whole input, which is zero; and the other direction
    model = whence.load("translator")
    use = whence.context(
        model,
        "they push the cow .",
        "the lamps stay under the teacher .",
        ["occlusion", "gradient-x-input"],
        separator=" | ",
        read="kl",
        evidence=False,
    )
    (output,) = use.selected
    assert use.of(output).value == pytest.approx(use.outputs[output].score, abs=FLOAT32)
    assert [use.units.names[unit] for unit in use.sources(output)] == ["lamps"]
    assert use.methods == ("occlusion", "gradient-x-input")  # here there is a slope
    other = whence.context(
        model,
        "they push the cow .",
        "the lamps stay under the teacher .",
        separator=" | ",
        other_context="the lamps stay under the teacher .",
        read="kl",
    )
    assert not other.selected


def test_a_result_keeps_the_name_of_what_it_diverges_from_and_no_vocabulary() -> None:
    model = whence.load("translator")
    use = whence.context(
        model,
        "they push the cow .",
        "the lamps stay under the teacher .",
        separator=" | ",
        read="kl",
        evidence=False,
    )
    stored = json.dumps(use.to_dict())
    assert len(stored) < 20_000
    target = whence.ContextUse.from_dict(json.loads(stored)).of(0).target
    assert "without context" in target.describe()
    with pytest.raises(TargetError, match="make the explanation anew"):
        model.resolve(target, model.output_logits(use.passage), use.passage)


def test_a_classifier_diverges_too() -> None:
    model = whence.load("sentiment")
    text = "not bad at all"
    game = whence.game(model, text, read="kl", removal="delete")
    assert game.full == pytest.approx(0.0, abs=FLOAT32)
    without = np.ones((1, game.size), dtype=bool)
    without[0, 0] = False
    p = model.predict([text])[0].probabilities
    q = model.predict(["bad at all"])[0].probabilities
    expected = sum(p[name] * np.log(p[name] / q[name]) for name in p)
    assert game(without)[0] == pytest.approx(expected, abs=FLOAT32)


def test_a_reference_belongs_to_a_divergence() -> None:
    with pytest.raises(TargetError, match="only the reading 'kl'"):
        Target(reference=Reference("another text"))
    with pytest.raises(TargetError, match="a contrast"):
        Target(1, against=0, read="kl")
    assert Reference.of("a", np.zeros((1, 2))) != Reference.of("a", np.array([[0.0, 1.0]]))
    assert Reference.of("a", np.zeros((1, 2))) == Reference.of("a", np.ones((1, 2)))
