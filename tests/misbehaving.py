"""Small models that misbehave, each in one way, for the tests of the guard.

They are a tiny BERT with one fault built in, so that the guard must see the fault itself: no name
of a family gives it away.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
import transformers as tf
from torch import Tensor, nn
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.bert.modeling_bert import BertSelfAttention, eager_attention_forward

from tests import tokenizers as tok
from tests.families import LABELS, SMALL
from whence.models.load import load
from whence.models.model import Model


class Plain(tf.BertForSequenceClassification):
    """A BERT without a fault, whose logits are large enough to be told apart from rounding."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.seen = nn.Module()

    def spoil(self, states: Tensor, inputs: dict[str, Any]) -> Tensor:
        """What a fault makes of the last hidden states."""
        return states

    def read(self, states: Tensor) -> Tensor:
        """The token that the head reads."""
        return states[:, 0]

    def forward(self, input_ids: Any = None, **inputs: Any) -> Any:
        wanted = {k: v for k, v in inputs.items() if k.startswith("output_")}
        outputs = self.bert(
            input_ids,
            attention_mask=inputs.get("attention_mask"),
            token_type_ids=inputs.get("token_type_ids"),
            **wanted,
        )
        states = self.spoil(outputs.last_hidden_state, {"input_ids": input_ids, **inputs})
        logits = self.classifier(self.read(states))
        return tf.modeling_outputs.SequenceClassifierOutput(
            logits=logits,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )


class PaddingMatters(Plain):
    """The mean over all places, padding included, is added to every place."""

    def spoil(self, states: Tensor, inputs: dict[str, Any]) -> Tensor:
        return states + states.mean(1, keepdim=True)


class MatesMatter(Plain):
    """What stands beside a text in its batch is subtracted."""

    def spoil(self, states: Tensor, inputs: dict[str, Any]) -> Tensor:
        return states - 0.5 * states.mean((0, 1), keepdim=True)


class RefusesBatches(Plain):
    def spoil(self, states: Tensor, inputs: dict[str, Any]) -> Tensor:
        if len(states) > 1:
            raise ValueError("Cannot handle batch sizes > 1 if no padding token is defined.")
        return states


class DrawsFromTorch(Plain):
    def spoil(self, states: Tensor, inputs: dict[str, Any]) -> Tensor:
        return states + torch.rand_like(states[:1, :1])


class DrawsFromNumpy(Plain):
    def spoil(self, states: Tensor, inputs: dict[str, Any]) -> Tensor:
        return states + float(np.random.rand())


class DrawsFromPython(Plain):
    def spoil(self, states: Tensor, inputs: dict[str, Any]) -> Tensor:
        return states + random.random()


class NeverTheSame(Plain):
    """Its own generator: no seed of ours reaches it."""

    def spoil(self, states: Tensor, inputs: dict[str, Any]) -> Tensor:
        self.generator = getattr(self, "generator", torch.Generator().manual_seed(0))
        return states + torch.rand(1, generator=self.generator)


class CountsInPlace(Plain):
    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.seen.register_buffer("passes", torch.zeros(()))

    def spoil(self, states: Tensor, inputs: dict[str, Any]) -> Tensor:
        self.seen.passes += 1
        return states


class KeepsACache(Plain):
    """Another buffer, and another number, after a longer text."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.seen.register_buffer("cache", torch.zeros(1), persistent=False)
        self.seen.longest = 0

    def spoil(self, states: Tensor, inputs: dict[str, Any]) -> Tensor:
        if states.shape[1] > self.seen.longest:
            self.seen.longest = states.shape[1]
            self.seen.cache = torch.arange(states.shape[1])
        return states


class ExchangesAPart(Plain):
    """For a short text it takes another module, and says so in a word, as BigBird does."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.seen.part = nn.Identity()
        self.seen.kind = "sparse"

    def spoil(self, states: Tensor, inputs: dict[str, Any]) -> Tensor:
        if self.seen.kind == "sparse":
            self.seen.part = nn.Dropout(0.0)
            self.seen.kind = "full"
        return self.seen.part(states)


