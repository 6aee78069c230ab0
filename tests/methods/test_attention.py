"""Raw attention: the row that speaks for the output."""

from __future__ import annotations

import numpy as np
import pytest

import whence
from tests.families import build
from whence.core.errors import SettingsError
from whence.core.registry import Needs
from whence.trace.trace import trace

TEXT = "the food is great"


@pytest.mark.parametrize(
    ("family", "kind", "row"),
    [
        ("bert", "encoder", 0),
        ("gpt2", "decoder", -1),
        ("llama-classifier", "decoder", -1),
        ("t5", "cross", 0),
    ],
)
def test_mean_and_max_are_those_of_the_readout_row(family: str, kind: str, row: int) -> None:
    # would catch: the column instead of the row, the first layer instead of the last, a mean over
    # layers and heads mixed up
    model = build(family)
    passage = model.encode(TEXT)
    maps = trace(model, [passage], needs=Needs.ATTENTION).attentions[kind]
    last = maps[-1][0, :, row].double().numpy()
    np.testing.assert_allclose(
        whence.explain(model, TEXT, "attention-mean", evidence=False).scores,
        passage.merge(last.mean(0)),
        atol=1e-6,
    )
    # the pieces of a word are summed in each head before the largest head is taken; the other order
    # gives more than one head gives
    words = np.stack([passage.merge(head) for head in last])
    np.testing.assert_allclose(
        whence.explain(model, TEXT, "attention-max", evidence=False).scores, words.max(0), atol=1e-6
    )
    every = np.stack([m[0, :, row].double().numpy() for m in maps])
    np.testing.assert_allclose(
        whence.explain(model, TEXT, "attention-mean", layer="all", evidence=False).scores,
        passage.merge(every.mean((0, 1))),
        atol=1e-6,
    )
    first = np.stack([passage.merge(head) for head in every[0]])
    np.testing.assert_allclose(
        whence.explain(model, TEXT, "attention-max", layer=0, evidence=False).scores,
        first.max(0),
        atol=1e-6,
    )


def test_a_model_that_pools_by_the_mean_is_read_by_the_mean_of_rows() -> None:
    model = build("modernbert-mean")
    passage = model.encode(TEXT)
    last = (
        trace(model, [passage], needs=Needs.ATTENTION).attentions["encoder"][-1][0].double().numpy()
    )
    expected = passage.merge(last.mean((0, 1)))
    np.testing.assert_allclose(
        whence.explain(model, TEXT, "attention-mean", evidence=False).scores, expected, atol=1e-6
    )
    bert = build("bert")
    by_row, by_mean = (
        whence.explain(bert, TEXT, "attention-mean", row=r, evidence=False).scores
        for r in ("readout", "mean")
    )
    assert not np.allclose(by_row, by_mean)


def test_attention_is_a_share_and_max_is_at_least_mean() -> None:
    model = build("bert")
    mean, peak = (
        whence.explain(model, TEXT, f"attention-{how}", evidence=False).scores
        for how in ("mean", "max")
    )
    assert 0 < mean.sum() <= 1  # what is missing to 1 goes to special tokens
    assert (peak >= mean - 1e-9).all()


def test_attention_does_not_know_the_target() -> None:
    model = build("bert")
    good, bad = (
        whence.explain(model, TEXT, "attention-mean", target=t, evidence=False).scores
        for t in ("good", "bad")
    )
    assert np.array_equal(good, bad)


def test_a_layer_that_does_not_exist_is_named() -> None:
    with pytest.raises(SettingsError, match=r"layer 7 is outside the 2 layers"):
        whence.explain(build("bert"), TEXT, "attention-mean", layer=7)
