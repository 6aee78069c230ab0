"""The attention of a model, handed to a bag of words."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

import whence
from tests.audits.planted import CALL, CALLS, SAYS, WORDS, selects
from whence.core.roar import Estimate
from whence.retraining.diagnostic import (
    PADDING,
    PERMUTED,
    BagOfWords,
    Diagnostic,
    _of_kind,
    attention_diagnostic,
)

QUICK = whence.Training(epochs=15, batch=16, rate=2e-2)


@pytest.fixture(scope="module")
def looks_at_the_first() -> whence.Model:
    """A planted model in which the first place calls for attention, whatever word stands there."""
    model = selects(0).model
    embeddings = model.hf.bert.embeddings
    with torch.no_grad():
        embeddings.word_embeddings.weight[:, CALLS : CALLS + 2] = 0
        embeddings.position_embeddings.weight[1, CALLS] = CALL
        embeddings.position_embeddings.weight[1, CALLS + 1] = -CALL
    return model


def texts_by(
    model: whence.Model, place: int, count: int = 120, length: int = 7
) -> list[tuple[str, str]]:
    """Words at random; the one at a place decides the label, by what it says."""
    rng = np.random.default_rng(0)
    table = model.hf.bert.embeddings.word_embeddings.weight
    rows = []
    for _ in range(count):
        words = rng.choice(WORDS, length)
        says = float(table[model.tokenizer.convert_tokens_to_ids(words[place]), SAYS].detach())
        rows.append((" ".join(words), str(int(says > 0))))
    return rows


def test_a_bag_of_words_is_its_formula_and_padding_says_nothing() -> None:
    """Would catch: weights of padding in the softmax, and tanh after the sum."""
    network = BagOfWords(9, 3, seed=0, width=8)
    bags = torch.tensor([[4, 2, 7, PADDING], [5, PADDING, PADDING, PADDING]])
    given = torch.tensor([[0.2, 0.5, 0.3, 0.0], [1.0, 0.0, 0.0, 0.0]])
    weights = {name: value.detach().numpy() for name, value in network.named_parameters()}

    def by_hand(words: list[int], alpha: Any = None) -> Any:
        hidden = []
        for word in words:
            vector = weights["embedding.weight"][word]
            hidden.append(np.tanh(weights["encoder.weight"] @ vector + weights["encoder.bias"]))
        if alpha is None:
            scores = []
            for h in hidden:
                inner = np.tanh(weights["attention.0.weight"] @ h + weights["attention.0.bias"])
                scores.append(float(weights["attention.2.weight"][0] @ inner))
            alpha = np.exp(scores) / np.exp(scores).sum()
        mixed = sum(a * h for a, h in zip(alpha, hidden, strict=True))
        return weights["output.weight"] @ mixed + weights["output.bias"]

    with torch.no_grad():
        by_given, by_own = network(bags, given).numpy(), network(bags).numpy()
    np.testing.assert_allclose(by_given[0], by_hand([4, 2, 7], [0.2, 0.5, 0.3]), atol=1e-6)
    np.testing.assert_allclose(by_own[0], by_hand([4, 2, 7]), atol=1e-6)
    np.testing.assert_allclose(by_own[1], by_hand([5]), atol=1e-6)


def test_weights_that_say_which_word_decides_help(looks_at_the_first: whence.Model) -> None:
    """No bag of words can know which word is the first; the attention does.

    Would catch: weights of the training texts on the held-out ones, and uniform ones as copied.
    """
    model = looks_at_the_first
    before = {name: weight.clone() for name, weight in model.hf.state_dict().items()}
    data = texts_by(model, 0)
    diagnostic = attention_diagnostic(model, data, seeds=2, training=QUICK)
    assert diagnostic.reading == "attention-mean"
    assert min(diagnostic.copied) > 0.95
    assert max(*diagnostic.uniform, *diagnostic.own, *diagnostic.permuted) < 0.85
    assert diagnostic.helps is True
    assert diagnostic.over_own.low > 0
    assert diagnostic.over_uniform.mean == pytest.approx(
        np.mean(diagnostic.copied) - np.mean(diagnostic.uniform)
    )
    assert str(diagnostic).startswith("The weights help a model without context: ")
    for name, weight in model.hf.state_dict().items():
        assert torch.equal(weight, before[name])


def test_weights_on_a_word_that_decides_nothing_do_not_help(
    looks_at_the_first: whence.Model,
) -> None:
    """The same weights, of texts whose last word decides: even ones see it, these do not."""
    data = texts_by(looks_at_the_first, -1, length=3)
    diagnostic = attention_diagnostic(looks_at_the_first, data, seeds=1, training=QUICK)
    assert diagnostic.helps is not True
    assert diagnostic.copied[0] < 0.65
    assert diagnostic.over_uniform.mean < 0
    assert not str(diagnostic).startswith("The weights help")


def test_the_control_has_the_same_weights_on_other_words() -> None:
    """Would catch: a control drawn anew (other weights), or the same order for every seed."""
    copied = [np.array([0.7, 0.1, 0.05, 0.15]), np.array([1.0]), np.linspace(1, 9, 9) / 45]
    one, other = _of_kind(PERMUTED, copied, 0), _of_kind(PERMUTED, copied, 1)
    for weights, moved in zip(copied, one, strict=True):
        np.testing.assert_array_equal(np.sort(weights), np.sort(moved))
    assert not np.array_equal(one[2], copied[2])
    assert not np.array_equal(one[2], other[2])


def test_any_reading_without_a_sign_can_be_handed_over(looks_at_the_first: whence.Model) -> None:
    """One whose settings are given too: of head 0 alone, which looks where both do."""
    data = texts_by(looks_at_the_first, 0, 40)
    quick = whence.Training(epochs=1)
    steps: list[Any] = []
    by_setting = attention_diagnostic(
        looks_at_the_first,
        data,
        reading={"attention": {"head": 0}},
        seeds=1,
        training=quick,
        progress=steps.append,
    )
    plain = attention_diagnostic(looks_at_the_first, data, seeds=1, training=quick)
    assert by_setting.to_dict() == plain.to_dict()
    assert json.loads(json.dumps(plain.to_dict()))["reading"] == "attention-mean"
    assert steps[-1].done == steps[-1].of == len(steps) == 4
    gradients = attention_diagnostic(
        looks_at_the_first, data, reading="gradient-l2", seeds=1, training=quick
    )
    assert gradients.reading == "gradient-l2"


def test_what_is_said_follows_from_both_controls() -> None:
    """Would catch: a gain over even weights alone, which uneven ones of any kind may have."""

    def said(over_uniform: Estimate, over_permuted: Estimate) -> bool | None:
        numbers = (0.7,), (0.6,), (0.6,), (0.6,)
        gains = over_uniform, Estimate(0.1, 0.0, 0.2), over_permuted
        return Diagnostic("attention-mean", *numbers, *gains, 0.5, 30, 10, QUICK).helps

    above, around = Estimate(0.1, 0.02, 0.2), Estimate(0.1, -0.01, 0.2)
    tiny, below = Estimate(0.005, 0.001, 0.009), Estimate(-0.1, -0.2, -0.01)
    assert said(above, above) is True
    assert said(above, around) is None
    assert said(around, above) is None
    assert said(above, below) is False
    assert said(tiny, above) is False


def test_a_few_texts_that_all_get_right_decide_nothing() -> None:
    """The enemy: an interval of no width, by which weights that were no better do not help."""
    texts = [("a fine film", "good"), ("a dull film", "bad")] * 20
    model = whence.train_small(texts)
    diagnostic = attention_diagnostic(model, texts, seeds=1)
    assert diagnostic.copied == diagnostic.uniform == (1.0,)
    assert diagnostic.helps is None
    assert diagnostic.over_uniform.low < -0.2 < 0.2 < diagnostic.over_uniform.high


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"reading": "gradient-x-input"}, "have a sign, and weights have none"),
        ({"reading": {"attention-mean": {}, "rollout": {}}}, "one reading is handed over"),
        ({"reading": "atention-mean"}, "no method named"),
        ({"seeds": 0}, "at least one bag of words"),
    ],
)
def test_what_cannot_be_is_refused(
    looks_at_the_first: whence.Model, settings: dict[str, Any], problem: str
) -> None:
    with pytest.raises(whence.WhenceError, match=problem):
        attention_diagnostic(looks_at_the_first, [("so", "0"), ("no", "1")] * 4, **settings)
