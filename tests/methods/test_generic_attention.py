"""Generic attention, against a plain run of the Hugging Face model and the paper's rules written
out in matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import whence
from tests.families import build, precise
from tests.trace.test_relevance import bar_by_loops
from whence.models.model import Model

TEXT = "the food is great but the service is not"


def maps_by_hand(
    model: Model, batch: Any, label: int, sign: float = 1.0
) -> dict[str, list[np.ndarray]]:
    """Ā of every layer from ``output_attentions`` and a plain backward pass: no hook, no trace; one
    head and one entry at a time.
    """
    model.hf.set_attn_implementation("eager")
    out = model.hf(**batch.inputs, output_attentions=True)
    names = ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")
    found = {n: list(getattr(out, n, None) or ()) for n in names}
    every = [m for ms in found.values() for m in ms]
    for m in every:
        m.retain_grad()
    (sign * model.read(out, batch)[0, label]).backward()
    averaged: dict[str, list[np.ndarray]] = {}
    for name, maps in found.items():
        averaged[name] = []
        for m in maps:
            weights = m[0].detach().double().numpy()
            gradient = np.zeros_like(weights) if m.grad is None else m.grad[0].double().numpy()
            heads = [
                [
                    [max(0.0, g * w) for g, w in zip(*rows, strict=True)]
                    for rows in zip(*head, strict=True)
                ]
                for head in zip(gradient, weights, strict=True)
            ]
            averaged[name].append(np.mean(heads, axis=0))
    return averaged


def product(layers: list[np.ndarray]) -> np.ndarray:
    r = np.eye(len(layers[0]))
    for a in layers:
        r = r + a @ r
    return r


def close(found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    assert np.abs(expected).max() > 0
    np.testing.assert_allclose(found, expected, atol=tolerance * np.abs(expected).max(), rtol=0)


@pytest.mark.parametrize(
    "family",
    ["bert", "albert", "deberta-v2", "gpt2", "gpt2-classifier", "llama-classifier", "bert-mlm"],
)
def test_one_stream_is_the_readout_row_of_the_product(family: str) -> None:
    # would catch: the first layer on the left, the column, a clamp after the mean, the read-out
    # token's free 1
    model, tolerance = precise(family)
    passage = model.encode(TEXT)
    if model.task == "masked":
        passage = model.fill(passage, 3)
    a = whence.explain(model, passage, "generic-attention", evidence=False)
    layers = maps_by_hand(model, model.batch([passage]), a.target.index or 0)["attentions"]
    at = model.readout(passage)
    close(a.scores, passage.merge((product(layers) - np.eye(len(passage)))[at]), tolerance)
    assert (a.scores >= 0).all()
    assert not a.signed


def test_an_image() -> None:
    model, tolerance = precise("vit")
    pixels = np.random.default_rng(0).normal(size=(3, 16, 16)).astype(np.float32)
    a = whence.explain(model, model.encode(pixels), "generic-attention", evidence=False)
    layers = maps_by_hand(model, model.batch([a.passage]), a.target.index or 0)["attentions"]
    close(a.scores, a.passage.merge(product(layers)[0]), tolerance)


def test_a_model_that_pools_by_the_mean_is_read_by_the_mean_of_rows() -> None:
    model, tolerance = precise("modernbert-mean")
    passage = model.encode(TEXT)
    a = whence.explain(model, passage, "generic-attention", evidence=False)
    layers = maps_by_hand(model, model.batch([passage]), a.target.index or 0)["attentions"]
    close(a.scores, passage.merge((product(layers) - np.eye(len(passage))).mean(0)), tolerance)


@pytest.mark.parametrize("family", ["t5", "bart", "marian", "bart-classifier"])
@pytest.mark.parametrize("reply", [None, "not bad prices"])
def test_an_encoder_decoder_is_the_row_of_the_place_that_is_read(
    family: str, reply: str | None
) -> None:
    # would catch: R̄ without its transpose or without the identity, the encoder left out, the first
    # place instead of the last
    model, tolerance = precise(family)
    if model.task == "classification" and reply:
        pytest.skip("a classifier reads its own text")
    passage = model.encode(TEXT, reply=reply)
    a = whence.explain(model, passage, "generic-attention", evidence=False)
    layers = maps_by_hand(model, model.batch([passage]), a.target.index or 0)
    r_ii, r_qq = product(layers["encoder_attentions"]), np.eye(len(layers["decoder_attentions"][0]))
    r_qi = np.zeros((len(r_qq), len(r_ii)))
    for own, cross in zip(layers["decoder_attentions"], layers["cross_attentions"], strict=True):
        r_qq, r_qi = r_qq + own @ r_qq, r_qi + own @ r_qi
        r_qi = r_qi + bar_by_loops(r_qq).T @ cross @ bar_by_loops(r_ii)
    close(a.scores, passage.merge(r_qi[-1]), tolerance)


def test_another_target_another_answer() -> None:
    model, tolerance = precise("bert")
    passage = model.encode(TEXT)
    good, bad = (
        whence.explain(model, passage, "generic-attention", target=t, evidence=False)
        for t in ("good", "bad")
    )
    assert not np.allclose(good.scores, bad.scores)
    # good rather than bad, and bad rather than good: the target with its sign turned
    forth, back = (
        whence.explain(model, passage, "generic-attention", target=t, evidence=False)
        for t in (("good", "bad"), ("bad", "good"))
    )
    assert forth.value == pytest.approx(-back.value)
    assert not np.allclose(forth.scores, back.scores)
    turned = maps_by_hand(model, model.batch([passage]), good.target.index or 0, sign=-1.0)[
        "attentions"
    ]
    plain = maps_by_hand(model, model.batch([passage]), good.target.index or 0)["attentions"]
    assert not np.allclose(product(turned), product(plain))
    close(good.scores, passage.merge(product(plain)[0]), tolerance)


def test_a_target_that_attention_cannot_move_gives_zeros() -> None:
    model = build("bert")
    with torch.no_grad():
        model.hf.classifier.weight.zero_()  # the logits no longer depend on the text: R = I
    assert np.array_equal(
        whence.explain(model, TEXT, "generic-attention", evidence=False).scores,
        np.zeros(len(model.encode(TEXT).units)),
    )


def test_a_decoder_gives_its_last_token_no_free_one() -> None:
    model = build("gpt2")
    with torch.no_grad():
        for block in model.hf.transformer.h:
            # attention carries nothing, so nothing is said of any token
            block.attn.c_proj.weight.zero_()
    scores = whence.explain(model, TEXT, "generic-attention", evidence=False).scores
    assert np.abs(scores).max() == 0
