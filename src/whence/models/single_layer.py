"""The single-layer, multi-head attention classifier, whose explanations are formulas.

It is the one of Lopardo, Precioso & Garreau (ICML 2024):

    f(text) = (1/K) Σ_k W_l⁽ᵏ⁾ Σ_t α_t⁽ᵏ⁾ v_t⁽ᵏ⁾
    α⁽ᵏ⁾    = softmax_t(q⁽ᵏ⁾·k_t⁽ᵏ⁾ / √d_att),   q from the [CLS] token at place 0 alone

An embedding plus a sinusoidal positional encoding goes in; there is no residual, no normalisation
and no bias. It is written as a Hugging Face model, so that every method reads it as it reads any
other; only the first row of the attention maps reaches the output.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.masking_utils import create_bidirectional_mask
from transformers.modeling_outputs import SequenceClassifierOutput
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

# Of the uniform law of all matrices, as in the authors' code.
INITIAL_RANGE = 0.1


class SingleLayerConfig(PreTrainedConfig):
    """K heads of key width d_att and value width d_out over embeddings of width d_e.

    ``position_base`` is the base of the positional encoding.
    """

    model_type = "single-layer-attention"

    def __init__(
        self,
        vocab_size: int = 1000,
        embedding_size: int = 128,
        num_attention_heads: int = 6,
        key_size: int = 64,
        value_size: int = 64,
        max_position_embeddings: int = 256,
        position_base: float = 10_000.0,
        **others: Any,
    ) -> None:
        self.vocab_size = vocab_size
        self.embedding_size = embedding_size
        self.num_attention_heads = num_attention_heads
        self.key_size = key_size
        self.value_size = value_size
        self.max_position_embeddings = max_position_embeddings
        self.position_base = position_base
        # the names that tools look for
        self.hidden_size = embedding_size
        self.num_hidden_layers = 1
        super().__init__(**others)


def positional_encoding(
    places: int, width: int, base: float = 10_000.0
) -> Float[Tensor, "place width"]:
    """The encoding of each place t: a sine in every even column 2i, a cosine in the one after it.

    The angle of both is t / base^(2i/width), with t and i from 0.

    >>> positional_encoding(2, 4)[0], positional_encoding(2, 4)[1, 0].item().__round__(5)
    (tensor([0., 1., 0., 1.], dtype=torch.float64), 0.84147)
    """
    pair = torch.arange(0, width, 2, dtype=torch.float64, device="cpu")
    place = torch.arange(places, dtype=torch.float64, device="cpu")
    angle = place[:, None] / base ** (pair / width)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[:, :width]


def eager_attention_forward(
    module: nn.Module,
    query: Float[Tensor, "batch head from key"],
    key: Float[Tensor, "batch head to key"],
    value: Float[Tensor, "batch head to value"],
    attention_mask: Tensor | None,
    scaling: float,
    dropout: float = 0.0,
    **_: Any,
) -> tuple[Float[Tensor, "batch from head value"], Float[Tensor, "batch head from to"]]:
    """softmax(q·k · scaling + mask), and the values averaged by it."""
    scores = query @ key.transpose(2, 3) * scaling
    if attention_mask is not None:
        scores = scores + attention_mask
    weights = nn.functional.dropout(scores.softmax(-1), p=dropout, training=module.training)
    return (weights @ value).transpose(1, 2).contiguous(), weights


class SingleLayerAttention(nn.Module):
    """Queries, keys and values without biases, and attention between all places."""

    def __init__(self, config: SingleLayerConfig) -> None:
        super().__init__()
        self.config = config
        self.heads = config.num_attention_heads
        self.scaling = config.key_size**-0.5
        self.is_causal = False
        width = config.embedding_size
        self.query = nn.Linear(width, self.heads * config.key_size, bias=False)
        self.key = nn.Linear(width, self.heads * config.key_size, bias=False)
        self.value = nn.Linear(width, self.heads * config.value_size, bias=False)

    def forward(
        self, e: Float[Tensor, "batch place width"], attention_mask: Tensor | None, **others: Any
    ) -> tuple[Tensor, Tensor | None]:
        """The averaged values of all heads side by side, for every place that looks.

        The weights come with them, where the kernel gives them.
        """
        attend: Callable = ALL_ATTENTION_FUNCTIONS.get_interface(
            str(self.config._attn_implementation), eager_attention_forward
        )
        averaged, weights = attend(
            self,
            self._by_head(self.query(e)),
            self._by_head(self.key(e)),
            self._by_head(self.value(e)),
            attention_mask,
            scaling=self.scaling,
            dropout=0.0,
            **others,
        )
        return averaged.flatten(2), weights

    def _by_head(
        self, x: Float[Tensor, "batch place wide"]
    ) -> Float[Tensor, "batch head place narrow"]:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class SingleLayerPreTrainedModel(PreTrainedModel):
    """What transformers wants to know."""

    config_class = SingleLayerConfig
    base_model_prefix = "model"
    _supports_sdpa = True
    _supports_attention_backend = True
    _can_record_outputs = {"attentions": SingleLayerAttention}  # noqa: RUF012

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            nn.init.uniform_(module.weight, -INITIAL_RANGE, INITIAL_RANGE)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight)


class SingleLayerForSequenceClassification(SingleLayerPreTrainedModel):
    """The classifier. ``logits`` is f of the equation above, one entry for each label."""

    def __init__(self, config: SingleLayerConfig) -> None:
        super().__init__(config)
        self.embedding = nn.Embedding(config.vocab_size, config.embedding_size)
        self.attention = SingleLayerAttention(config)
        # W_l of all heads, side by side
        self.classifier = nn.Linear(
            config.num_attention_heads * config.value_size, len(config.id2label or ()), bias=False
        )
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """The word vectors, to which the positional encoding is added."""
        return self.embedding

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replace the word vectors."""
        self.embedding = value

    def forward(
        self,
        input_ids: Int[Tensor, "batch place"] | None = None,
        attention_mask: Int[Tensor, "batch place"] | None = None,
        inputs_embeds: Float[Tensor, "batch place width"] | None = None,
        output_attentions: bool | None = None,
        **others: Any,
    ) -> SequenceClassifierOutput:
        """The logits; with eager attention and ``output_attentions`` also the weights."""
        words = self.embedding(input_ids) if inputs_embeds is None else inputs_embeds
        positions = positional_encoding(
            words.shape[1], self.config.embedding_size, self.config.position_base
        )
        e = words + positions.to(words)
        mask = create_bidirectional_mask(
            config=self.config, inputs_embeds=e, attention_mask=attention_mask
        )
        passed_on = {name: value for name, value in others.items() if name == "is_causal"}
        averaged, weights = self.attention(e, mask, **passed_on)

        logits = self.classifier(averaged[:, 0]) / self.config.num_attention_heads
        if not output_attentions or weights is None:
            return SequenceClassifierOutput(logits=logits)
        return SequenceClassifierOutput(logits=logits, attentions=(weights,))


AutoConfig.register(SingleLayerConfig.model_type, SingleLayerConfig, exist_ok=True)
AutoModelForSequenceClassification.register(
    SingleLayerConfig, SingleLayerForSequenceClassification, exist_ok=True
)
