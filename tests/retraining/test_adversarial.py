"""Copies of a classifier that answer alike and attend elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import log

import numpy as np
import pytest
import torch

import whence
from tests.audits.planted import Planted, irrelevant, selects
from whence.core.errors import InputError
from whence.core.roar import Estimate
from whence.models.changes import copy_of
from whence.retraining.adversarial import (
    Adversarial,
    Opponent,
    _Measured,
    _opponents,
    adversarial_model,
    opposed,
)

QUICK = whence.Training(epochs=20, batch=16, rate=3e-2, decay=0.0)
WORDS_ALONE = [("a fine film", "good"), ("a dull film", "bad")] * 20


@pytest.fixture(scope="module")
def model() -> whence.Model:
    return whence.train_small(WORDS_ALONE)


def texts_of(planted: Planted, count: int, seed: int) -> Iterator[tuple[str, str]]:
    """One word that calls among others that say anything, with the label that the model gives."""
    rng = np.random.default_rng(seed)
    split = [case.passage.text.split() for case in planted.cases]
    callers = [words[at - 1] for words, at in zip(split, planted.callers, strict=True)]
    others = sorted({word for words in split for word in words} - set(callers))
    for _ in range(count):
        words = rng.permutation(others)[:5].tolist()
        words.insert(int(rng.integers(6)), str(rng.choice(callers)))
        text = " ".join(words)
        yield text, planted.model.predict([text])[0].label


def weights_of(model: whence.Model) -> dict[str, torch.Tensor]:
    return {name: weight.clone() for name, weight in model.hf.state_dict().items()}


def test_the_loss_is_its_formula_over_the_row_that_is_read(model: whence.Model) -> None:
    """By hand from ``output_attentions``, text by text, without padding.

    Would catch: KL the other way round, half of the TVD, a sum over texts in place of the mean,
    padding or rows that nobody reads in the divergence (one layer: only [CLS] is read).
    """
    passages = [model.encode("a fine film"), model.encode("dull"), model.encode("a dull film a a")]
    copied = copy_of(model)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in copied.hf.parameters():
            weight += 0.1 * torch.randn(weight.shape, generator=generator)

    values = []
    for passage in passages:
        seen = []
        for each in (copied, model):
            hf = copy_of(each).hf
            hf.set_attn_implementation("eager")
            with torch.no_grad():
                seen.append(hf(**model.batch([passage]).inputs, output_attentions=True))
        p, q = (each.logits[0].softmax(-1) for each in seen)
        a, b = (each.attentions[0][0, :, 0] for each in seen)  # head, key: the row of [CLS]
        kl = (a * (a / b).log()).sum(-1).mean()
        values.append(float((p - q).abs().sum() / 2 - 0.7 * kl))

    with torch.enable_grad():
        loss = opposed(model, copied, passages, 0.7)(0)(torch.arange(3))
        loss.backward()
    assert float(loss.detach()) == pytest.approx(np.mean(values), rel=1e-4)
    key = copied.hf.bert.encoder.layer[0].attention.self.key.weight
    assert float(key.grad.abs().max()) > 0  # attention is in the graph
    assert all(weight.grad is None for weight in model.hf.parameters())


def test_where_no_value_depends_on_attention_another_one_does() -> None:
    """λ = 0 stays near; the larger λ, the further attention goes; the model is left alone.

    Would catch: copies that begin at the model's very weights, where the loss has no slope.
    """
    planted = irrelevant(0)
    data = list(texts_of(planted, 40, 0))
    before, implementation = weights_of(planted.model), planted.model.config._attn_implementation
    adversarial = adversarial_model(planted.model, data, strengths=(0.03, 3), training=QUICK)
    control, weak, strong = adversarial.copies
    assert control.strength == 0
    assert control.jsd.high < 0.01
    assert control.jsd.high < weak.jsd.low
    assert weak.jsd.high < strong.jsd.low
    assert all(each.tvd.high < 0.02 for each in adversarial.copies)
    assert adversarial.furthest is strong
    assert str(adversarial).startswith("Another attention would do")

    for name, weight in planted.model.hf.state_dict().items():
        assert torch.equal(weight, before[name])
    assert planted.model.config._attn_implementation == implementation


def test_where_attention_selects_the_word_the_output_goes_with_it() -> None:
    """The strength that moves attention freely above costs the output here."""
    planted = selects(0)
    data = list(texts_of(planted, 40, 0))
    adversarial = adversarial_model(planted.model, data, strengths=(0.3, 3), training=QUICK)
    control, weak, strong = adversarial.copies
    assert control.tvd.high < 0.05
    assert weak.jsd.high < 0.01
    assert strong.tvd.low > 0.1
    assert strong.jsd.mean > 0.5
    assert adversarial.furthest is not strong
    assert str(adversarial).startswith("No very different attention was reached")


def test_the_same_seed_gives_the_same_numbers_and_steps_are_told(model: whence.Model) -> None:
    steps: list[whence.core.progress.Step] = []
    training = whence.Training(epochs=2, batch=16, rate=1e-3, decay=0.0)
    one = adversarial_model(
        model, WORDS_ALONE, strengths=(0.1,), training=training, progress=steps.append
    )
    other = adversarial_model(model, WORDS_ALONE, strengths=(0, 0.1), training=training)
    assert one.to_dict() == other.to_dict()
    assert json.loads(json.dumps(one.to_dict()))["copies"][1]["strength"] == 0.1
    assert [step.done for step in steps] == list(range(1, 9))
    assert steps[-1].of == 8
    assert 0 < one.shuffled.mean < log(2)


def numbers(strength: float, tvd: float, jsd: float) -> Opponent:
    def surely(mean: float) -> Estimate:
        return Estimate(mean, mean - 0.01, mean + 0.01)

    return Opponent(strength, surely(tvd), surely(jsd), 0.9)


def test_what_is_said_follows_from_the_furthest_copy_that_keeps_the_output() -> None:
    """Would catch: the copy with the most different attention, whatever became of the output."""

    def answer(*copies: Opponent) -> str:
        said = Adversarial(copies, Estimate(0.3, 0.2, 0.4), 0.9, 0.5, 30, 10, QUICK)
        return str(said).split("\n")[0]

    assert answer(numbers(0.1, 0.03, 0.1), numbers(1.0, 0.4, 0.6)) == (
        "No very different attention was reached: the furthest copy that gives the same output "
        "differs by 0.100 nats of at most 0.693 (λ = 0.1)."
    )
    assert answer(numbers(0.1, 0.03, 0.5)).startswith("Another attention would do")
    assert answer(numbers(0.1, 0.03, 0.35)).startswith("Undecided: the furthest copy")
    # at 0.045 the interval holds 0.05
    assert answer(numbers(0.0, 0.01, 0.01), numbers(1.0, 0.045, 0.5)).startswith(
        "Undecided: no copy that was pushed away"
    )
    assert answer(numbers(0.0, 0.045, 0.01)).startswith("Undecided: not even the control")


@pytest.mark.parametrize("strengths", [(-0.1,), (float("nan"),), (float("inf"),)])
def test_strengths_that_are_none_are_refused(
    model: whence.Model, strengths: tuple[float, ...]
) -> None:
    with pytest.raises(InputError, match="finite numbers from 0 upwards"):
        adversarial_model(model, WORDS_ALONE, strengths=strengths)


def test_a_label_that_the_model_does_not_have_is_refused(model: whence.Model) -> None:
    with pytest.raises(InputError, match=r"'odd' \(.* texts\) is no label of this model"):
        adversarial_model(model, [*WORDS_ALONE, *[("an odd film", "odd")] * 9])


def test_intervals_of_all_copies_hold_together() -> None:
    """The furthest of them is picked; the enemy: an interval for each by itself."""
    rng = np.random.default_rng(0)
    measured = [
        _Measured(rng.uniform(0, 0.1, 40), rng.uniform(0, 0.6, 40), np.ones(40, dtype=bool))
        for _ in range(8)
    ]
    together = _opponents([float(i) for i in range(8)], measured, 0)
    for one, number in zip(together, measured, strict=True):
        (alone,) = _opponents([0.0], [number], 0)
        assert one.tvd.high - one.tvd.low > 1.1 * (alone.tvd.high - alone.tvd.low)
        assert one.jsd.high - one.jsd.low > 1.1 * (alone.jsd.high - alone.jsd.low)
        assert one.jsd.mean == pytest.approx(number.jsd.mean())
