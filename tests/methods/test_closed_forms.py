"""The tiny example of FACTS 3.1, with a model of the caller's own that computes attention through
the registry.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

import whence
from whence.core.registry import Needs
from whence.models.model import Model
from whence.trace.trace import trace


def eager_attention_forward(
    module: nn.Module, query: Any, key: Any, value: Any, attention_mask: Any, **_: Any
) -> Any:
    weights = (query @ key.transpose(-1, -2)).softmax(-1)
    return (weights @ value).transpose(1, 2), weights


class TinyConfig(PreTrainedConfig):
    model_type = "whence-tiny"


class TinyAttention(nn.Module):
    def __init__(self, config: TinyConfig) -> None:
        super().__init__()
        self.config = config

    def forward(self, e: torch.Tensor) -> torch.Tensor:
        attend = ALL_ATTENTION_FUNCTIONS.get_interface(
            self.config._attn_implementation, eager_attention_forward
        )
        key = value = e[:, None]
        return attend(self, torch.ones_like(key[:, :, :1]), key, value, None)[0]


class TinyForSequenceClassification(PreTrainedModel):
    """f = Σ α_t e_t with α = softmax(e): all weights 1, the query fixed at 1."""

    config_class = TinyConfig
    _supports_sdpa = False

    def __init__(self, config: TinyConfig) -> None:
        super().__init__(config)
        self.embed_tokens = nn.Embedding(3, 1)
        self.attention = TinyAttention(config)
        self.post_init()

    def forward(self, input_ids: torch.Tensor, attention_mask: Any = None, **_: Any) -> Any:
        return SimpleNamespace(logits=self.attention(self.embed_tokens(input_ids))[:, 0, 0])


@pytest.fixture
def tiny() -> Model:
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "zero": 1, "two": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    hf = TinyForSequenceClassification(
        TinyConfig(num_labels=1, id2label={0: "f"}, label2id={"f": 0}, pad_token_id=0)
    ).double()
    with torch.no_grad():
        hf.embed_tokens.weight.copy_(torch.tensor([[0.0], [0.0], [np.log(2)]]))
    return whence.load(
        hf, tokenizer=PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]")
    )


def test_two_tokens_by_hand(tiny: Model) -> None:
    # would catch: a gradient that holds the attention fixed, which is (1/3, 2/3)
    a = whence.explain(tiny, "zero two", "gradient-mean", evidence=False)
    assert a.value == pytest.approx(2 / 3 * np.log(2))
    np.testing.assert_allclose(a.scores, [0.179301, 0.820699], atol=5e-7)
    assert a.scores.sum() == pytest.approx(1)
    maps = trace(tiny, [tiny.encode("zero two")], needs=Needs.ATTENTION).attentions["encoder"]
    np.testing.assert_allclose(maps[0][0, 0, 0], [1 / 3, 2 / 3], atol=1e-12)


def test_gradient_times_input_by_hand(tiny: Model) -> None:
    a = whence.explain(tiny, "zero two", "gradient-x-input", evidence=False)
    np.testing.assert_allclose(a.scores, [0.0, 0.820699 * np.log(2)], atol=5e-7)


@pytest.mark.parametrize(("name", "power"), [("gradient-l1", 1), ("gradient-l2", 2)])
def test_norms_by_hand(tiny: Model, name: str, power: int) -> None:
    np.testing.assert_allclose(
        whence.explain(tiny, "zero two", name, evidence=False).scores,
        [0.179301, 0.820699],
        atol=5e-7,
    )
    lecture = whence.explain(tiny, "zero two", name, form="lecture", evidence=False).scores
    np.testing.assert_allclose(lecture, np.array([0.179301, 0.820699]) ** power, atol=1e-6)


def test_integrated_gradients_by_an_integral_done_elsewhere(tiny: Model) -> None:
    # from zero: e = (0, s ln 2); the integrand of the second token is d/de [e·e^e/(1+e^e)] along e
    # = t ln 2, and F(0) = 0
    a = whence.explain(
        tiny, "zero two", "integrated-gradients", baseline="zero", tolerance=1e-9, evidence=False
    )
    np.testing.assert_allclose(a.scores, [0.0, 2 / 3 * np.log(2)], atol=1e-9)
    assert a.error is not None
    assert a.error.completeness_gap is not None
    assert a.error.completeness_gap < 1e-9
