"""Integrated gradients where the tolerance cannot be met: the note says why, and time is saved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf

import whence
from tests import tokenizers as tok
from tests.choices import at_once
from tests.families import build
from whence.models.model import Model
from whence.trace.baselines import chosen_baseline
from whence.trace.routers import chooses

TEXT = "the food is great but the service is not bad"
EXPERTS: dict[str, tuple[str, dict[str, Any]]] = {
    "Mixtral": ("MixtralForCausalLM", {"num_local_experts": 4}),
    "Qwen2Moe": (
        "Qwen2MoeForCausalLM",
        {"num_experts": 4, "moe_intermediate_size": 24, "shared_expert_intermediate_size": 24},
    ),
    "Olmoe": ("OlmoeForCausalLM", {"num_experts": 4}),
}


def of_experts(name: str) -> Model:
    cls, more = EXPERTS[name]
    config = getattr(tf, f"{name}Config")(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=40,
        num_experts_per_tok=2,
        vocab_size=len(tok.byte_level()),
        pad_token_id=0,
        bos_token_id=0,
        eos_token_id=0,
        max_position_embeddings=64,
        **more,
    )
    torch.manual_seed(0)
    hf = getattr(tf, cls)(config).eval()
    with torch.no_grad():
        for parameter in hf.parameters():
            if parameter.ndim > 1:
                parameter.mul_(4)
    return whence.load(hf, tokenizer=tok.byte_level())


def explained(model: Model, **settings: Any) -> whence.Attribution:
    return whence.explain(model, TEXT, "integrated-gradients", evidence=False, **settings)


@pytest.mark.parametrize("name", at_once(EXPERTS, few=("Mixtral",)))
def test_a_router_that_switches_is_named_and_its_jumps_are_no_words(name: str) -> None:
    # would catch: "gap 53 %" and all 256 nodes spent, as if points were missing
    model = of_experts(name)
    a = explained(model)
    assert chooses(model.hf)
    assert a.error is not None
    assert a.detail is not None
    assert "not continuous along the path, as its router switches experts" in a.error.note
    assert "scores explain the rest" in a.error.note
    assert a.detail["jumps"]
    for before, after, size in a.detail["jumps"]:
        assert 0 <= before < after <= 1
        assert after - before < 1e-6
        assert abs(size) > 10 * a.detail["rounding"]
    assert a.cost.backwards < 200
    # the gap is of what the scores should explain: all but the jumps
    rest = a.detail["change"] - sum(size for _, _, size in a.detail["jumps"])
    assert a.error.completeness_gap == pytest.approx(abs(a.scores.sum() - rest) / abs(rest))
    gradient = whence.explain(model, TEXT, "gradient-x-input", evidence=False)
    assert gradient.error is not None
    assert "chooses among experts" in gradient.error.note


def test_a_dense_model_has_no_note_of_experts() -> None:
    # would catch: a list of names, or any use of the largest (an argmax over ids, a sort of them)
    model = build("llama")
    a = whence.explain(model, TEXT, "gradient-x-input", evidence=False)
    assert not chooses(model.hf)
    assert a.error is None or "experts" not in a.error.note


def test_the_singular_start_of_an_rms_norm_is_steep_and_no_jump() -> None:
    # would catch: the short stretch at zero taken for a jump; and 184 nodes, where halving alone
    # creeps towards it
    a = explained(build("llama"), baseline="zero")
    assert a.error is not None
    assert a.error.completeness_gap is not None
    assert a.error.completeness_gap <= 0.01
    assert not a.error.note
    assert a.cost.backwards <= 128


def test_rounding_is_named_with_its_size_and_float64_mends_it() -> None:
    # would catch: 256 nodes for digits that float32 does not have
    model = build("bert")
    coarse = explained(model, tolerance=1e-9)
    assert coarse.error is not None
    assert coarse.detail is not None
    assert coarse.detail["stopped"] == "rounding"
    assert "the model's own rounding in float32" in coarse.error.note
    assert "in float64 they would" in coarse.error.note
    assert coarse.cost.backwards < 256
    # the value in float64 tells how large rounding is
    value = float(coarse.value)
    model.hf.double()
    precise = explained(model, tolerance=1e-9)
    error = abs(float(precise.value) - value)
    assert error / 30 < coarse.detail["rounding"] < 30 * max(error, 1e-8)
    assert precise.error is not None
    assert precise.error.completeness_gap is not None
    assert precise.error.completeness_gap <= 1e-9
    np.testing.assert_allclose(coarse.scores, precise.scores, atol=1e-4)


def test_the_default_baseline_follows_the_model_and_the_result_names_it() -> None:
    # would catch: settings that say "auto", so that nobody knows what was compared
    of = {name: explained(build(name)).settings["baseline"] for name in ("bert", "gpt2", "t5")}
    assert of == {"bert": "mask", "gpt2": "mean", "t5": "mean"}
    assert chosen_baseline(build("vit"), "auto") == "mean"
    assert chosen_baseline(build("bert"), "zero") == "zero"
    a = explained(build("bert"))
    named = explained(build("bert"), baseline="mask")
    np.testing.assert_array_equal(a.scores, named.scores)
