"""Relevance propagation on whole models: values stay, and sums hold where theory says so."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch

from tests.families import FAMILIES, build, inputs, precise
from tests.trace.test_untouched import assert_same, awkward, snapshot
from whence.core.errors import ModelError, Unsupported
from whence.core.registry import Needs
from whence.models.model import Model
from whence.trace.lrp.rules import AttnLRP, DeepTaylor
from whence.trace.lrp.run import embedding_relevance, map_relevance, run_by, running
from whence.trace.trace import Trace, trace

WITHOUT_BIAS = [
    "modernbert",
    "modernbert-mean",
    "gpt-neox",
    "llama",
    "llama-classifier",
    "qwen3",
    "gemma2",
    "gemma3",
]
# without ViT, whose classification token, and gpt-oss, whose attention sinks are constants behind
# which relevance ends
ONE_STREAM = [n for n, f in FAMILIES.items() if len(f.kinds) == 1 and n not in ("vit", "gpt-oss")]
RULES: dict[str, Any] = {
    "taylor": AttnLRP(),
    "constant": AttnLRP("constant"),
    "deep-taylor": DeepTaylor(),
}


@cache
def model_of(name: str) -> Model:
    return precise(name)[0]


def traced(name: str, needs: Needs = Needs.ATTENTION) -> Trace:
    model = model_of(name)
    return trace(model, inputs(model, 1), needs=needs)


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("name", FAMILIES)
def test_values_are_the_models_own(name: str, rules: str) -> None:
    t = traced(name)
    with running(t.model):
        run = run_by(t, 0, RULES[rules])
        size = float(t.logits.abs().max())
        assert float((run.logits.detach() - t.logits).abs().max()) <= 1e-6 * size
        assert run.maps.keys() == t.attentions.keys()
        for kind, maps in run.maps.items():
            for ours, theirs in zip(maps, t.attentions[kind], strict=True):
                torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-6)
    assert t.passes.forwards == [2]


@pytest.mark.parametrize("name", WITHOUT_BIAS)
def test_without_biases_a_constant_softmax_loses_nothing(name: str) -> None:
    # would catch: any rule whose share is not one; G×I, the plain gradient, misses the sum by far
    t = traced(name, Needs.EMBEDDING_GRADIENTS)
    relevance = embedding_relevance(t, 0, AttnLRP("constant"))
    assert relevance.handed == pytest.approx(float(t.values[0]), rel=1e-5)
    assert float(relevance.tokens.sum()) == pytest.approx(relevance.handed, rel=1e-4)
    plain = float((t.embedding_gradients * t.embeddings).sum())
    assert abs(plain - relevance.handed) > 0.05 * abs(relevance.handed)
    assert t.passes.forwards == [2]
    assert t.passes.backwards == [2]


@pytest.mark.parametrize("name", ["llama", "qwen3"])
def test_taylors_softmax_loses_some(name: str) -> None:
    relevance = embedding_relevance(traced(name), 0, AttnLRP("taylor"))
    assert abs(float(relevance.tokens.sum()) - relevance.handed) > 0.05 * abs(relevance.handed)


def test_epsilon_absorbs() -> None:
    t = traced("llama")
    sums = [
        abs(float(embedding_relevance(t, 0, AttnLRP("constant", e)).tokens.sum()))
        for e in (0.0, 1e-7, 1.0)
    ]
    assert sums[1] == pytest.approx(sums[0], rel=1e-3)
    assert sums[2] < 0.5 * sums[0]


@pytest.mark.parametrize("name", ONE_STREAM)
def test_deep_taylor_hands_all_of_it_to_the_embeddings(name: str) -> None:
    t = traced(name)
    with running(t.model):
        run = run_by(t, 0, DeepTaylor())
        start = torch.zeros_like(run.logits)
        start[:, t.targets[0].index] = 1
        (r,) = torch.autograd.grad(run.logits, [run.leaf], start)
    # DeBERTa's heads of eight entries meet constant positions, and where no entry agrees in sign
    # there is nobody to give to
    assert float(r.sum()) == pytest.approx(1, abs=5e-3 if name == "deberta-v2" else 1e-4)


def test_a_passage_alone_or_in_a_batch_is_the_same() -> None:
    model = model_of("bert")
    passages = inputs(model, 3)
    together = trace(model, passages, needs=Needs.EMBEDDINGS)
    for i, passage in enumerate(passages):
        alone = trace(model, [passage], together.targets[i], needs=Needs.EMBEDDINGS)
        torch.testing.assert_close(
            embedding_relevance(together, i, AttnLRP()).tokens,
            embedding_relevance(alone, 0, AttnLRP()).tokens,
            atol=1e-12,
            rtol=1e-9,
        )


@pytest.mark.parametrize("name", ["bert", "gpt2", "bart", "deberta-v2", "vit", "gemma2"])
def test_the_model_is_left_as_found(name: str) -> None:
    model = awkward(name)
    before = snapshot(model.hf)
    t = trace(model, inputs(model, 1), needs=Needs.EMBEDDINGS)
    embedding_relevance(t, 0, AttnLRP())
    map_relevance(t, 0)
    assert_same(before, snapshot(model.hf))


@pytest.mark.parametrize("name", ["bert", "gpt2", "bart", "deberta-v2"])
def test_the_model_is_left_as_found_after_a_crash_and_works_again(name: str) -> None:
    model = awkward(name)
    t = trace(model, inputs(model, 1), needs=Needs.EMBEDDINGS)
    right = embedding_relevance(t, 0, AttnLRP()).tokens
    before = snapshot(model.hf)
    activations = [
        m for m in model.hf.modules() if type(m).__module__ == "transformers.activations"
    ]
    linears = [m for m in model.hf.modules() if isinstance(m, torch.nn.Linear)]
    for victim in (activations[-1], linears[-1]):

        def crash(*_: Any, **__: Any) -> Any:
            raise RuntimeError("a crash in the middle")

        victim.forward = crash
        try:
            for run in (lambda: embedding_relevance(t, 0, AttnLRP()), lambda: map_relevance(t, 0)):
                with pytest.raises(RuntimeError, match="a crash in the middle"):
                    run()
        finally:
            del victim.forward
        assert_same(before, snapshot(model.hf))
    assert torch.equal(embedding_relevance(t, 0, AttnLRP()).tokens, right)


class Exponential(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.exp()


def test_an_unknown_operation_is_refused_by_name_and_leaves_the_model_as_found() -> None:
    model = build("bert")
    model.hf.dropout = Exponential()
    before = snapshot(model.hf)
    t = trace(model, inputs(model, 1), needs=Needs.EMBEDDINGS)
    with pytest.raises(Unsupported, match="no rule for the operation 'exp'"):
        embedding_relevance(t, 0, AttnLRP())
    assert_same(before, snapshot(model.hf))


def test_relevance_that_is_not_finite_is_an_error() -> None:
    model: Model = build("llama")
    t = trace(model, inputs(model, 1), needs=Needs.EMBEDDINGS)
    with torch.no_grad():  # the values stay finite, the shares of them do not
        model.hf.lm_head.weight.mul_(1e38)
        model.hf.model.norm.weight.mul_(1e-38)
        model.hf.model.layers[1].mlp.down_proj.weight.mul_(float("nan"))
    with pytest.raises(ModelError, match="not finite"):
        map_relevance(t, 0)
