"""Where no gradient arrives, methods that need one refuse; zeros would look like an answer."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch

from tests.choices import quick
from tests.families import build, inputs
from whence.core.errors import Unsupported
from whence.core.registry import methods
from whence.explaining.explain import explain
from whence.models.load import load
from whence.models.model import Model

NEED_GRADIENTS = [
    "gradient-l1",
    "gradient-l2",
    "gradient-mean",
    "gradient-x-input",
    "integrated-gradients",
    "smooth-grad",
    "generic-attention",
    "attn-lrp",
    "transformer-attribution",
]


@pytest.fixture(scope="module")
def quantised() -> Model:
    """Its linear layers in whole numbers of eight bits, through which torch knows no gradient."""
    model = build("bert")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hf: Any = torch.ao.quantization.quantize_dynamic(model.hf, {torch.nn.Linear})
    return load(hf, tokenizer=model.tokenizer)


@pytest.mark.parametrize("name", NEED_GRADIENTS)
def test_a_quantised_model_is_refused(quantised: Model, name: str) -> None:
    # would catch: a gradient that autograd does not give, taken for zero
    settings = quick(methods()[name].settings)
    with pytest.raises(Unsupported, match=r"shapley|generic-attention|gradient"):
        explain(quantised, "not bad prices", name, evidence=False, **settings)


@pytest.mark.parametrize("name", ["shapley", "lime", "occlusion", "attention-mean", "rollout"])
def test_what_the_refusal_names_works(quantised: Model, name: str) -> None:
    scores = explain(quantised, "not bad prices", name, evidence=False).scores
    assert np.abs(scores).max() > 0


def test_a_gradient_that_is_truly_zero_is_an_answer() -> None:
    model = build("bert")
    torch.nn.init.zeros_(model.hf.classifier.weight)
    scores = explain(model, inputs(model, 1)[0], "gradient-l2", evidence=False).scores
    assert np.array_equal(scores, np.zeros_like(scores))


@pytest.mark.parametrize("name", ["gradient-l2", "smooth-grad", "integrated-gradients", "attn-lrp"])
def test_a_graph_that_is_cut_behind_the_embeddings_is_refused(name: str) -> None:
    model = build("bert")
    # a module of the caller's that hands on numbers only
    model.hf.bert.embeddings.register_forward_hook(lambda _m, _a, output: output.detach())
    with pytest.raises(Unsupported, match="no gradient reaches the input embeddings"):
        explain(model, inputs(model, 1)[0], name, evidence=False)
