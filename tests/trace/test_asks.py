"""A trace of asks: equal passages run once, and are differentiated once for each target."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import whence
from tests import families
from whence.core.registry import Needs
from whence.core.request import Ask
from whence.core.target import Target
from whence.models.model import Model
from whence.trace.reducers import HeadMean
from whence.trace.trace import Trace, trace

NEEDS = Needs.ATTENTION | Needs.ATTENTION_GRADIENTS | Needs.EMBEDDING_GRADIENTS
CLOSE = 2e-5  # of the largest entry: one batch of several rows rounds otherwise than one row


def close(ours: torch.Tensor, alone: torch.Tensor) -> bool:
    return bool((ours - alone).abs().max() <= CLOSE * max(1.0, float(alone.abs().max())))


def check_row(several: Trace, row: int, alone: Trace) -> None:
    length = len(alone.passages[0])
    assert several.targets[row] == alone.targets[0]
    assert close(several.values[row], alone.values[0])
    assert close(several.embeddings[row, :length], alone.embeddings[0])
    assert close(several.embedding_gradients[row, :length], alone.embedding_gradients[0])
    for kind, maps in alone.attentions.items():
        for layer, weights in enumerate(maps):
            queries, keys = weights.shape[-2:]
            shown = several.attentions[kind][layer][row, :, :queries, :keys]
            slope = several.attention_gradients[kind][layer][row, :, :queries, :keys]
            assert close(shown, weights[0])
            assert close(slope, alone.attention_gradients[kind][layer][0])


def count_runs(model: Model, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows in each run of the model."""
    rows: list[int] = []
    forward = model.hf.forward

    def counted(*arguments: object, **inputs: torch.Tensor) -> object:
        rows.append(len(inputs["input_ids"]))
        return forward(*arguments, **inputs)

    monkeypatch.setattr(model.hf, "forward", counted)
    return rows


@pytest.mark.parametrize("name", ["bert", "gpt2", "bart", "t5"])
def test_each_ask_gets_what_it_would_get_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = families.build(name)
    first, second = families.inputs(model, 2)
    asks = [
        Ask(first, Target(1)),
        Ask(second, Target(0)),
        Ask(first, Target(0)),
        # another reading, and a contrast, beside plain logits
        Ask(first, Target(1, against=0, read="log-probability")),
    ]
    model.batch([first])  # what is tried once of a head comes before
    rows = count_runs(model, monkeypatch)
    several = trace(model, asks, needs=NEEDS)
    assert rows == [2]  # the enemy runs the first passage three times
    assert several.passes.forwards == [1, 1, 0, 0]
    assert several.passes.backwards == [1, 1, 1, 1]
    for row, ask in enumerate(asks):
        check_row(several, row, trace(model, [ask], needs=NEEDS))


def test_one_passage_with_many_targets_holds_its_maps_once() -> None:
    model = families.build("bert")
    (passage,) = families.inputs(model, 1)
    several = trace(model, [Ask(passage, Target(0)), Ask(passage, Target(1))], needs=NEEDS)
    weights = several.attentions["encoder"][0]
    assert len(weights) == 2
    assert weights.stride(0) == 0  # a view: the enemy copies every map for every target


def test_reduced_maps_have_a_row_for_each_ask_too() -> None:
    model = families.build("bert")
    first, second = families.inputs(model, 2)
    asks = [Ask(first, Target(0)), Ask(second, Target(0)), Ask(first, Target(1))]
    shown = trace(model, asks, reducer=HeadMean(), needs=Needs.HIDDEN_STATES)
    means = shown.attentions["encoder"][0]
    assert torch.equal(means[0], means[2])
    assert not torch.equal(means[0], means[1])
    assert len(shown.hidden_states[0]) == 3


def test_six_next_tokens_cost_one_forward_and_six_backwards() -> None:
    """What the issue's prototype showed: equal to six single explanations, for one forward."""
    model = whence.load("writer")
    text = "The old man looked at the"
    words = [" sea", " water", " man", " world", " house", " fire"]
    several = whence.explain(model, text, "gradient-x-input", target=words, evidence=False)
    assert (several.cost.forwards, several.cost.backwards) == (1, 6)
    for word, attribution in zip(words, several.values(), strict=True):
        alone = whence.explain(model, text, "gradient-x-input", target=word, evidence=False)
        np.testing.assert_allclose(attribution.scores, alone.scores, atol=1e-5)
        assert alone.cost.forwards == 1
        assert attribution.cost.shared is (word != words[0])