class RescalesOnce(Plain):
    """In its first pass it halves a weight for good and doubles what comes out, as RWKV does."""

    longest = 0  # a text that is not longer than this leaves it as it is

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.seen.is_rescaled = False

    def spoil(self, states: Tensor, inputs: dict[str, Any]) -> Tensor:
        if states.shape[1] > self.longest and not self.seen.is_rescaled:
            self.halve(self.classifier.weight)
            self.seen.is_rescaled = True
        return 2 * states if self.seen.is_rescaled else states

    def halve(self, weight: nn.Parameter) -> None:
        with torch.no_grad():
            weight.div_(2)


class RescalesData(RescalesOnce):
    """The same by another way, of which the weight's version tells as well."""

    def halve(self, weight: nn.Parameter) -> None:
        with torch.no_grad():
            weight.view(-1)[:] /= 2


class ReadsIdsAgain(Plain):
    """A second table, looked up in the last layer."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.again = nn.Embedding(config.vocab_size, config.hidden_size)

    def spoil(self, states: Tensor, inputs: dict[str, Any]) -> Tensor:
        return states + self.again(inputs["input_ids"]).mean(1, keepdim=True)


class EmbedsInChunks(Plain):
    """Its embeddings stand for pairs of tokens."""

    def forward(self, input_ids: Any = None, **inputs: Any) -> Any:
        mask = inputs["attention_mask"][:, ::2]
        return super().forward(input_ids[:, ::2], attention_mask=mask)


class HidesItsEmbeddings(Plain):
    def get_input_embeddings(self) -> Any:
        raise NotImplementedError("`get_input_embeddings` not auto-handled; please override.")


class EmbedsWithMore(Plain):
    """Its embedding module gives out a scale beside the vectors, as I-BERT's does."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.scaled = _Scaled(self.bert.embeddings.word_embeddings)

    def get_input_embeddings(self) -> nn.Module:
        return self.scaled

    def forward(self, input_ids: Any = None, **inputs: Any) -> Any:
        self.scaled(input_ids)
        return super().forward(input_ids, **inputs)


class _Scaled(nn.Module):
    def __init__(self, table: nn.Module) -> None:
        super().__init__()
        self.table = table

    def forward(self, ids: Tensor) -> tuple[Tensor, float]:
        return self.table(ids), 1.0


class Detached(Plain):
    """No gradient comes down."""

    def spoil(self, states: Tensor, inputs: dict[str, Any]) -> Tensor:
        return states.detach()


class NoWayBack(Plain):
    """It changes in place what its gradient would need, as RWKV does."""

    def spoil(self, states: Tensor, inputs: dict[str, Any]) -> Tensor:
        gates = torch.sigmoid(states)
        gated = states * gates
        gates.mul_(2)
        return gated


class HalfDetached(Plain):
    """A gradient comes down, and it is that of another function: a straight-through estimate."""

    def spoil(self, states: Tensor, inputs: dict[str, Any]) -> Tensor:
        through = 5 * torch.tanh(2 * states)
        return (through - (-states)).detach() - states


class FifthDetached(Plain):
    """What the model says is right, and its gradient is a fifth too small."""

    def spoil(self, states: Tensor, inputs: dict[str, Any]) -> Tensor:
        return 0.8 * states + 0.2 * states.detach()


class BranchDetached(Plain):
    """A second branch, of its own function, that no gradient comes through."""

    def spoil(self, states: Tensor, inputs: dict[str, Any]) -> Tensor:
        branch = torch.tanh(states.roll(1, dims=-1))
        return states + branch.detach()


