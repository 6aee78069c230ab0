"""Hidden states at a block: those that the model hands on, and the edit of them."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

from tests.choices import at_once
from tests.families import FAMILIES, MAIN, build, inputs, precise
from tests.trace.test_untouched import assert_same, awkward, snapshot
from whence.core.errors import InputError, Unsupported
from whence.core.registry import Needs
from whence.trace import edits
from whence.trace.hidden import editing, hidden_at, reading
from whence.trace.trace import trace

WITH_BLOCKS = [name for name in FAMILIES if name != "single-layer"]


def given_out(model: Any, passage: Any, kind: str) -> tuple[torch.Tensor, ...]:
    """Every hidden state as transformers gives it out, of one passage alone."""
    with torch.no_grad():
        outputs = model.hf(**model.batch([passage]).inputs, output_hidden_states=True)
    if model.is_encoder_decoder:
        return getattr(outputs, f"{kind}_hidden_states")
    return outputs.hidden_states


@pytest.mark.parametrize("name", at_once(WITH_BLOCKS, MAIN))
def test_they_are_what_the_model_gives_out_as_hidden_states(name: str) -> None:
    # would catch: the state before the block; padding left in the rows; rows in the order of their
    # lengths; the wrong turn of ALBERT's one block
    model, tolerance = precise(name)
    passages = inputs(model, 3)
    for kind in ("encoder", "decoder") if model.is_encoder_decoder else (None,):
        ours = hidden_at(model, passages, 0, kind)
        for passage, states in zip(passages, ours, strict=True):
            theirs = given_out(model, passage, kind or "")[1][0]
            size = float(theirs.abs().max())
            torch.testing.assert_close(states, theirs, atol=tolerance * size, rtol=0)


def test_the_last_layer_is_read_before_the_final_norm() -> None:
    model, tolerance = precise("gpt2")
    passage = inputs(model, 1)[0]
    before = hidden_at(model, [passage], 1)[0]
    after = given_out(model, passage, "")[2][0]
    torch.testing.assert_close(
        model.hf.transformer.ln_f(before), after, atol=tolerance, rtol=tolerance
    )
    assert not torch.allclose(before, after, atol=0.1)


def test_a_pass_that_ends_at_the_block_says_the_same_as_one_that_runs_on() -> None:
    model = build("llama")
    passages = inputs(model, 2)
    first = hidden_at(model, passages, 0)  # the first pass of a model runs to its end
    again = hidden_at(model, passages, 0)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    ran = []
    handle = model.hf.model.layers[1].register_forward_hook(lambda *_: ran.append(1))
    hidden_at(model, passages, 0)
    handle.remove()
    assert not ran


@pytest.mark.parametrize("name", WITH_BLOCKS)
def test_an_edit_at_the_last_layer_reaches_the_output_and_leaves_no_trace(name: str) -> None:
    model = awkward(name)
    passages = inputs(model, 2)
    kind = "decoder" if model.is_encoder_decoder else None
    plain = trace(model, passages)
    before = snapshot(model.hf)
    same = trace(model, passages, edits=[edits.hidden(lambda h: h.clone(), 1, kind=kind)])
    other = trace(model, passages, edits=[edits.hidden(lambda h: h.flip(-1), 1, kind=kind)])
    assert_same(before, snapshot(model.hf))
    assert torch.equal(same.logits, plain.logits)
    assert not torch.allclose(other.logits, plain.logits, atol=1e-3)


def test_an_edit_is_seen_by_later_layers_and_not_by_earlier_ones() -> None:
    # would catch: a change at the wrong block, or of a copy that nobody reads
    model = build("llama")
    passages = inputs(model, 1)
    shift = edits.hidden(lambda h: h + 1, layer=0)
    states = Needs.HIDDEN_STATES
    plain = trace(model, passages, needs=states).hidden_states
    changed = trace(model, passages, needs=states, edits=[shift]).hidden_states
    assert torch.equal(changed[0], plain[0])
    torch.testing.assert_close(changed[1], plain[1] + 1)
    assert not torch.allclose(changed[2], plain[2], atol=1e-3)


def test_only_the_named_turn_of_a_shared_block_is_changed() -> None:
    model = build("albert")
    passages = inputs(model, 1)
    needs = Needs.HIDDEN_STATES
    plain = trace(model, passages, needs=needs).hidden_states
    shift = edits.hidden(lambda h: h + 1, layer=1)
    changed = trace(model, passages, needs=needs, edits=[shift]).hidden_states
    assert torch.equal(changed[1], plain[1])
    torch.testing.assert_close(changed[2], plain[2] + 1)


def test_gradients_pass_an_edit() -> None:
    # the slope of the target through h -> 2 h at the last layer of a model without a final norm's
    # scale: embeddings' gradients must differ from those without, and be finite
    model = build("bert")
    passages = inputs(model, 1)
    double = edits.hidden(lambda h: 2 * h, layer=0)
    t = trace(model, passages, needs=Needs.EMBEDDING_GRADIENTS, edits=[double])
    plain = trace(model, passages, needs=Needs.EMBEDDING_GRADIENTS)
    assert bool(t.embedding_gradients.isfinite().all())
    assert not torch.allclose(t.embedding_gradients, plain.embedding_gradients)


def test_the_slope_through_an_edit_is_that_of_the_edited_model() -> None:
    # would catch: a change outside of the graph, whose slope would be that of the plain model
    model, _ = precise("gpt2")
    passage = inputs(model, 1)[0]
    edit = edits.hidden(lambda h: h * h / 10, layer=0)
    t = trace(model, [passage], needs=Needs.EMBEDDING_GRADIENTS, edits=[edit])
    bump = torch.zeros_like(t.embeddings)
    bump[0, 1, 3] = 1e-5

    def at(sign: float) -> torch.Tensor:
        moved = edits.swap_embeddings(t.embeddings + sign * bump)
        return trace(model, [passage], t.targets[0], edits=[moved, edit]).values[0]

    slope = (at(1) - at(-1)) / 2e-5
    torch.testing.assert_close(slope, t.embedding_gradients[0, 1, 3], rtol=1e-5, atol=1e-8)


def test_generation_with_a_cache_sees_each_position_once() -> None:
    # would catch: a hook that is lost after the first pass, or a cache that is switched off
    model = build("gpt2")
    ids = model.batch([model.encode("the food is great")]).inputs["input_ids"]
    shapes: list[int] = []
    with reading(model, 0, lambda h: shapes.append(h.shape[1])):
        model.hf.generate(ids, max_new_tokens=4, do_sample=False, pad_token_id=0)
    assert shapes == [ids.shape[1], 1, 1, 1]


def test_a_change_holds_in_generation() -> None:
    model = build("gpt2")
    ids = model.batch([model.encode("the food is great")]).inputs["input_ids"]
    settings: dict[str, Any] = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    plain = model.hf.generate(ids, **settings)
    with editing(model, 1, lambda h: h.flip(-1)):
        changed = model.hf.generate(ids, **settings)
    assert not torch.equal(plain, changed)
    assert torch.equal(model.hf.generate(ids, **settings), plain)


def test_an_exception_in_the_block_leaves_the_model_as_it_was() -> None:
    model = awkward("bert")
    model.predict(["the food"])
    before = snapshot(model.hf)

    def fail(_states: torch.Tensor) -> torch.Tensor:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), editing(model, 0, fail):
        model.predict(["the food"])
    with pytest.raises(KeyboardInterrupt):
        trace(model, inputs(model, 1), edits=[edits.hidden(fail, 0)])
    assert_same(before, snapshot(model.hf))


def test_another_thread_runs_the_model_unchanged() -> None:
    model = build("bert")
    batch = model.batch(inputs(model, 1))
    with torch.no_grad():
        plain = model.hf(**batch.inputs).logits
    seen: list[torch.Tensor] = []

    def run() -> None:
        with torch.no_grad():
            seen.append(model.hf(**batch.inputs).logits)

    with editing(model, 0, lambda h: h * 0):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert torch.equal(seen[0], plain)


def test_what_is_wrong_is_said() -> None:
    model = build("bert")
    passages = inputs(model, 1)
    with pytest.raises(InputError, match="no layer 2"):
        hidden_at(model, passages, 2)
    with pytest.raises(InputError, match="no layer 7"):
        trace(model, passages, edits=[edits.hidden(lambda h: h, 7)])
    with pytest.raises(InputError, match="must give back a tensor of the same shape"):
        trace(model, passages, edits=[edits.hidden(lambda h: h[:, :1], 0)])
    with pytest.raises(Unsupported, match="no list of blocks"):
        hidden_at(build("single-layer"), passages, 0)
