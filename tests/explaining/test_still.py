"""A model whose output does not move: what methods return is rounding, and ranks nothing."""

from __future__ import annotations

import pytest
import torch

import whence
from whence.core.evidence import STILL
from whence.models.model import Model

TEXT = "the food is not bad at all"


def deaf(share: float) -> Model:
    """The bundled classifier, listening to its text by so small a share; its logits are 3 and 1."""
    model = whence.load("sentiment")
    with torch.no_grad():
        model.hf.classifier.weight.mul_(share)
        model.hf.classifier.bias.copy_(torch.tensor([3.0, 1.0]))
    return whence.load(model.hf, tokenizer=model.tokenizer)


@pytest.mark.parametrize("share", [0.0, 1e-9, 1e-7])
def test_what_is_rounding_is_zero_and_not_ranked(share: float) -> None:
    """Would catch Shapley values of 4e-16 with a strongest word, a verdict and a bar."""
    methods = ["shapley", "lime", "occlusion", "banzhaf", "gradient-l2", "attention-mean"]
    c = whence.compare(deaf(share), TEXT, methods)
    for name in methods[:4]:
        assert not c[name].scores.any()
        error = c[name].error
        assert error is None or error.standard_error is None or not error.standard_error.any()
    for a in c.attributions.values():
        assert a.evidence is not None
        assert a.evidence.ranks_nothing
    said = str(c.answer)
    assert "Nothing could be tested: whatever is taken out" in said
    assert "could have seen" not in said
    assert not c.answer.names_something
    alone = whence.explain(deaf(share), TEXT, "shapley")
    assert "no words stand out" in str(alone.answer)
    assert STILL in str(alone.answer)


def test_a_model_that_hears_a_little_is_ranked() -> None:
    c = whence.compare(deaf(1e-4), TEXT, ["shapley", "lime", "occlusion"])
    for a in c.attributions.values():
        assert a.scores.any()
        assert a.evidence is not None
        assert a.evidence.verdict is not None


def test_a_closed_form_that_runs_no_mask_is_not_still() -> None:
    """Would catch zeros for a method that reads the weights, as one value is no range."""
    model = whence.load("single-layer")
    a = whence.explain(model, "the food is not bad", "shapley-exact", evidence=False)
    assert a.scores.any()
