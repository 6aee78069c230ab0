"""Every family on the support list, against its own eager attention."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from tests.families import DOUBLE, FAMILIES, build, inputs, precise
from whence.core.registry import Needs
from whence.core.request import Ask
from whence.trace.attention import can_observe
from whence.trace.trace import trace

EVERYTHING = Needs.ATTENTION | Needs.ATTENTION_GRADIENTS | Needs.EMBEDDING_GRADIENTS
families = pytest.mark.parametrize("name", FAMILIES)
LAYERS = {"single-layer": 1}  # the others have two


def eager(model: Any, passages: Any) -> tuple[torch.Tensor, dict[str, list[torch.Tensor]]]:
    """Logits and attention as the family's own eager path returns them, on a copy of the model."""
    hf = copy.deepcopy(model.hf)
    hf.set_attn_implementation("eager")
    batch = model.batch(passages)
    with torch.no_grad():
        outputs = hf(**batch.inputs, output_attentions=True)
    two_sided = model.is_encoder_decoder
    names = {
        "encoder": "encoder_attentions",
        "decoder": "decoder_attentions",
        "cross": "cross_attentions",
    }
    kinds = tuple(names) if two_sided else ("decoder",) if model.is_causal else ("encoder",)
    maps = {
        k: [m for m in getattr(outputs, names[k] if two_sided else "attentions") if m is not None]
        for k in kinds
    }
    return model.read(outputs, batch), maps


@families
def test_attention_and_logits_equal_eagers(name: str) -> None:
    # would catch: a mask that vanishes (causal rows see the future), a forgotten soft cap, sink,
    # bias or window, layers out of order
    model = build(name)
    passages = inputs(model)
    t = trace(model, passages, needs=EVERYTHING)
    logits, maps = eager(model, passages)
    assert t.attention_via == FAMILIES[name].via
    assert set(t.attentions) == set(FAMILIES[name].kinds)
    torch.testing.assert_close(t.logits, logits, atol=1e-6, rtol=0)
    for kind, expected in maps.items():
        assert len(t.attentions[kind]) == len(expected) == LAYERS.get(name, 2)
        for ours, theirs in zip(t.attentions[kind], expected, strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=0)


@families
def test_logits_equal_the_models_own_path(name: str) -> None:
    model = build(name)
    passages = inputs(model)
    batch = model.batch(passages)
    with torch.no_grad():
        own = model.read(model.hf(**batch.inputs), batch)
    captured = trace(model, passages, needs=Needs.ATTENTION).logits
    torch.testing.assert_close(captured, own, atol=2e-4 * float(own.abs().max()), rtol=1e-4)


@families
def test_gradients_reach_the_attention_weights(name: str) -> None:
    model = build(name)
    t = trace(model, inputs(model), needs=EVERYTHING)
    for kind, slopes in t.attention_gradients.items():
        for weights, slope in zip(t.attentions[kind], slopes, strict=True):
            assert slope.shape == weights.shape
    last = t.attention_gradients[FAMILIES[name].kinds[-1]][-1]
    assert last.abs().max() > 0
    assert t.embedding_gradients.abs().max() > 0


@pytest.mark.parametrize("name", ["bert", "gpt2", "bart", "llama", "t5"])
def test_an_attention_gradient_is_the_slope_of_the_target_along_that_weight(name: str) -> None:
    # would catch: a gradient of a copy of the weights that the output does not depend on
    from whence.trace.edits import Edit

    model, _ = precise(name)
    passages = inputs(model, 1)
    t = trace(model, passages, needs=EVERYTHING)
    kind = FAMILIES[name].kinds[0]
    step, tolerance = (1e-5, 1e-5) if name in DOUBLE else (1e-3, 5e-2)
    bump = torch.zeros_like(t.attentions[kind][0])
    row, key = divmod(
        int(t.attention_gradients[kind][0][0].abs().argmax()), t.attentions[kind][0].shape[-1]
    )
    head, query = divmod(row, t.attentions[kind][0].shape[-2])
    bump[0, head, query, key] = (
        1.0  # where the slope is steepest, so that rounding in float32 norms is small beside it
    )

    def at(s: float) -> torch.Tensor:
        edit = Edit("bump", "attention", lambda w, _: w + s * bump, layer=0, kind=kind)
        asks = [Ask(p, target) for p, target in zip(passages, t.targets, strict=True)]
        return trace(model, asks, edits=[edit]).values

    def between(s: float) -> torch.Tensor:
        return (at(s) - at(-s)) / (2 * s)

    slope = (
        4 * between(step) - between(2 * step)
    ) / 3  # Richardson's: a step that float32 can resolve is long for a model that bends
    torch.testing.assert_close(
        slope[0], t.attention_gradients[kind][0][0, head, query, key], rtol=tolerance, atol=1e-8
    )


@families
def test_padding_and_batch_mates_change_nothing(name: str) -> None:
    model, tolerance = precise(name)
    passages = inputs(model, 3)
    together = trace(model, passages, needs=EVERYTHING)

    def same(ours: torch.Tensor, theirs: torch.Tensor) -> None:
        torch.testing.assert_close(ours, theirs, atol=tolerance * float(theirs.abs().max()), rtol=0)

    for i, passage in enumerate(passages):
        alone = trace(model, [passage], needs=EVERYTHING)
        same(together.logits[i], alone.logits[0])
        same(together.embedding_gradients[i, : len(passage)], alone.embedding_gradients[0])
        for kind, maps in alone.attentions.items():
            for many, one in zip(together.attentions[kind], maps, strict=True):
                q, k = one.shape[-2:]
                same(many[i, :, :q, :k], one[0])


@families
def test_layers_are_keyed_by_module_and_kind(name: str) -> None:
    model = build(name)
    t = trace(model, inputs(model, 1), needs=Needs.ATTENTION)
    modules = dict(model.hf.named_modules())
    for kind, layers in t.layers.items():
        assert [layer.index for layer in layers] == [0, 1][: LAYERS.get(name, 2)]
        assert all(layer.kind == kind for layer in layers)
        if t.attention_via == "interface":
            assert all(layer.module in modules for layer in layers)
            if name not in (
                "albert",
                "single-layer",
            ):  # whose layers share one module; which has one
                assert layers[0].module != layers[1].module


@pytest.mark.parametrize("name", [n for n, f in FAMILIES.items() if f.kinds == ("decoder",)])
def test_a_decoder_never_sees_the_future(name: str) -> None:
    model = build(name)
    t = trace(model, inputs(model, 1), needs=Needs.ATTENTION)
    for weights in t.attentions["decoder"]:
        assert float(weights.triu(1).abs().max()) == 0.0


def test_the_fallback_is_for_families_outside_the_registry_only() -> None:
    assert {n for n in FAMILIES if not can_observe(build(n).hf)} == {"deberta-v2"}
