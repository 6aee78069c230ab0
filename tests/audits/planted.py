"""Models whose attention is known to matter, not to matter, or to matter in one layer only.

They are BERTs with weights set by hand. A token's vector is made of pairs (x, −x), so that its mean
is 0, and scaled so that its variance is 1: layer normalisation leaves it as it is.

    pair 0: how strongly it calls attention       pair 2: what is left, so that the variance is 1
    pair 1: what it says, +1 or −1                pair 3: empty, where attention writes

Every query asks the same: who calls? Positions, segments and feed-forward layers add nothing. So
nothing of the words reaches [CLS], which the head reads, but what attention brings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import transformers as tf

from tests import tokenizers as tok
from whence.audits.case import Case
from whence.core.target import Target
from whence.models.load import load
from whence.models.model import Model

WORDS = ("great", "fine", "and", "are", "is", "it", "on", "so", "she", "the", "we", "up")
WORDS += ("tab", "une", "no", "le", "men", "rat")
CALLS, SAYS, REST, WRITTEN = 0, 2, 4, 6  # where each pair begins
WIDTH, HEADS = 8, 2
CALL = 1.5
# scores of a word that calls and of one that does not differ by 6: it gets most of the attention
SHARPNESS = 6 / CALL
SURE = 2.2  # by how much each label's logit moves from 0, at most
# By what a value is multiplied when it is written: so little that normalising and tanh are almost
# linear, or half of what is written would do, and one of two heads could look elsewhere.
SAID = 0.5


@dataclass(frozen=True)
class Planted:
    """A model with a few texts; in each of them one word calls, and the others say the contrary."""

    model: Model
    cases: list[Case]
    callers: list[int]  # the token that calls, in each text


def selects(seed: int, texts: int = 6) -> Planted:
    """One layer, whose attention selects the word that decides; every other path is closed."""
    return _planted(seed, texts, layers=1, that_speak=(0,))


def irrelevant(seed: int, texts: int = 6) -> Planted:
    """The same, and all values are equal, so that the output cannot depend on attention."""
    return _planted(seed, texts, layers=1, that_speak=())


def second_layer_only(seed: int, texts: int = 6) -> Planted:
    """Two layers that attend alike; the values of the first are all equal."""
    return _planted(seed, texts, layers=2, that_speak=(1,))


def _planted(seed: int, texts: int, layers: int, that_speak: tuple[int, ...]) -> Planted:
    rng = np.random.default_rng(seed)
    words = rng.permutation(WORDS).tolist()
    says = dict.fromkeys(words[::2], 1.0) | dict.fromkeys(words[1::2], -1.0)
    calling = set(words[:6])
    model = _model(layers, that_speak, says, calling, rng)

    cases, callers = [], []
    for number in range(texts):
        caller = words[number % 6]
        others = [w for w in words[6:] if says[w] != says[caller]]
        chosen = rng.permutation(others)[: rng.integers(4, 7)].tolist()
        place = int(rng.integers(len(chosen) + 1))
        chosen.insert(place, caller)
        cases.append(Case(model.encode(" ".join(chosen)), Target(), seed=seed))
        callers.append(place + 1)
    return Planted(model, cases, callers)


def _model(
    layers: int,
    that_speak: tuple[int, ...],
    says: dict[str, float],
    calling: set[str],
    rng: np.random.Generator,
) -> Model:
    tokenizer = tok.wordpiece()
    config = tf.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        num_hidden_layers=layers,
        num_attention_heads=HEADS,
        intermediate_size=1,
        max_position_embeddings=32,
        pad_token_id=0,
        num_labels=2,
    )
    hf: Any = tf.BertForSequenceClassification(config).eval()
    with torch.no_grad():
        for name, parameter in hf.named_parameters():
            parameter.fill_(1.0 if name.endswith("LayerNorm.weight") else 0.0)
        table = hf.bert.embeddings.word_embeddings.weight
        for i in range(len(tokenizer)):
            table[i] = _vector(0.0, 0.0)
        for word, said in says.items():
            call = CALL if word in calling else float(rng.uniform(-0.1, 0.1))
            table[tokenizer.convert_tokens_to_ids(word)] = _vector(call, said)
        for number, layer in enumerate(hf.bert.encoder.layer):
            _set_attention(layer.attention, speaks=number in that_speak)
        # [CLS] says nothing by itself, and the labels' logits are + and − what it was told
        hf.bert.pooler.dense.weight[0, WRITTEN] = 1.0
        hf.classifier.weight[:, 0] = torch.tensor([-SURE, SURE])
    return load(hf, tokenizer=tokenizer)


def _vector(call: float, said: float) -> torch.Tensor:
    """Pairs with the variance 1."""
    pairs = torch.tensor([call, said, (WIDTH / 2 - call**2 - said**2) ** 0.5, 0.0])
    return torch.stack([pairs, -pairs], -1).flatten()


def _set_attention(attention: Any, speaks: bool) -> None:
    """Each head's first entry is all it uses."""
    width = WIDTH // HEADS
    own, written = attention.self, attention.output.dense
    for head in range(HEADS):
        first = head * width
        own.query.bias[first] = SHARPNESS * width**0.5
        own.key.weight[first, CALLS] = 1.0
        if speaks:
            own.value.weight[first, SAYS] = 1.0
            written.weight[WRITTEN, first] = SAID / HEADS
            written.weight[WRITTEN + 1, first] = -SAID / HEADS
        else:
            # not zero: equal values are enough for attention not to matter
            own.value.bias[first] = 1.0
            written.weight[REST, first] = 0.1 / HEADS
            written.weight[REST + 1, first] = -0.1 / HEADS
