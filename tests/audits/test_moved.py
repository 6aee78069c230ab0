"""How far the output moved, of what was asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.families import build, inputs
from whence.audits.adversary import Adversary
from whence.audits.case import AuditTest, Case
from whence.audits.moved import output_moved, pair_asked_about
from whence.audits.permutation import Permutation
from whence.audits.places import layers_of, plain_trace
from whence.audits.uniform import Uniform
from whence.core.audit import Place
from whence.core.request import Ask
from whence.core.target import Target
from whence.models.model import Model
from whence.trace.edits import Edit, flattened
from whence.trace.trace import trace

ONE, OTHER = 7, 11


def contrast(model: Model, count: int) -> list[Case]:
    """Texts of which is asked why one word follows rather than another."""
    pair = Target(label=model.labels[ONE], against=model.labels[OTHER])
    cases = []
    for passage in inputs(model, count):
        resolved = model.resolve(pair, model.logits([passage])[0], passage)
        cases.append(Case(passage, resolved))
    return cases


def share_of_one(logits: torch.Tensor) -> torch.Tensor:
    """P(A) / (P(A) + P(B)), from the probabilities of the whole vocabulary."""
    probabilities = logits.double().softmax(-1)
    return probabilities[:, ONE] / (probabilities[:, ONE] + probabilities[:, OTHER])


def test_of_a_contrast_it_is_the_share_of_the_one_among_the_two() -> None:
    """Would catch: the whole vocabulary, of which most moves without the choice."""
    model = build("gpt2")
    rng = torch.Generator().manual_seed(0)
    before, after = torch.randn(2, 5, len(model.labels), generator=rng)
    targets = [Target(index=ONE, against_index=OTHER)] * 5
    moved = output_moved(model, targets, before, after)
    expected = (share_of_one(after) - share_of_one(before)).abs()
    np.testing.assert_allclose(moved, expected, atol=1e-6)
    assert (moved - model.change(before, after)).abs().max() > 0.1


def test_what_moves_both_words_alike_moves_no_choice() -> None:
    model = build("gpt2")
    before = torch.zeros(1, len(model.labels))
    after = before.clone()
    after[:, [ONE, OTHER]] = 9.0
    targets = [Target(index=ONE, against_index=OTHER)]
    assert model.change(before, after) > 0.9
    assert output_moved(model, targets, before, after) == 0


def test_each_row_is_asked_its_own_question() -> None:
    """Would catch: the first target's words for all rows, and a contrast for rows without one."""
    model = build("gpt2")
    rng = torch.Generator().manual_seed(1)
    before, after = torch.randn(2, 3, len(model.labels), generator=rng)
    targets = [
        Target(index=ONE, against_index=OTHER),
        Target(index=ONE),
        Target(index=OTHER, against_index=3),
    ]
    together = output_moved(model, targets, before, after)
    for row, target in enumerate(targets):
        alone = output_moved(model, [target], before[row : row + 1], after[row : row + 1])
        torch.testing.assert_close(together[row : row + 1], alone)
    assert together[1] == model.change(before, after)[1]


def test_labels_that_do_not_compete_have_no_contrast() -> None:
    model = build("bert")
    target = Target(index=0, against_index=1)
    assert pair_asked_about(model, target) == (0, 1)
    assert pair_asked_about(model, replace(target, against_index=None)) is None


def test_uniform_attention_moves_the_choice_between_the_two_words() -> None:
    """Derived anew by an edit of one layer; the enemy is the change of the whole vocabulary."""
    model = build("gpt2")
    for case in contrast(model, 2):
        (observed,) = Uniform()(model, [case])
        plain = plain_trace(model, case)
        (layer,) = layers_of(plain, Place(0))
        edit = Edit("even", "attention", flattened, layer.index, None, layer.kind)
        changed = trace(model, [Ask(case.passage, case.target)], edits=[edit])
        expected = (share_of_one(changed.logits) - share_of_one(plain.logits)).abs()
        (found,) = [one.value for one in observed if one.place == Place(0)]
        assert found == pytest.approx(float(expected), abs=1e-6)
        assert abs(found - float(model.change(plain.logits, changed.logits))) > 1e-4


@pytest.mark.parametrize("test", [Permutation(3, 1), Adversary(steps=4)])
def test_every_test_of_attention_asks_the_same_question(test: AuditTest) -> None:
    """Two words that are always equally likely: no attention moves the choice, and all the rest."""
    model = build("gpt2")
    words = model.hf.get_output_embeddings().weight
    with torch.no_grad():
        words[OTHER] = words[ONE]
    (case,) = contrast(model, 1)
    asked = [one.value for one in test(model, [case])[0] if one.quantity == "change"]
    assert asked
    assert max(asked) == 0
    unasked = replace(case, target=replace(case.target, against=None, against_index=None))
    whole = [one.value for one in test(model, [unasked])[0] if one.quantity == "change"]
    assert max(whole) > 1e-4
