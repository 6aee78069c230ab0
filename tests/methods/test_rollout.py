"""Rollout, value-weighted attention, and the products of raw attention: against matrices multiplied
out.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

import whence
from tests.families import build
from whence.core.aggregate import product_row
from whence.core.errors import SettingsError, Unsupported
from whence.core.registry import Needs
from whence.trace.trace import trace

TEXT = "the food is great but not"
A1, A2 = torch.tensor([[0.8, 0.2], [0.3, 0.7]]), torch.tensor([[0.6, 0.4], [0.1, 0.9]])


def half(a: np.ndarray) -> np.ndarray:
    return (a + np.eye(len(a))) / (a.sum(-1, keepdims=True) + 1)


def test_the_example_of_the_literature() -> None:
    rows = [product_row([A1, A2], torch.eye(2)[i], residual=True).tolist() for i in range(2)]
    np.testing.assert_allclose(rows, [[0.75, 0.25], [0.1875, 0.8125]], atol=1e-6)
    bare = [product_row([A1, A2], torch.eye(2)[i], residual=False).tolist() for i in range(2)]
    np.testing.assert_allclose(bare, (A2 @ A1).tolist(), atol=1e-6)


@pytest.mark.parametrize(
    ("family", "at"),
    [("bert", 0), ("gpt2", -1), ("llama-classifier", -1), ("gpt-oss", -1), ("deberta-v2", 0)],
)
def test_rollout_is_the_readout_row_of_the_product(family: str, at: int) -> None:
    model = build(family)
    passage = model.encode(TEXT)
    (maps,) = trace(model, [passage], needs=Needs.ATTENTION).attentions.values()
    first, second = (m[0].mean(0).double().numpy() for m in maps)
    whole = half(second) @ half(first)
    np.testing.assert_allclose(
        whence.explain(model, TEXT, "rollout", evidence=False).scores,
        passage.merge(whole[at]),
        atol=1e-6,
    )
    np.testing.assert_allclose(
        whence.explain(model, TEXT, "rollout", residual=False, evidence=False).scores,
        passage.merge((second @ first)[at]),
        atol=1e-6,
    )
    np.testing.assert_allclose(
        whence.explain(model, TEXT, "rollout", start_layer=1, evidence=False).scores,
        passage.merge(half(second)[at]),
        atol=1e-6,
    )
    by_settings = whence.explain(
        model,
        TEXT,
        "attention-mean",
        layer="product",
        residual=True,
        evidence=False,
    ).scores
    np.testing.assert_allclose(by_settings, passage.merge(whole[at]), atol=1e-6)


def test_a_model_that_pools_by_the_mean_starts_everywhere() -> None:
    model = build("modernbert-mean")
    passage = model.encode(TEXT)
    first, second = (
        m[0].mean(0).double().numpy()
        for m in trace(model, [passage], needs=Needs.ATTENTION).attentions["encoder"]
    )
    expected = passage.merge((half(second) @ half(first)).mean(0))
    np.testing.assert_allclose(
        whence.explain(model, TEXT, "rollout", evidence=False).scores, expected, atol=1e-6
    )


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("family", ["t5", "bart-classifier"])
def test_an_encoder_decoder_is_one_block_matrix(family: str, residual: bool) -> None:
    """Nodes are the decoder's tokens and the encoder's; each sub-layer is one matrix over both,
    multiplied out.
    """
    model = build(family)
    passage = model.encode(TEXT)
    t = trace(model, [passage], needs=Needs.ATTENTION)
    enc, dec, cross = (
        [m[0].mean(0).double().numpy() for m in t.attentions[k]]
        for k in ("encoder", "decoder", "cross")
    )
    d, e = cross[0].shape
    bottom = np.eye(e)
    for layer in enc:
        bottom = (half(layer) if residual else layer) @ bottom
    top = np.eye(d + e)
    for below, across in zip(dec, cross, strict=True):
        own, fork = np.eye(d + e), np.eye(d + e)
        own[:d, :d] = half(below) if residual else below
        fork[:d, :d], fork[:d, d:] = np.eye(d) / 2, across / 2
        top = fork @ own @ top
    row = top[model.readout(passage), d:] @ bottom
    found = whence.explain(model, TEXT, "rollout", residual=residual, evidence=False)
    np.testing.assert_allclose(found.scores, passage.merge(row), atol=1e-6)


def test_value_weighted_is_weight_times_norm() -> None:
    model = build("llama")  # two heads share a value
    passage = model.encode(TEXT)
    seen = []

    def keep(module, args, output) -> None:
        seen.append(output)

    hooks = [layer.self_attn.v_proj.register_forward_hook(keep) for layer in model.hf.model.layers]
    maps = trace(model, [passage], needs=Needs.ATTENTION).attentions["decoder"]
    for h in hooks:
        h.remove()
    norm = (
        seen[-1][0].view(len(passage), 2, 8).norm(dim=-1).T.repeat_interleave(2, 0)
    )  # head, token
    expected = (maps[-1][0, :, -1] * norm).mean(0)
    np.testing.assert_allclose(
        whence.explain(model, TEXT, "value-weighted", evidence=False).scores,
        passage.merge(expected.detach().double().numpy()),
        atol=1e-6,
    )
    with pytest.raises(Unsupported, match="value vectors"):
        whence.explain(build("deberta-v2"), TEXT, "value-weighted")


def test_layers_and_heads_of_raw_attention() -> None:
    model = build("bert")
    passage = model.encode(TEXT)
    w = np.stack(
        [
            m[0].double().numpy()
            for m in trace(model, [passage], needs=Needs.ATTENTION).attentions["encoder"]
        ]
    )
    rows = w[:, :, 0]

    def scores(**settings) -> np.ndarray:
        return whence.explain(model, TEXT, "attention-mean", **settings, evidence=False).scores

    for how, f in (("mean", np.mean), ("max", np.max), ("sum", np.sum)):
        np.testing.assert_allclose(scores(layer=how), passage.merge(f(rows.mean(1), 0)), atol=1e-6)
    np.testing.assert_allclose(
        scores(layer="product"), passage.merge((w[1].mean(0) @ w[0].mean(0))[0]), atol=1e-6
    )
    np.testing.assert_allclose(scores(head=2, layer=0), passage.merge(rows[0, 2]), atol=1e-6)
    np.testing.assert_allclose(
        scores(residual=True), passage.merge(rows[1].mean(0)) / 2, atol=1e-6
    )  # the other half stays on [CLS]
    np.testing.assert_allclose(
        whence.explain(model, TEXT, "attention-max", layer="product", evidence=False).scores,
        passage.merge((w[1].max(0) @ w[0].max(0))[0]),
        atol=1e-6,
    )
    half_first = np.eye(w.shape[-1])[0]
    mixed = (rows.max(1) + half_first) / (rows.max(1).sum(-1, keepdims=True) + 1)
    found = whence.explain(
        model, TEXT, "attention-max", layer="all", residual=True, evidence=False
    ).scores
    np.testing.assert_allclose(
        found, passage.merge(mixed.max(0)), atol=1e-6
    )  # the largest over layers, not their mean
    with pytest.raises(SettingsError, match="head 4 is outside the 4 heads"):
        scores(head=4)
    with pytest.raises(SettingsError, match="start_layer 2"):
        whence.explain(model, TEXT, "rollout", start_layer=2)
