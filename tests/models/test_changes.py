"""Copies with other weights: the first model stays as it was, and each copy is what it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from tests.choices import at_once
from tests.families import FAMILIES, MAIN, build, inputs
from whence.core.errors import Unsupported
from whence.models import changes
from whence.models.changes import NoisyEmbeddings, Randomised, changed_model, copy_of
from whence.models.conduct import tolerance
from whence.models.model import Model
from whence.models.rewired import (
    PermutedHeads,
    PermutedNeurons,
    Rewiring,
    ScaledQueries,
    ScaledValues,
)

REWIRED = (PermutedHeads(1), PermutedNeurons(1), ScaledQueries(3.0), ScaledValues(1))
# whose names, or whose way to attend, do not allow it: refused in one line, never compared
REFUSED = {
    "modernbert": (PermutedNeurons,),
    "modernbert-mean": (PermutedNeurons,),
    "gpt-oss": (PermutedNeurons,),
    "deberta-v2": (PermutedHeads, ScaledQueries),
    "single-layer": (PermutedHeads, PermutedNeurons, ScaledQueries, ScaledValues),
}


def weights_of(model: Model) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in model.hf.named_parameters()}


@pytest.mark.parametrize("family", at_once(FAMILIES, MAIN))
def test_a_rewired_copy_says_the_same_with_other_weights(family: str) -> None:
    """The enemies: a copy that is no copy, and heads of grouped queries that leave their keys."""
    model = build(family)
    before = weights_of(model)
    texts = inputs(model)
    said = model.logits(texts)
    for change in REWIRED:
        if isinstance(change, REFUSED.get(family, ())):
            with pytest.raises(Unsupported, match=r"not known here|does not keep the function"):
                changed_model(model, change)
            continue
        copy, _ = changed_model(model, change)
        largest = np.abs(said).max()
        assert np.abs(copy.logits(texts) - said).max() <= tolerance(model.dtype) * largest
        now = weights_of(copy)
        assert any(not now[name].equal(before[name]) for name in before), change
    for name, parameter in model.hf.named_parameters():
        assert parameter.equal(before[name]), name


def test_every_attention_layer_is_rewired() -> None:
    """The enemy finds the first layer only, and compares nearly the same weights."""
    model = build("llama")
    copy, _ = changed_model(model, PermutedHeads(1))
    own, other = weights_of(model), weights_of(copy)
    for layer in (0, 1):
        for part in ("q_proj", "k_proj", "v_proj", "o_proj"):
            name = f"model.layers.{layer}.self_attn.{part}.weight"
            assert not own[name].equal(other[name]), name
            torch.testing.assert_close(own[name].sum(), other[name].sum())


@dataclass(frozen=True)
class Wrong(Rewiring):
    """Claims to keep the function, and does not."""

    keeps_function: ClassVar[bool] = True

    def __call__(self, model: Model) -> Model:
        copy = copy_of(model)
        with torch.no_grad():
            for parameter in copy.hf.parameters():
                parameter.mul_(1.01)
        return copy


def test_a_copy_that_computes_something_else_is_refused() -> None:
    with pytest.raises(Unsupported, match=r"Wrong\(\) does not keep the function of Bert"):
        changed_model(build("bert"), Wrong())


def test_randomised_from_the_output_down() -> None:
    """The head first and the embeddings last; each tensor keeps its numbers."""
    model = build("bert")
    own = weights_of(model)
    names = list(own)
    changed_before: set[str] = set()
    for share in (0.1, 0.5, 1.0):
        now = weights_of(changed_model(model, Randomised(share, seed=5))[0])
        changed = {name for name in names if not now[name].equal(own[name])}
        assert changed_before < changed
        changed_before = changed
        for name in names:
            kept = own[name].reshape(-1).sort().values
            torch.testing.assert_close(now[name].reshape(-1).sort().values, kept, rtol=0, atol=0)
        has_table = "bert.embeddings.word_embeddings.weight" in changed
        assert has_table == (share == 1.0)
        assert "classifier.weight" in changed


def test_noise_moves_the_text_and_not_a_tied_head() -> None:
    """The enemy puts noise on the table that a language model also reads its output from."""
    model = build("gpt2")
    change = NoisyEmbeddings(0.1, seed=2)
    copy, _ = changed_model(model, change)
    assert copy.hf.lm_head.weight.equal(model.hf.lm_head.weight)
    table, moved = (one.hf.transformer.wte.weight.detach() for one in (model, copy))
    spread = float((moved - table).std() / table.std())
    assert spread == pytest.approx(0.1, rel=0.05)

    passage = inputs(model)[0]
    apart = moved[passage.ids.copy()] - table[passage.ids.copy()]
    expected = float(apart.norm() / table[passage.ids.copy()].norm())
    assert change.moved(model, copy, passage) == pytest.approx(expected, rel=1e-6)


def test_equal_changes_are_made_once_and_no_more_are_kept_than_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = build("bert")
    first, _ = changed_model(model, NoisyEmbeddings(0.1, 1))
    assert changed_model(model, NoisyEmbeddings(0.1, 1))[0] is first
    assert changed_model(model, NoisyEmbeddings(0.1, 2))[0] is not first
    monkeypatch.setattr(changes, "KEPT_BYTES", 10)
    changed_model(model, NoisyEmbeddings(0.1, 3))
    assert changed_model(model, NoisyEmbeddings(0.1, 1))[0] is not first


def test_a_model_that_learnt_more_gets_a_new_copy() -> None:
    model: Any = build("bert")
    first, _ = changed_model(model, PermutedHeads(1))
    with torch.no_grad():
        model.hf.classifier.weight.add_(1.0)
    second, _ = changed_model(model, PermutedHeads(1))
    assert second is not first
    assert second.hf.classifier.weight.equal(model.hf.classifier.weight)
