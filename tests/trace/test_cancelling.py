"""Scores that are zero by construction are recognised, and honest small ones are not.

Each test names what would pass a wrong rule: a threshold on the scores alone, on the target, or
none at all.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
import transformers as tf

import whence
from tests import tokenizers as tok
from tests.families import LABELS, SMALL, build
from tests.zoo import Animal, built, tokenizer_of
from whence.core.attribution import Attribution
from whence.explaining.doctor import attempt, examine
from whence.models.load import load
from whence.models.model import Model
from whence.trace.cancelling import cancel
from whence.views.listing import doctor_view
from whence.views.terminal import to_text

TEXT = "the plot was not bad at all"


def layer(eps: float, bend: torch.Tensor | None = None) -> torch.Tensor:
    """Gradient × input, before its sum, of one norm and what reads it: "row token dim"."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, 6, 32, generator=generator).requires_grad_()
    read = torch.randn(6, 32, generator=generator)
    normed = torch.nn.functional.layer_norm(x, (32,), eps=eps)
    value = (torch.tanh(normed) * read).sum()
    if bend is not None:
        value = value * bend
    (gradient,) = torch.autograd.grad(value, x)
    return (gradient * x).detach()


def deberta_v3(eps: float = 1e-7) -> Model:
    """As DeBERTa-v3 is set up: positions stand in the attention alone, and there are no types."""
    torch.manual_seed(0)
    config = tf.DebertaV2Config(
        **SMALL,
        **LABELS,
        vocab_size=len(tok.wordpiece()),
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        position_biased_input=False,
        type_vocab_size=0,
        layer_norm_eps=eps,
        initializer_range=0.2,
    )
    return load(tf.DebertaV2ForSequenceClassification(config).eval(), tokenizer=tok.wordpiece())


def of_zoo(family: str) -> Model:
    animal = Animal(family, "classification")
    return load(built(animal), tokenizer=tokenizer_of(animal))


def test_a_function_that_takes_length_away_has_no_slope_along_it() -> None:
    """Euler: f(λx) = f(x) gives ∇f · x = 0, up to ε; with a large ε the sums are honest."""
    assert cancel(layer(eps=1e-12)).tolist() == [True]
    assert cancel(layer(eps=1e-5)).tolist() == [True]
    assert cancel(layer(eps=1.0)).tolist() == [False]


@pytest.mark.parametrize("size", [1e-30, 1e-8, 1e8])
def test_the_targets_size_says_nothing(size: float) -> None:
    """A model that is sure, or a tiny target, has small gradients that do not cancel."""
    assert cancel(layer(1.0, torch.tensor(size))).tolist() == [False]
    assert cancel(layer(1e-12, torch.tensor(size))).tolist() == [True]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_has_rounding_of_its_own(dtype: torch.dtype) -> None:
    for eps, zero in ((1e-12, True), (1.0, False)):
        assert cancel(layer(eps).to(dtype)).tolist() == [zero]


def test_no_slope_at_all_is_no_construction() -> None:
    assert cancel(torch.zeros(1, 3, 4)).tolist() == [False]
    assert cancel(torch.zeros(1, 3, 0)).tolist() == [False]


MODELS: dict[str, Any] = {
    "deberta-v3": deberta_v3,
    "modernbert": lambda: of_zoo("modernbert"),
    "bloom": lambda: of_zoo("bloom"),
}


@pytest.mark.parametrize("name", MODELS)
def test_nothing_is_ranked_judged_or_named(name: str) -> None:
    a = whence.explain(MODELS[name](), TEXT, "gradient-x-input")
    assert a.is_zero_by_construction
    assert not a.scores.any()
    assert a.error is not None
    assert a.evidence is not None
    assert a.error.note.startswith("zero by construction")
    assert (a.evidence.verdict, a.evidence.value, a.evidence.p) == (None, None, None)
    assert a.evidence.ranks_nothing
    assert "zero by construction" in a.evidence.note
    assert not a.answer.names_something
    assert "zero by construction" in str(a.answer)
    again = Attribution.from_dict(json.loads(json.dumps(a.to_dict())))
    assert again == a
    assert again.is_zero_by_construction


def test_funnel_is_recognised_too() -> None:
    """Its pooling cannot read an empty text, so that it plays no games."""
    a = whence.explain(of_zoo("funnel"), TEXT, "gradient-x-input", evidence=False)
    assert a.is_zero_by_construction
    assert not a.answer.names_something


@pytest.mark.parametrize("family", ["bert", "gpt2-classifier", "distilbert", "llama-classifier"])
def test_where_something_is_added_before_the_norm_scores_are_honest(family: str) -> None:
    a = whence.explain(build(family), TEXT, "gradient-x-input", evidence=False)
    assert a.scores.any()
    assert not a.is_zero_by_construction


def test_a_norm_with_a_large_epsilon_is_kept() -> None:
    a = whence.explain(deberta_v3(eps=1.0), TEXT, "gradient-x-input", evidence=False)
    assert a.scores.any()


def test_a_model_that_is_sure_keeps_its_small_gradients() -> None:
    model = whence.load("sentiment")
    sure = "a wonderful, moving, brilliant and truly beautiful film"
    with torch.no_grad():
        model.hf.classifier.weight.mul_(8.0)
    a = whence.explain(
        model, sure, "gradient-x-input", target="positive", read="probability", evidence=False
    )
    assert 1 - a.value < 1e-5
    assert np.abs(a.scores).max() < 1e-4
    assert a.scores.any()


def test_the_comparison_and_the_doctor_say_so() -> None:
    model = deberta_v3()
    c = whence.compare(model, TEXT, ["gradient-x-input", "gradient-l2", "occlusion"])
    assert "gradient-x-input" not in c.answer.tried
    assert "zero by construction" in c.to_text()
    assert "zero by construction" in c.to_html()
    tried = attempt(model, "gradient-x-input")
    assert tried.works
    assert "zero by construction" in tried.note
    assert attempt(model, "gradient-l2").note == ""


def test_what_the_doctor_prints() -> None:
    report = examine(whence.load("single-layer")).to_dict()
    zero = {
        "method": "gradient-x-input",
        "works": True,
        "reason": "",
        "note": "zero by construction: so",
    }
    report["methods"] = [zero]
    shown = to_text(lambda console: doctor_view(report, console))
    assert "works, but zero by construction" in shown
