"""Copies of a classifier with attention frozen to uniform."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import whence
from tests.families import build
from whence.core.errors import InputError
from whence.core.registry import Needs
from whence.retraining.frozen import _between_seeds, frozen_attention, with_uniform
from whence.theory.divergence import jsd
from whence.trace.edits import uniform
from whence.trace.trace import trace


@pytest.fixture(scope="module")
def words_alone() -> list[tuple[str, str]]:
    return [("a fine film", "good"), ("a dull film", "bad")] * 20


@pytest.fixture(scope="module")
def model(words_alone: list[tuple[str, str]]) -> whence.Model:
    return whence.train_small(words_alone)


def test_a_pass_with_uniform_attention_is_the_edit_and_has_gradients(model: whence.Model) -> None:
    passage = model.encode("a fine film")
    inputs = model.batch([passage]).inputs
    own = model.config._attn_implementation
    with torch.enable_grad():
        logits = with_uniform(model.hf)(**inputs).logits
    edited = trace(model, [passage], edits=[uniform()]).logits
    torch.testing.assert_close(logits.detach(), edited)
    assert logits.requires_grad
    assert model.config._attn_implementation == own
    plain = trace(model, [passage]).logits
    assert not torch.allclose(edited, plain, atol=1e-4)  # else this test could not fail


def test_words_alone_need_no_attention(
    model: whence.Model, words_alone: list[tuple[str, str]]
) -> None:
    before = {name: weight.clone() for name, weight in model.hf.state_dict().items()}
    frozen = frozen_attention(
        model, words_alone, seeds=2, training=whence.Training(epochs=25, rate=1e-3)
    )
    assert frozen.free == frozen.uniform == (1.0, 1.0)
    assert frozen.lost.mean == 0.0
    assert frozen.between_seeds is not None
    assert 0 < frozen.between_seeds.mean < np.log(2)
    held_out = frozen.held_out
    assert frozen.free_mean.mean == pytest.approx(frozen.free_mean.high) == 1.0
    assert frozen.free_mean.low == pytest.approx(held_out / (held_out + 1.959964**2))
    assert "are right, with free attention 100.0 % [72.2, 100.0]" in str(frozen)
    for name, weight in model.hf.state_dict().items():
        assert torch.equal(weight, before[name])


def test_before_any_training_it_is_the_edit(model: whence.Model) -> None:
    """At a rate of nearly nothing the copies are the model, with and without its attention."""
    words = ["fine", "dull", "film", "a", "fine dull", "dull dull fine", "film a", "fine film a a"]
    data = [(text, label) for text in words for label in ("good", "bad")]
    still = whence.Training(epochs=1, rate=1e-12, decay=0.0)
    frozen = frozen_attention(model, data, seeds=1, training=still, held_out=data)
    truth = np.array([int(label == model.labels[1]) for _, label in data])
    passages = [model.encode(text) for text, _ in data]
    of_free = model.logits(passages).argmax(1) == truth
    edited = [trace(model, [p], edits=[uniform()]).logits[0] for p in passages]
    of_uniform = torch.stack(edited).argmax(1).numpy() == truth
    assert frozen.free == (of_free.mean(),)
    assert frozen.uniform == (of_uniform.mean(),)
    assert frozen.lost.mean == pytest.approx(of_free.mean() - of_uniform.mean())
    assert frozen.between_seeds is None


def test_seeds_differ_by_the_same_mean_as_the_adversary() -> None:
    """Of the last layer the row of [CLS] counts alone, which is read. The enemy: all rows."""
    one, other = build("bert"), build("bert", seed=5)
    passages = [one.encode(text) for text in ("the food is great", "not bad", "bad prices")]
    expected, of_all_rows = [], []
    for passage in passages:
        maps = [
            trace(m, [passage], needs=Needs.ATTENTION).attentions["encoder"] for m in (one, other)
        ]
        first, last = (jsd(p[0], q[0]) for p, q in zip(*maps, strict=True))
        of_all_rows.append(float(first.mean() + last.mean()) / 2)
        expected.append(float(first.mean() + last[:, 0].mean()) / 2)
    found = _between_seeds([one, other], passages, 0)
    assert found is not None
    assert found.mean == pytest.approx(np.mean(expected), rel=1e-5)
    assert abs(found.mean - np.mean(of_all_rows)) > 1e-4
    three = _between_seeds([one, other, one], passages, 0)
    assert three is not None
    assert three.mean == pytest.approx(found.mean * 2 / 3, rel=1e-5)


def test_no_copies_are_refused(model: whence.Model, words_alone: list[tuple[str, str]]) -> None:
    with pytest.raises(InputError, match="at least one copy"):
        frozen_attention(model, words_alone, seeds=0)
