"""The function in transformers' registry: what it refuses, and what it never returns."""

from __future__ import annotations

import pytest
import torch

from tests.families import build, inputs
from whence.core.errors import Unsupported
from whence.core.registry import Needs
from whence.trace import attention
from whence.trace.trace import trace


def test_an_unknown_extra_argument_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("bert")
    layer = model.hf.bert.encoder.layer[0].attention.self
    original = layer.forward
    monkeypatch.setattr(layer, "forward", lambda *a, **k: original(*a, **k, tilt=torch.ones(1)))
    with pytest.raises(Unsupported, match="BertSelfAttention passes 'tilt'"):
        trace(model, inputs(model), needs=Needs.ATTENTION)
    t = trace(model, inputs(model), needs=Needs.EMBEDDING_GRADIENTS)
    assert t.attention_via == "own"  # gradient methods leave the model's own attention in place


def test_a_capture_that_comes_back_empty_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    # transformers itself returns an empty tuple and a log line under SDPA
    model = build("deberta-v2")
    monkeypatch.setattr("whence.trace.trace._from_outputs", lambda *_: ([], []))
    with pytest.raises(Unsupported, match="gave no attention weights"):
        trace(model, inputs(model), needs=Needs.ATTENTION)


def test_a_family_outside_the_registry_refuses_edits_by_name() -> None:
    from whence.trace.edits import uniform

    model = build("deberta-v2")
    with pytest.raises(
        Unsupported,
        match="DebertaV2ForSequenceClassification computes attention without AttentionInterface",
    ):
        trace(model, inputs(model), edits=[uniform()])


def test_a_trace_without_attention_keeps_the_fast_path(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    real = torch.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(
        torch.nn.functional,
        "scaled_dot_product_attention",
        lambda *a, **k: called.append("sdpa") or real(*a, **k),
    )
    model = build("bert")
    assert model.shares_batches  # its own passes come before
    called.clear()
    t = trace(model, inputs(model), needs=Needs.EMBEDDING_GRADIENTS)
    assert called == ["sdpa", "sdpa"]
    t.gradients_at(0, t.embeddings_of(0)[None])
    assert len(called) == 4
    called.clear()
    trace(model, inputs(model), needs=Needs.ATTENTION)
    assert called == []


def test_the_output_path_equals_the_interface_path() -> None:
    model = build("t5")
    a, b = (
        trace(model, inputs(model), needs=Needs.ATTENTION, attention_via=via)
        for via in ("interface", "output")
    )
    for kind, maps in a.attentions.items():
        for ours, theirs in zip(maps, b.attentions[kind], strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("name", "two_sided", "kind"),
    [
        ("model.encoder.layers.0.self_attn", True, "encoder"),
        ("model.decoder.layers.0.self_attn", True, "decoder"),
        ("model.decoder.layers.0.encoder_attn", True, "cross"),
        ("decoder.block.0.layer.1.EncDecAttention", True, "cross"),
        ("decoder.block.0.layer.0.SelfAttention", True, "decoder"),
        ("encoder.block.0.layer.0.SelfAttention", True, "encoder"),
        ("bert.encoder.layer.0.crossattention", False, "cross"),
        ("bert.encoder.layer.0.attention.self", False, "encoder"),
    ],
)
def test_kinds_follow_from_module_names(name: str, two_sided: bool, kind: str) -> None:
    assert attention.kind_of(name, torch.nn.Identity(), two_sided) == kind
