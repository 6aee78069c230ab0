"""Permuted attention against planted models, closed forms and brute force."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest
import torch

from tests.audits.planted import irrelevant, second_layer_only, selects
from tests.families import build, inputs
from tests.tolerance import rounding
from whence.audits.case import Case
from whence.audits.permutation import Permutation, largest_weight
from whence.audits.places import plain_trace
from whence.core.audit import Observation, Place
from whence.core.errors import SettingsError
from whence.core.registry import Needs
from whence.core.request import Ask
from whence.core.target import Target
from whence.trace.edits import replace, uniform
from whence.trace.trace import trace

FEW = Permutation(permutations=15, of_heads=5)


def values(observations: list[Observation], quantity: str) -> dict[Place, float]:
    return {o.place: o.value for o in observations if o.quantity == quantity}


@pytest.mark.parametrize("seed", range(3))
def test_where_attention_selects_the_word_a_permutation_moves_the_output(seed: int) -> None:
    planted = selects(seed)
    for observations in FEW(planted.model, planted.cases):
        changes = values(observations, "change")
        assert changes[Place(0)] > 0.3
        assert changes[Place()] > 0.3
        assert values(observations, "largest")[Place(0)] > 0.9


@pytest.mark.parametrize("seed", range(3))
def test_where_all_values_are_equal_no_permutation_does(seed: int) -> None:
    """Would catch: weights that no longer sum to one."""
    planted = irrelevant(seed)
    for observations in FEW(planted.model, planted.cases):
        assert max(values(observations, "change").values()) < rounding(20, 1.0)
        assert values(observations, "largest")[Place(0)] > 0.9


@pytest.mark.parametrize("seed", range(3))
def test_the_layer_that_matters_is_told_apart(seed: int) -> None:
    """Would catch: an edit of every layer, or of the layer beside the place."""
    planted = second_layer_only(seed)
    for observations in FEW(planted.model, planted.cases):
        changes = values(observations, "change")
        assert changes[Place(0)] < rounding(40, 1.0) < 0.3 < changes[Place(1)]
        assert changes[Place(0, 1)] < rounding(40, 1.0) < 0.1 < changes[Place(1, 1)]


@pytest.mark.parametrize("name", ["bert", "llama", "bart"])
def test_the_identity_changes_nothing(name: str) -> None:
    """Would catch: hidden keys that are given weight, in the path that permutations take."""
    model = build(name)
    case = Case(inputs(model, 1)[0], Target())
    observations = Permutation(permutations=3, of_heads=1)(model, [case])[0]
    controls = {o.control for o in observations if o.quantity == "change"}
    assert len(controls) == 1
    assert max(controls) < rounding(100, 1.0)
    assert values(observations, "change")[Place()] > 1e-4


def test_uniform_attention_cannot_be_permuted() -> None:
    """Queries and keys of zero attend uniformly, and values are all the model has."""
    model = build("bert")
    with torch.no_grad():
        for name, parameter in model.hf.named_parameters():
            if ".query." in name:
                parameter.zero_()
    case = Case(inputs(model, 1)[0], Target())
    observations = FEW(model, [case])[0]
    assert max(values(observations, "change").values()) < rounding(100, 1.0)
    largest = values(observations, "largest")[Place()]
    assert largest == pytest.approx(1 / len(case.passage))


def test_the_mean_logit_over_all_permutations_is_that_of_uniform_attention() -> None:
    """By linearity: each key has each weight equally often (one layer, a linear head).

    Would catch: shuffles that leave out a key, or prefer one.
    """
    model = build("single-layer")
    passage = model.encode("great food")
    seen = trace(model, [passage], needs=Needs.ATTENTION)
    own = seen.attentions["encoder"][0]
    target = seen.targets[0]
    orders = list(permutations(range(own.shape[-1])))
    logits = []
    for order in orders:
        moved = trace(model, [Ask(passage, target)], edits=[replace(own[..., list(order)])])
        logits.append(moved.logits)
    mean = torch.cat(logits).double().mean(0)
    flat = trace(model, [Ask(passage, target)], edits=[uniform()]).logits[0].double()
    torch.testing.assert_close(mean, flat, atol=rounding(len(orders), flat), rtol=0)
    assert float((seen.logits[0] - flat).abs().max()) > 100 * rounding(len(orders), flat)


def test_the_median_is_that_of_all_permutations() -> None:
    """Brute force over the orders of one row, as only [CLS] is read: the sample comes near it."""
    planted = selects(0)
    model, case = planted.model, planted.cases[0]
    plain = plain_trace(model, case)
    own = plain.attentions["encoder"][0][0]
    keys = own.shape[-1]
    # both heads attend alike, nearly all weight on one key: where it lands decides
    changes = []
    for i in range(keys):
        for j in range(keys):
            weights = torch.stack([_moved(own[0], i), _moved(own[1], j)])
            ask = Ask(plain.passages[0], plain.targets[0])
            logits = trace(model, [ask], edits=[replace(weights)]).logits
            changes.append(float(model.change(plain.logits.double(), logits.double())[0]))
    (observations,) = Permutation(permutations=150, of_heads=1)(model, [case])
    observed = values(observations, "change")[Place(0)]
    low, high = np.quantile(changes, [0.4, 0.6])
    assert low - 0.03 <= observed <= high + 0.03


def test_one_order_of_three_that_moves_the_output_is_not_what_an_order_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The median of the orders, as the paper has it. Would catch: their mean, or the largest."""
    planted = selects(0)

    def one_of_three(_plain: object, places: Sequence[Place], _change: object) -> np.ndarray:
        met: Counter[Place] = Counter()
        changes = []
        for number, place in enumerate(places):
            met[place] += number > 0  # the first is the identity
            changes.append([0.2, 0.01, 0.9, 0.02][met[place]] if number else 0.2)
        return np.array(changes)

    monkeypatch.setattr("whence.audits.permutation.changes_at", one_of_three)
    (observations,) = Permutation(permutations=3, of_heads=3)(planted.model, planted.cases[:1])
    assert set(values(observations, "change").values()) == {0.02}
    assert {o.control for o in observations if o.quantity == "change"} == {0.2}


def _moved(weights: torch.Tensor, to: int) -> torch.Tensor:
    """The largest weight of each row exchanged with that of a key."""
    moved = weights.clone()
    for row in moved:
        top = int(row.argmax())
        row[[top, to]] = row[[to, top]]
    return moved


def test_another_seed_gives_other_permutations_and_the_same_seed_the_same() -> None:
    model = build("bert")
    passage = inputs(model, 1)[0]
    test = Permutation(permutations=3, of_heads=1)
    first, again, other = (test(model, [Case(passage, Target(), seed=s)])[0] for s in (0, 0, 1))
    assert first == again
    assert values(first, "change") != values(other, "change")


def test_the_largest_weight_is_of_the_row_that_is_read() -> None:
    """Would catch: a mean over all rows of the last layer."""
    model = build("bert")
    plain = plain_trace(model, Case(inputs(model, 1)[0], Target()))
    last = plain.attentions["encoder"][1][0]
    assert largest_weight(plain, Place(1, 2)) == pytest.approx(float(last[2, 0].max()))
    first = plain.attentions["encoder"][0][0]
    assert largest_weight(plain, Place(0)) == pytest.approx(float(first.amax(-1).mean()))


def test_no_permutation_is_refused() -> None:
    with pytest.raises(SettingsError, match="permutations=0"):
        Permutation(permutations=0)
