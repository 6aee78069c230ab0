"""Logits only where a batch is read: the same numbers as the model's own logits at all places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf
from torch import Tensor, nn

import whence
from tests import tokenizers
from tests.families import FAMILIES, build
from whence.core.errors import ModelError
from whence.models.model import Model
from whence.models.speaking import run_batch, speaks_where_read
from whence.models.untouched import untouched
from whence.models.writing import written_after
from whence.trace.trace import logits_under

WRITERS = sorted(name for name in FAMILIES if build(name).kind.generates)
TINY = 1e-9  # in float64
ONLY_SINGLE = ("gpt-oss",)  # its experts are not multiplied in float64


def places_of_head(model: Model) -> list[tuple[int, ...]]:
    """Grows by the rows and places that the head is given in each pass."""
    sizes: list[tuple[int, ...]] = []
    head = model.hf.get_output_embeddings()
    head.register_forward_hook(lambda _m, args, _out: sizes.append(tuple(args[0].shape[:-1])))
    return sizes


@pytest.mark.parametrize("family", WRITERS)
def test_logits_where_texts_are_read_are_those_of_the_whole_pass(family: str) -> None:
    """Two texts of unequal length, each read at every output.

    The wrong versions: the last places of the padded rows, or the same places in every row.
    """
    model = build(family)
    tiny = 1e-5
    if family not in ONLY_SINGLE:
        model.hf.double()
        tiny = TINY
    ids = model.encode("the food").ids[:3]
    passages = [written_after(model, model.encode("is good but"), ids)]
    if model.pads:
        passages.append(written_after(model, model.encode("not"), ids))
    batch = model.batch(passages)
    with torch.no_grad():
        passed = run_batch(model, batch)
        said = model.read(passed.outputs, passed.batch)
        whole = model.hf(**batch.inputs).logits
    for row, places in enumerate(batch.readout.tolist()):
        np.testing.assert_allclose(said[row], whole[row, places], atol=tiny * whole.abs().max())
    assert speaks_where_read(model)
    assert passed.outputs.logits.shape[1] == len(ids)


def test_a_next_token_is_read_at_one_place() -> None:
    """By gradients, their reruns, and games alike; the wrong version runs the head on all."""
    model = build("gpt2")
    assert speaks_where_read(model)
    text = "the food is great but"
    whence.explain(model, text, "gradient-x-input")  # with the guard's own passes
    sizes = places_of_head(model)
    whence.explain(model, text, "gradient-x-input", evidence=False)
    whence.explain(model, text, "integrated-gradients", evidence=False, max_nodes=16)
    whence.explain(model, text, "occlusion", evidence=False)
    model.logits([model.encode(text)])
    assert sizes
    assert {places for _, places in sizes} == {1}


def test_edited_attention_is_read_at_one_place_too() -> None:
    """As the tests of an audit run a causal model; without an edit it says what it says."""
    model = build("gpt2")
    batch = model.batch([model.encode("the food is great but")])
    sizes = places_of_head(model)
    with model.lock, untouched(model.hf), torch.no_grad():
        edited = logits_under(model, batch, edits=())
    assert sizes == [(1, 1)]
    own = model.hf(**batch.inputs).logits[:, -1].detach()
    np.testing.assert_allclose(edited, own, atol=1e-5 * own.abs().max())


def test_whoever_runs_the_inputs_alone_gets_all_logits() -> None:
    model = build("gpt2")
    batch = model.batch([model.encode("the food is great")])
    assert batch.speaks_where_read
    assert model.run(batch.inputs).logits.shape[1] == max(batch.lengths)
    # and reads them where the batch says
    with torch.no_grad():
        outputs = model.run(batch.inputs)
        np.testing.assert_allclose(
            model.read(outputs, batch), model.said(batch), atol=1e-5 * outputs.logits.abs().max()
        )


def test_the_head_is_left_as_it_was_found() -> None:
    model = build("gpt2")
    head = model.hf.get_output_embeddings()
    batch = model.batch([model.encode("the food")])
    model.said(batch)
    assert not head._forward_pre_hooks

    def broken(_module: nn.Module, _args: Any) -> None:
        raise RuntimeError("no head today")

    handle = head.register_forward_pre_hook(broken)
    with pytest.raises(ModelError, match="no head today"):
        model.said(batch)
    handle.remove()
    assert not head._forward_pre_hooks


class Between(tf.GPT2LMHeadModel):
    """Its logits are less their mean over all places: a place does not speak for itself."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        out = super().forward(*args, **kwargs)
        out.logits = out.logits - out.logits.mean(1, keepdim=True)
        return out


def test_a_head_that_mixes_places_is_run_on_all_of_them() -> None:
    """Of one place alone, less the mean of it, nothing would be left: all logits zero."""
    torch.manual_seed(0)
    config = tf.GPT2Config(
        vocab_size=len(tokenizers.byte_level()), n_embd=32, n_layer=1, n_head=4, n_positions=64
    )
    model = whence.load(Between(config).eval(), tokenizer=tokenizers.byte_level())
    assert not speaks_where_read(model)
    passage = model.encode("the food is great")
    with torch.no_grad():
        own: Tensor = model.hf(torch.tensor(passage.ids)[None]).logits[0, -1]
    np.testing.assert_allclose(model.logits([passage])[0], own, atol=1e-5)
    assert own.abs().max() > 0.01
