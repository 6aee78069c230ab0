"""Head removal: what the task loses without each head, on the data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf

from tests import misbehaving
from tests import tokenizers as tok
from tests.audits.removing import (
    PROJECTIONS,
    WIDTH,
    cases_of,
    counted,
    cross_entropies,
    cut_out,
    of_whole,
    table,
)
from tests.families import LABELS, SMALL, build, inputs
from tests.tolerance import rounding
from whence.audits.case import AuditTest, Case
from whence.audits.heads import HeadRemoval
from whence.core.audit import Place
from whence.core.errors import InputError, Unsupported
from whence.core.pruning import hurting
from whence.core.target import Target
from whence.models.load import load
from whence.models.model import Model
from whence.trace.effects import without_sets

HEADS = [Place(layer, head) for layer in range(2) for head in range(4)]
CLOSE = rounding(40, 5.0)  # the longest sum has 40 terms, and logits are of this size


def test_it_is_a_test_of_an_audit() -> None:
    assert isinstance(HeadRemoval(), AuditTest)


@pytest.mark.parametrize("family", PROJECTIONS)
def test_the_loss_without_a_head_is_that_of_a_model_whose_weights_lack_it(family: str) -> None:
    """The head is cut out of the weights; the enemies: another head, a head's uniform attention,
    and a loss of another label than the true one."""
    model = build(family)
    passages = inputs(model, 3)
    labels = [1, 2, 0]
    cases = [replace(c, label=label) for c, label in zip(cases_of(model), labels, strict=True)]
    observations = HeadRemoval()(model, cases)

    whole = model.logits(passages)
    np.testing.assert_allclose(
        of_whole(observations, "whole-loss"), cross_entropies(whole, labels), atol=CLOSE
    )
    expected, right = [], []
    for place in HEADS:
        cut = cut_out(model, family, [place]).logits(passages)
        expected.append(cross_entropies(cut, labels) - cross_entropies(whole, labels))
        right.append(cut.argmax(1) == labels)
    changes = table(observations, "loss")
    np.testing.assert_allclose(changes, np.transpose(expected), atol=CLOSE)
    assert np.array_equal(table(observations, "right"), np.transpose(right))
    # no two heads do the same, so that another one would be seen
    assert np.diff(np.sort(changes[0])).min() > 2 * CLOSE


@pytest.mark.parametrize("family", PROJECTIONS)
def test_a_head_whose_output_goes_nowhere_changes_nothing_at_all(family: str) -> None:
    """Exactly 0, in float32; the enemy: last digits that many texts would make significant."""
    idle = Place(1, 2)
    model = cut_out(build(family), family, [idle])
    changes = table(HeadRemoval()(model, cases_of(model)), "loss")
    column = HEADS.index(idle)
    assert (changes[:, column] == 0.0).all()
    assert (np.delete(changes, column, axis=1) != 0.0).any(0).all()


def test_without_a_label_the_truth_is_what_the_whole_model_predicts() -> None:
    """The enemy takes the target for the truth: here it is another label."""
    model = build("bert")
    passages = inputs(model, 3)
    predicted = model.logits(passages).argmax(1)
    other = [Target(label=model.labels[i], index=i) for i in ((predicted + 1) % 3).tolist()]
    cases = [Case(p, target) for p, target in zip(passages, other, strict=True)]
    observations = HeadRemoval()(model, cases)
    assert (of_whole(observations, "whole-right") == 1.0).all()
    np.testing.assert_allclose(
        of_whole(observations, "whole-loss"),
        cross_entropies(model.logits(passages), predicted.tolist()),
        atol=CLOSE,
    )


def test_a_language_model_with_a_contrast_chooses_between_its_two_words() -> None:
    """As on minimal pairs; the enemy: the whole vocabulary, where neither word is predicted."""
    model = build("gpt2")
    passages = inputs(model, 3)
    logits = model.logits(passages)
    one, other = 7, 11
    pair = Target(label=model.labels[one], against=model.labels[other])
    cases = []
    for passage, row in zip(passages, logits, strict=True):
        cases.append(Case(passage, model.resolve(pair, row, passage), label=one))
    observations = HeadRemoval()(model, cases)
    np.testing.assert_allclose(
        of_whole(observations, "whole-loss"),
        cross_entropies(logits, [one] * 3, among=[one, other]),
        atol=CLOSE,
    )
    assert np.array_equal(of_whole(observations, "whole-right"), logits[:, one] > logits[:, other])
    assert (logits.argmax(1) != one).all()
    # without a label, the truth is the likelier of the two
    unlabelled = [replace(case, label=None) for case in cases]
    assert (of_whole(HeadRemoval()(model, unlabelled), "whole-right") == 1.0).all()


def bert(**config: Any) -> Model:
    torch.manual_seed(0)
    settings = {**SMALL, "vocab_size": len(tok.wordpiece()), "pad_token_id": 0, **config}
    hf = tf.BertForSequenceClassification(tf.BertConfig(**settings)).eval()
    with torch.no_grad():
        for parameter in hf.parameters():
            if parameter.ndim >= 2:
                parameter.mul_(4.0)
    return load(hf, tokenizer=tok.wordpiece())


def test_a_regression_has_squared_errors_and_is_never_right() -> None:
    model = bert(num_labels=1)
    passages = inputs(model, 3)
    cases = [replace(case, label=2) for case in cases_of(model)]
    observations = HeadRemoval()(model, cases)
    whole = model.logits(passages)[:, 0]
    np.testing.assert_allclose(of_whole(observations, "whole-loss"), (whole - 2) ** 2, atol=CLOSE)
    cut = cut_out(model, "bert", [HEADS[5]]).logits(passages)[:, 0]
    np.testing.assert_allclose(
        table(observations, "loss")[:, 5], (cut - 2) ** 2 - (whole - 2) ** 2, atol=CLOSE
    )
    assert {o.quantity for of_text in observations for o in of_text} == {"loss", "whole-loss"}
    # without a number, how far the output moves
    moved = HeadRemoval()(model, cases_of(model))
    assert (of_whole(moved, "whole-loss") == 0.0).all()
    np.testing.assert_allclose(table(moved, "loss")[:, 5], (cut - whole) ** 2, atol=CLOSE)


def test_labels_that_may_all_hold_have_their_own_yes_or_no() -> None:
    """The enemy: a softmax, in which labels that hold together compete."""
    model = bert(**LABELS, problem_type="multi_label_classification")
    logits = torch.from_numpy(model.logits(inputs(model, 3)))
    cases = [replace(case, label=1) for case in cases_of(model)]
    observations = HeadRemoval()(model, cases)
    expected = -torch.nn.functional.logsigmoid(logits[:, 1]).numpy()
    np.testing.assert_allclose(of_whole(observations, "whole-loss"), expected, atol=CLOSE)
    assert np.array_equal(of_whole(observations, "whole-right"), (logits[:, 1] > 0).numpy())


def test_every_head_of_an_encoder_decoder_has_its_kind() -> None:
    model = build("bart-classifier")
    (observations,) = HeadRemoval()(model, cases_of(model)[:1])
    places = {o.place for o in observations if o.place.head is not None}
    expected = set()
    for kind in ("encoder", "decoder", "cross"):
        expected |= {Place(layer, head, kind) for layer in range(2) for head in range(4)}
    assert places == expected
    assert len(observations) == 2 * (1 + 24)


def test_as_many_passes_as_the_price_says_in_few_batches() -> None:
    model = build("bert")
    cases = cases_of(model)
    with counted(model) as batches:
        HeadRemoval()(model, cases)
    price = HeadRemoval().passes(heads=8, wholes=3)
    assert sum(batches) == len(cases) * price.forwards == 3 * 9
    assert price.backwards == 0
    assert len(batches) == 2  # the whole model on all texts, then all heads of all texts

    with counted(model) as batches:
        HeadRemoval(tokens=40)(model, cases)
    assert sum(batches) == 27
    assert len(batches) > 10


def test_how_texts_are_batched_changes_no_value() -> None:
    """One by one, as together; the enemy: an edit that takes the wrong row of a sorted batch."""
    model = build("bert")
    cases = cases_of(model)
    together = table(HeadRemoval()(model, cases), "loss")
    alone = table(HeadRemoval(tokens=1)(model, cases), "loss")
    np.testing.assert_allclose(together, alone, atol=CLOSE)
    backwards = table(HeadRemoval()(model, cases[::-1]), "loss")
    np.testing.assert_allclose(together, backwards[::-1], atol=CLOSE)
    assert np.abs(together[0] - together[1]).max() > 10 * CLOSE


def test_a_model_whose_texts_disturb_each_other_runs_them_one_by_one() -> None:
    model = misbehaving.build(misbehaving.MatesMatter)
    cases = cases_of(model, [model.encode("not bad"), model.encode("the food is great")])
    with counted(model) as batches:
        HeadRemoval()(model, cases)
    assert set(batches) == {1}
    heads = model.config.num_hidden_layers * model.config.num_attention_heads
    assert len(batches) == 2 * (1 + heads)


def test_models_and_labels_that_cannot_be_audited_are_refused_by_name() -> None:
    model = build("deberta-v2")
    with pytest.raises(
        Unsupported, match=r"DebertaV2ForSequenceClassification .* cannot be edited"
    ):
        HeadRemoval()(model, cases_of(model))
    model = build("bert")
    with pytest.raises(InputError, match="label 3 is outside the 3 labels"):
        HeadRemoval()(model, [replace(cases_of(model)[0], label=3)])
    assert HeadRemoval()(model, []) == []


def test_only_single_heads_are_switched_off() -> None:
    with pytest.raises(InputError, match="layer 1 is no single head"):
        without_sets([{Place(1)}])


def planted_to_hurt(head: int, label: int, push: float) -> Model:
    """The last layer's head adds the same vector to every text, against the label.

    Its values are constant, so that it gives the same whatever it looks at; its projection turns
    them into the direction in which the label's logit falls.
    """
    model = build("bert", seed=3)
    layer = model.hf.bert.encoder.layer[1].attention
    columns = slice(head * WIDTH, (head + 1) * WIDTH)
    against = -(model.hf.classifier.weight[label] @ model.hf.bert.pooler.dense.weight)
    with torch.no_grad():
        layer.self.value.weight[columns] = 0
        layer.self.value.bias[columns] = 1.0
        layer.output.dense.weight[:, columns] = push * (against / against.norm())[:, None] / WIDTH
    return model


def test_a_head_that_is_planted_to_hurt_is_found_and_confirmed() -> None:
    words = ["the", "food", "is", "great", "not", "bad", "prices", "dull", "like", "it"]
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words, size=rng.integers(3, 7))) for _ in range(40)]
    model = planted_to_hurt(head=1, label=0, push=6.0)
    passages = [model.encode(text) for text in texts]
    cases = [replace(case, label=0) for case in cases_of(model, passages)]
    # by the weights: the planted head does what it should
    lacking = cut_out(model, "bert", [Place(1, 1)]).logits(passages)
    fall = cross_entropies(model.logits(passages), [0] * 40) - cross_entropies(lacking, [0] * 40)
    assert fall.mean() > 0.1

    changes = table(HeadRemoval()(model, cases), "loss")
    result = hurting(changes, 0.01, seed=1)
    planted = HEADS.index(Place(1, 1))
    assert planted in result.confirmed
    held_out = dict(zip(result.named, result.held_out, strict=True))
    interval = held_out[planted].interval
    assert interval
    assert interval[0] < -fall.mean() < interval[1]
    assert changes.mean(0).argmin() == planted

    # the same head, turned round, helps: the enemy calls every change a harm
    helpful = planted_to_hurt(head=1, label=0, push=-6.0)
    turned = table(HeadRemoval()(helpful, cases), "loss")
    assert planted not in hurting(turned, 0.01, seed=1).named
