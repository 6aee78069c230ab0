"""The gauge: exact on made-up vectors, right about what a head reads, refused where nothing is."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import whence
from tests.families import FAMILIES
from whence.explaining.gauge import FOLDS, gauge_of, masks_for, shrunk_covariance
from whence.models.load import load
from whence.models.model import Model
from whence.models.untouched import untouched
from whence.trace.representation import representations

TEXTS = [f"the {thing} {verb} {how}" for thing in ("film", "food") for verb in ("is", "was")
         for how in ("great", "not bad", "fine", "dull and bad")]  # fmt: skip


def family(name: str) -> Model:
    made = FAMILIES[name]
    assert made.tokenizer is not None
    torch.manual_seed(0)
    return load(made.build().eval(), tokenizer=made.tokenizer())


def test_shrinkage_is_that_of_ledoit_and_wolf() -> None:
    covariance = pytest.importorskip("sklearn.covariance")
    rng = np.random.default_rng(0)
    for rows, width in ((8, 20), (50, 6), (400, 3)):
        x = rng.normal(size=(rows, width)) @ rng.normal(size=(width, width))
        theirs, _ = covariance.ledoit_wolf(x)
        # a covariance by n − 1, or without shrinkage, is off by far more
        np.testing.assert_allclose(shrunk_covariance(x), theirs, rtol=1e-9)


def test_the_gauge_again_by_loops() -> None:
    rng = np.random.default_rng(1)
    whole = rng.normal(size=(23, 4)) * [1.0, 2.0, 0.5, 1.0]
    perturbed = np.stack([whole + np.array([0, 0, step, 0]) for step in (0.0, 0.1, 9.0)])
    gauge = gauge_of(whole, perturbed, removal="mask", shares=(0, 0.5, 1))

    def distance(i: int, row: np.ndarray) -> float:
        others = whole[np.arange(len(whole)) % FOLDS != i % FOLDS]
        centred = row - others.mean(0)
        return float(np.sqrt(centred @ np.linalg.solve(shrunk_covariance(others), centred)))

    of_whole = np.array([distance(i, row) for i, row in enumerate(whole)])
    for at, rows in enumerate(perturbed):
        median = np.median([distance(i, row) for i, row in enumerate(rows)])
        further = np.mean([(d > median) + (abs(d - median) < 1e-12) / 2 for d in of_whole])
        assert gauge.like_data[at] == pytest.approx(further, abs=1e-12)
        assert gauge.distance[at] == pytest.approx(median)
    # exact at both ends: data beside itself, and a step far along the narrow axis
    assert gauge.like_data[0] == 0.5
    assert gauge.like_data[2] == 0.0


def test_points_that_all_become_one_lie_inside() -> None:
    rng = np.random.default_rng(2)
    whole = rng.normal(size=(40, 3))
    gauge = gauge_of(whole, np.zeros((1, 40, 3)), removal="mask", shares=(1,))
    assert gauge.like_data[0] > 0.9


def test_representations_that_never_vary_are_no_distance() -> None:
    with pytest.raises(whence.Unsupported, match="all texts alike"):
        gauge_of(np.ones((20, 3)), np.ones((1, 20, 3)), removal="mask", shares=(0.5,))


@pytest.mark.parametrize(
    "name",
    ["bert", "distilbert", "roberta", "gpt2-classifier", "bart-classifier", "single-layer"],
)
def test_the_head_makes_the_logits_of_what_it_reads(name: str) -> None:
    """One that takes another layer, or another token of a decoder, would give other logits."""
    model = family(name)
    passages = [model.encode(text) for text in ("the food is great", "not bad at all, fine")]
    with untouched(model.hf), torch.inference_mode():
        vectors = representations(model, model.batch(passages))
    linear = [m for m in model.hf.modules() if isinstance(m, nn.Linear)]
    head = [m for m in linear if m.out_features == len(model.labels)][-1]
    logits = head(vectors.float()).detach().double().numpy()
    if name == "single-layer":
        logits = logits / model.config.num_attention_heads
    np.testing.assert_allclose(logits, model.logits(passages), atol=1e-5)
    assert not any(m._forward_hooks for m in model.hf.modules())


@pytest.mark.parametrize("removal", ["mask", "delete", "pad", "mean"])
def test_every_removal_of_a_game_can_be_gauged(removal: str) -> None:
    model = family("bert")
    (gauge,) = whence.removal_gauge(model, TEXTS, [removal], shares=(0, 0.5, 1))
    assert gauge.removal == removal
    assert gauge.like_data[0] == 0.5
    assert gauge.distance[0] == gauge.distance_of_whole
    assert all(0 <= value <= 1 for value in gauge.like_data)
    # nothing is left of any text: by deletion all are the same empty one
    assert gauge.distance[2] != gauge.distance[0]


def test_a_gauge_of_the_bundled_model_is_the_same_each_time_and_tells_itself() -> None:
    model = whence.load("sentiment")
    gauges = whence.removal_gauge(model, TEXTS, ["mask", "delete"], shares=(0.5,))
    again = whence.removal_gauge(model, TEXTS, ["mask", "delete"], shares=(0.5,))
    assert gauges == again
    assert [gauge.removal for gauge in gauges] == ["mask", "delete"]
    assert "50% removed" in str(gauges[0])
    assert gauges[0].to_dict()["texts"] == len(TEXTS)


def test_more_units_go_on_top_of_fewer() -> None:
    passage = whence.load("sentiment").encode("a film that is not bad at all but rather good")
    masks = masks_for(passage, (0.1, 0.3, 0.9), seed=0)
    assert (masks[1:] <= masks[:-1]).all()
    assert (masks != masks_for(passage, (0.1, 0.3, 0.9), seed=1)).any()


def test_what_has_no_such_head_is_refused() -> None:
    with pytest.raises(whence.Unsupported, match="head of a text classifier"):
        whence.removal_gauge(family("bert-mlm"), TEXTS)
    with pytest.raises(whence.InputError, match="at least 10"):
        whence.removal_gauge(family("bert"), TEXTS[:5])
    with pytest.raises(whence.InputError, match="from 0 to 1"):
        whence.removal_gauge(family("bert"), TEXTS, shares=(1.5,))

    class NoLinear(nn.Module):
        def __init__(self, width: int, labels: int) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(width, labels))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ self.weight

    odd = family("bert")
    odd.hf.classifier = NoLinear(32, 3)
    with pytest.raises(whence.Unsupported, match="no linear map to its 3 labels"):
        whence.removal_gauge(odd, TEXTS)