class Convolves(Plain):
    """Before the first attention each token takes something of its neighbours."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.bert.encoder = _Convolving(self.bert.encoder, config.hidden_size)


class _Convolving(nn.Module):
    def __init__(self, encoder: nn.Module, width: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.along = nn.Conv1d(width, width, 3, padding=1)

    def forward(self, hidden_states: Tensor, *args: Any, **more: Any) -> Any:
        mixed = self.along(hidden_states.transpose(1, 2)).transpose(1, 2)
        return self.encoder(hidden_states + mixed, *args, **more)


class Remembers(Plain):
    """Before the first attention a recurrent layer runs along the text."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.bert.encoder = _Recurring(self.bert.encoder, config.hidden_size)


class _Recurring(nn.Module):
    def __init__(self, encoder: nn.Module, width: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.along = nn.GRU(width, width, batch_first=True)

    def forward(self, hidden_states: Tensor, *args: Any, **more: Any) -> Any:
        return self.encoder(hidden_states + self.along(hidden_states)[0], *args, **more)


class _ConvolvedValues(BertSelfAttention):
    """The values themselves are mixed before attention weighs them."""

    def forward(self, hidden_states: Tensor, attention_mask: Any = None, **more: Any) -> Any:
        mixed = hidden_states + 0.5 * hidden_states.roll(1, dims=1)
        return super().forward(mixed, attention_mask, **more)


class ConvolvesInsideAttention(Plain):
    def __init__(self, config: Any) -> None:
        super().__init__(config)
        for index, layer in enumerate(self.bert.encoder.layer):
            mixed = _ConvolvedValues(config, layer_idx=index)
            mixed.load_state_dict(layer.attention.self.state_dict())
            layer.attention.self = mixed


class ReadsTheLast(Plain):
    def read(self, states: Tensor) -> Tensor:
        return states[:, -1]


class ReadsTheMean(Plain):
    def read(self, states: Tensor) -> Tensor:
        return states.mean(1)


class ReadsTheSecond(Plain):
    def read(self, states: Tensor) -> Tensor:
        return states[:, 1]


class Raises(Plain):
    def spoil(self, states: Tensor, inputs: dict[str, Any]) -> Tensor:
        return states.no_such_attribute  # pyright: ignore[reportAttributeAccessIssue]


class EagerIsAnother(Plain):
    """With any attention but its fast one it computes something else, as Falcon does."""

    def spoil(self, states: Tensor, inputs: dict[str, Any]) -> Tensor:
        if self.config._attn_implementation == "sdpa":
            return states
        return states * torch.linspace(0.5, 1.5, states.shape[-1])


class _PooledAttention(BertSelfAttention):
    """Every place looks at every second one only, through the registry."""

    def forward(self, hidden_states: Tensor, attention_mask: Any = None, **more: Any) -> Any:
        shape = (*hidden_states.shape[:2], self.num_attention_heads, self.attention_head_size)
        q, k, v = (
            part(hidden_states).view(shape).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        mask = None if attention_mask is None else attention_mask[..., ::2]
        attend = ALL_ATTENTION_FUNCTIONS.get_interface(
            self.config._attn_implementation, eager_attention_forward
        )
        output, weights = attend(
            self, q, k[:, :, ::2], v[:, :, ::2], mask, dropout=0.0, scaling=self.scaling
        )
        return output.reshape(*hidden_states.shape), weights


class PoolsItsKeys(Plain):
    """Attention over every second place, in the way of the registry."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        for index, layer in enumerate(self.bert.encoder.layer):
            pooled = _PooledAttention(config, layer_idx=index)
            pooled.load_state_dict(layer.attention.self.state_dict())
            layer.attention.self = pooled


def build(kind: type[Plain], seed: int = 0) -> Model:
    """A tiny model of one misbehaving kind."""
    torch.manual_seed(seed)
    config = tf.BertConfig(
        **SMALL,
        vocab_size=len(tok.wordpiece()),
        pad_token_id=0,
        max_position_embeddings=64,
        initializer_range=0.3,
        **LABELS,
    )
    return load(kind(config).eval(), tokenizer=tok.wordpiece())
