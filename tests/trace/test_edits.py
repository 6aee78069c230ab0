"""Edits do what they say, at the place they name, and nowhere else."""

from __future__ import annotations

import pytest
import torch

from tests.families import build, inputs
from whence.core.errors import InputError
from whence.core.registry import Needs
from whence.core.request import Ask
from whence.trace import edits
from whence.trace.trace import trace

KEEP = Needs.ATTENTION


def test_uniform_attention_in_one_head_equals_the_hand_computation() -> None:
    # would catch: dividing by all keys instead of the visible ones; editing another head; leaving
    # the output as it was
    model = build("bert")
    passage = inputs(model, 1)[0]
    layer = model.hf.bert.encoder.layer[0]
    seen: dict[str, torch.Tensor] = {}
    handle = layer.attention.self.register_forward_hook(
        lambda _m, args, out: seen.update(x=args[0], out=out[0])
    )
    before = trace(model, [passage], needs=KEEP)
    plain = seen["out"].clone()
    after = trace(model, [passage], needs=KEEP, edits=[edits.uniform(layer=0, head=2)])
    handle.remove()
    dim = 8
    value = layer.attention.self.value(seen["x"])[..., 2 * dim : 3 * dim]
    torch.testing.assert_close(
        seen["out"][..., 2 * dim : 3 * dim], value.mean(1, keepdim=True).expand_as(value)
    )
    torch.testing.assert_close(seen["out"][..., : 2 * dim], plain[..., : 2 * dim])
    assert torch.all(after.attentions["encoder"][0][:, 2] == 1 / len(passage))
    assert torch.equal(after.attentions["encoder"][0][:, 1], before.attentions["encoder"][0][:, 1])


def test_uniform_attention_spares_padding_and_the_future() -> None:
    bert, gpt = build("bert"), build("gpt2")
    passages = inputs(bert, 2)
    padded = trace(bert, passages, needs=KEEP, edits=[edits.uniform()]).attentions["encoder"][0]
    short = len(passages[1])
    assert torch.all(padded[1, :, :, short:] == 0)
    torch.testing.assert_close(
        padded[1, :, :, :short], torch.full_like(padded[1, :, :, :short], 1 / short)
    )
    causal = trace(gpt, inputs(gpt, 1), needs=KEEP, edits=[edits.uniform()]).attentions["decoder"][
        0
    ][0, 0]
    expected = torch.ones_like(causal).tril() / torch.arange(1, len(causal) + 1)[:, None]
    torch.testing.assert_close(causal, expected)


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "bart"])
def test_permuted_rows_hold_the_same_weights_in_another_order(name: str) -> None:
    model = build(name)
    passages = inputs(model, 2)
    plain = trace(model, passages, needs=KEEP)
    kind = next(iter(plain.attentions))
    asks = [Ask(p, target) for p, target in zip(passages, plain.targets, strict=True)]
    moved = trace(
        model,
        asks,
        needs=KEEP,
        edits=[edits.permute(layer=0, kind=kind, seed=3)],
    )
    a, b = plain.attentions[kind][0], moved.attentions[kind][0]
    torch.testing.assert_close(a.sort(-1).values, b.sort(-1).values)
    assert not torch.equal(a, b)
    assert torch.all(b[a == 0] == 0) or kind == "encoder"  # masked keys stay masked
    again = trace(
        model,
        asks,
        needs=KEEP,
        edits=[edits.permute(layer=0, kind=kind, seed=3)],
    )
    assert torch.equal(again.attentions[kind][0], b)
    assert not torch.equal(moved.logits, plain.logits)


def test_an_edit_that_puts_back_what_was_there_changes_nothing() -> None:
    # grouped heads: the output must be recomputed with each key-value head repeated for its queries
    for name in ("bert", "llama", "t5", "gpt-oss", "gemma2"):
        model = build(name)
        passages = inputs(model, 2)
        plain = trace(model, passages, needs=KEEP)
        for kind, maps in plain.attentions.items():
            asks = [Ask(p, target) for p, target in zip(passages, plain.targets, strict=True)]
            same = trace(
                model,
                asks,
                edits=[edits.replace(maps[1], layer=1, kind=kind), edits.scale(1.0)],
            )
            torch.testing.assert_close(same.logits, plain.logits, atol=1e-4, rtol=1e-5)


def test_zeroing_a_heads_attention_equals_ablating_its_output() -> None:
    model = build("qwen3")
    passages = inputs(model, 1)
    by_attention = trace(model, passages, "the", needs=KEEP, edits=[edits.zero(layer=1, head=3)])
    by_output = trace(model, passages, "the", needs=KEEP, edits=[edits.ablate(layer=1, head=3)])
    torch.testing.assert_close(by_attention.logits, by_output.logits)
    # ablation leaves the weights to be seen
    assert float(by_output.attentions["decoder"][1][:, 3].sum()) > 0
    assert float(by_attention.attentions["decoder"][1][:, 3].abs().max()) == 0


def test_scaling_a_head_scales_its_output() -> None:
    model = build("bert")
    layer = model.hf.bert.encoder.layer[1].attention.self
    outputs = []
    handle = layer.register_forward_hook(lambda _m, _a, out: outputs.append(out[0].clone()))
    passages = inputs(model, 1)
    trace(model, passages, needs=KEEP)
    trace(model, passages, needs=KEEP, edits=[edits.scale(0.5, layer=1, head=0)])
    handle.remove()
    torch.testing.assert_close(outputs[1][..., :8], 0.5 * outputs[0][..., :8])
    torch.testing.assert_close(outputs[1][..., 8:], outputs[0][..., 8:])


def test_swapped_embeddings_are_those_of_the_other_text() -> None:
    model = build("roberta")
    a, b = model.encode(" the food is great"), model.encode(" great is the food")
    short = min(len(a), len(b))
    assert len(a) == len(b) == short
    there = trace(model, [b], needs=Needs.EMBEDDINGS)
    swapped = trace(
        model, [a], needs=Needs.EMBEDDINGS, edits=[edits.swap_embeddings(there.embeddings)]
    )
    torch.testing.assert_close(swapped.logits, there.logits)
    with pytest.raises(InputError, match="swap_embeddings"):
        trace(model, [a], edits=[edits.swap_embeddings(torch.zeros(1, 2, 3))])


def test_weights_of_a_wrong_size_are_refused() -> None:
    model = build("bert")
    with pytest.raises(InputError, match="weights of"):
        trace(model, inputs(model, 1), edits=[edits.replace(torch.ones(2, 2), layer=0)])
