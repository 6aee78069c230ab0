"""How many positions there are: what configurations write for "no end" is no number of tokens."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers as tf

import whence
from tests import tokenizers as tok
from whence.models.limits import configured_limit


def _model(**config: Any) -> Any:
    text = SimpleNamespace(**{"model_type": "own", **config})
    return SimpleNamespace(config=SimpleNamespace(get_text_config=lambda: text))


@pytest.mark.parametrize(
    ("config", "limit"),
    [
        ({"max_position_embeddings": 512}, 512),
        ({"n_positions": 64}, 64),
        ({"max_position_embeddings": -1}, None),
        ({"max_position_embeddings": 0, "n_positions": 64}, 64),
        ({"max_position_embeddings": None}, None),
        ({"max_position_embeddings": 10**30}, None),
        ({"max_position_embeddings": float("inf")}, None),
        ({"max_position_embeddings": "auto"}, None),
        ({"model_type": "led", "max_encoder_position_embeddings": 128, "n_positions": 9}, 128),
        ({"model_type": "t5", "n_positions": 512}, None),
        ({}, None),
    ],
)
def test_a_limit_is_a_number_of_tokens_or_none(config: dict[str, Any], limit: int | None) -> None:
    assert configured_limit(_model(**config)) == limit


def test_xlnet_has_no_end() -> None:
    """Its configuration says -1, and every text is longer than that."""
    torch.manual_seed(0)
    config = tf.XLNetConfig(
        vocab_size=len(tok.unigram()), d_model=16, n_layer=1, n_head=2, d_inner=16, pad_token_id=0
    )
    hf = tf.XLNetForSequenceClassification(config).eval()
    model = whence.load(hf, tokenizer=tok.unigram())
    assert model.limit is None
    assert len(model.encode("the food is great " * 50)) > 200
