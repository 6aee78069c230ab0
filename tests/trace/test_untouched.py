"""The model comes back bit-identical, also after an exception.

That is: weights, buffers, hooks, config, training flags, requires_grad, grads.
"""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
import torch

from tests.choices import at_once
from tests.families import FAMILIES, MAIN, build, inputs
from whence.core.errors import InputError, ModelError, Unsupported
from whence.core.registry import Needs
from whence.explaining.attend import attend
from whence.explaining.explain import compare
from whence.models.untouched import configs_of
from whence.trace import edits
from whence.trace.reducers import HeadMean
from whence.trace.trace import trace

EVERYTHING = (
    Needs.ATTENTION | Needs.ATTENTION_GRADIENTS | Needs.EMBEDDING_GRADIENTS | Needs.HIDDEN_STATES
)


def snapshot(hf: torch.nn.Module) -> dict[str, Any]:
    hooks = (
        "_forward_hooks",
        "_forward_pre_hooks",
        "_backward_hooks",
        "_backward_pre_hooks",
        "_forward_hooks_with_kwargs",
    )
    return {
        "state": {n: t.detach().clone() for n, t in [*hf.named_parameters(), *hf.named_buffers()]},
        "requires_grad": {n: p.requires_grad for n, p in hf.named_parameters()},
        "grads": {n: None if p.grad is None else p.grad.clone() for n, p in hf.named_parameters()},
        "training": {n: m.training for n, m in hf.named_modules()},
        "hooks": {n: [list(getattr(m, h, {})) for h in hooks] for n, m in hf.named_modules()},
        "config": [
            json.dumps(c.to_dict(), default=str, sort_keys=True) for c in configs_of(hf.modules())
        ],
        "attention": [c._attn_implementation for c in configs_of(hf.modules())],
        "attributes": {n: sorted(vars(m)) for n, m in hf.named_modules()},
    }


def assert_same(before: dict[str, Any], after: dict[str, Any]) -> None:
    for key in ("requires_grad", "training", "hooks", "config", "attention", "attributes"):
        assert before[key] == after[key], key
    for key in ("state", "grads"):
        assert before[key].keys() == after[key].keys()
        for name, tensor in before[key].items():
            other = after[key][name]
            assert (tensor is None) == (other is None), name
            assert tensor is None or torch.equal(tensor, other), name


def awkward(name: str) -> Any:
    """A model in an untidy state, as a caller may have it.

    Half is in training mode, some weights are frozen, gradients lie about.
    """
    model = build(name)
    parameters = list(model.hf.parameters())
    parameters[0].requires_grad_(False)
    parameters[-1].grad = torch.ones_like(parameters[-1])
    next(m for m in model.hf.modules() if isinstance(m, torch.nn.Dropout | torch.nn.Linear)).train()
    return model


@pytest.mark.parametrize("name", at_once(FAMILIES, MAIN))
def test_a_trace_leaves_the_model_as_it_was(name: str) -> None:
    model = awkward(name)
    before = snapshot(model.hf)
    trace(model, inputs(model), needs=EVERYTHING)
    # every method, and the fewest rankings that evidence can have
    compare(model, inputs(model, 1)[0], rankings=39, steps=2)
    attend(model, inputs(model, 1)[0])
    assert_same(before, snapshot(model.hf))


@pytest.mark.parametrize("name", at_once(FAMILIES, MAIN))
def test_an_exception_in_the_middle_leaves_the_model_as_it_was(name: str) -> None:
    model = awkward(name)
    trace(model, inputs(model))  # what is found out by a first run is known
    before = snapshot(model.hf)
    modules = list(model.hf.modules())
    victim = modules[2 * len(modules) // 3]
    original = victim.forward

    def crash(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a crash in the middle")

    calls = []
    for module in modules[len(modules) // 2 :]:
        if not list(module.children()):
            victim, original = module, module.forward
            victim.forward = crash
            try:
                trace(model, inputs(model), needs=EVERYTHING)
            except ModelError as problem:
                calls.append(str(problem.__cause__))
            finally:
                del victim.forward
            if calls:
                break
    assert calls == ["a crash in the middle"]
    assert_same(before, snapshot(model.hf))
    assert original == victim.forward


def test_an_error_of_ours_leaves_the_model_as_it_was() -> None:
    model = awkward("bert")
    before = snapshot(model.hf)
    with pytest.raises(InputError, match="met no layer"):
        trace(model, inputs(model), edits=[edits.uniform(layer=99)])
    with pytest.raises(InputError, match="head 7 is outside the 4 heads"):
        trace(model, inputs(model), edits=[edits.uniform(layer=0, head=7)])
    with pytest.raises(Unsupported, match="reducer"):
        trace(model, inputs(model), needs=EVERYTHING, reducer=HeadMean())
    assert_same(before, snapshot(model.hf))


def test_dropout_is_off_while_a_model_in_training_mode_is_traced() -> None:
    model = build("bert")
    calm = trace(model, inputs(model, 1), needs=Needs.ATTENTION).logits
    model.hf.train()
    busy = trace(model, inputs(model, 1), needs=Needs.ATTENTION).logits
    assert torch.equal(calm, busy)
    assert model.hf.training


def test_two_threads_cannot_corrupt_each_other() -> None:
    # would catch: a trace that switches the attention back while another is inside
    model = build("bert")
    passages = inputs(model, 3)
    alone = [trace(model, [p], needs=EVERYTHING) for p in passages]
    before = snapshot(model.hf)
    wrong: list[str] = []

    def work(k: int) -> None:
        for round_ in range(6):
            needs = EVERYTHING if (round_ + k) % 2 else Needs.EMBEDDING_GRADIENTS
            t = trace(model, [passages[k]], needs=needs)
            if not torch.allclose(t.logits, alone[k].logits, atol=1e-5):
                wrong.append("logits")
            if needs == EVERYTHING and not torch.equal(
                t.attentions["encoder"][0], alone[k].attentions["encoder"][0]
            ):
                wrong.append("attention")

    threads = [threading.Thread(target=work, args=(k % 3,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert_same(before, snapshot(model.hf))


def test_a_caller_who_runs_the_model_during_a_trace_gets_the_right_answer() -> None:
    model = build("gpt2")
    passage = inputs(model, 1)[0]
    batch = model.batch([passage])
    with torch.no_grad():
        expected = model.hf(**batch.inputs).logits
    seen: list[torch.Tensor] = []

    def peek(_weights: torch.Tensor, _allowed: torch.Tensor) -> torch.Tensor:
        def run() -> None:
            with torch.no_grad():
                seen.append(model.hf.transformer.h[0].attn(torch.ones(1, 3, 32))[0])

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return _weights

    trace(model, [passage], edits=[edits.Edit("peek", "attention", peek, layer=0)])
    with torch.no_grad():
        assert torch.allclose(
            seen[0], model.hf.transformer.h[0].attn(torch.ones(1, 3, 32))[0], atol=1e-5
        )
        assert torch.equal(model.hf(**batch.inputs).logits, expected)
