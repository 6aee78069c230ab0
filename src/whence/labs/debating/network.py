"""The models of the debate: words are encoded, attention weighs them, and a sigmoid answers.

    h_t = encoder(x)_t,    α = softmax(v · tanh(W h_t)),    ŷ = sigmoid(w · Σ α_t h_t + b)

There are two encoders. The BiLSTM lets every h_t know of all words. The other one, "words", is a
tanh layer on each word alone: there h_t knows of one word, and only attention brings words together
(Jain & Wallace 2019 call it "average", Wiegreffe & Pinter 2019 call it an MLP).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from whence.labs.debating.texts import Texts, batches

Encoder = Literal["BiLSTM", "words"]
ENCODERS: tuple[Encoder, ...] = get_args(Encoder)
SCALE = 0.1  # of the embeddings before training; torch would take 1, and the lab shows both


@dataclass(frozen=True, eq=False)
class Reading:
    """What a model made of some texts."""

    hidden: Float[Tensor, "text place width"]
    weights: Float[Tensor, "text place"]  # of attention; zero where there is no word
    logit: Float[Tensor, " text"]

    @property
    def probability(self) -> Float[Tensor, " text"]:
        """Of the label 1."""
        return self.logit.sigmoid()

    def pick(self, rows: Int[Tensor, " picked"] | slice) -> Reading:
        """Some of the texts."""
        return Reading(self.hidden[rows], self.weights[rows], self.logit[rows])


def uniform(present: Bool[Tensor, "text place"]) -> Float[Tensor, "text place"]:
    """The same weight for each word of a text.

    >>> uniform(torch.tensor([[True, True, False]])).tolist()
    [[0.5, 0.5, 0.0]]
    """
    return present / present.sum(-1, keepdim=True)


class Network(nn.Module):
    """A classifier with one layer of additive attention, for batches of texts of one length."""

    def __init__(
        self,
        encoder: Encoder,
        words: int,
        seed: int,
        embedding: int = 64,
        hidden: int = 128,
        scale: float = SCALE,
    ) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embedding = nn.Embedding(words, embedding)
            self.embedding.weight.data *= scale
            if encoder == "BiLSTM":
                half = hidden // 2  # in each direction
                self.encoder = nn.LSTM(embedding, half, batch_first=True, bidirectional=True)
            else:
                self.encoder = nn.Linear(embedding, hidden)
            self.attention = nn.Sequential(
                nn.Linear(hidden, hidden // 2), nn.Tanh(), nn.Linear(hidden // 2, 1, bias=False)
            )
            self.output = nn.Linear(hidden, 1)

    def encode(
        self, vectors: Float[Tensor, "text place embedding"]
    ) -> Float[Tensor, "text place hidden"]:
        """h_t of each word."""
        if isinstance(self.encoder, nn.Linear):
            return self.encoder(vectors).tanh()
        return self.encoder(vectors)[0]

    def attend(self, hidden: Float[Tensor, "text place hidden"]) -> Float[Tensor, "text place"]:
        """The weights of attention, which add up to one over the words of a text."""
        return self.attention(hidden).squeeze(-1).softmax(-1)

    def votes(self, hidden: Float[Tensor, "text place hidden"]) -> Float[Tensor, "text place"]:
        """w · h_t + b. As weights add up to one, the logit is the weighted mean of these."""
        return self.output(hidden).squeeze(-1)

    def forward(
        self,
        ids: Int[Tensor, "text place"],
        weights: Float[Tensor, "text place"] | None = None,
    ) -> Reading:
        """Read texts by the model's own attention, or by ``weights`` that are given."""
        return self.read_vectors(self.embedding(ids), weights)

    def read_vectors(
        self,
        vectors: Float[Tensor, "text place embedding"],
        weights: Float[Tensor, "text place"] | None = None,
        detached: bool = False,
    ) -> Reading:
        """Read embeddings; ``detached`` lets no gradient pass through the attention."""
        hidden = self.encode(vectors)
        if weights is None:
            weights = self.attend(hidden)
        if detached:
            weights = weights.detach()
        return Reading(hidden, weights, (weights * self.votes(hidden)).sum(-1))


@torch.no_grad()
def read(
    model: Network,
    texts: Texts,
    weights: Float[Tensor, "text place"] | None = None,
    size: int = 128,
) -> Reading:
    """Read texts of all lengths, without gradients; what lies behind a text's end is zero."""
    width = model.output.in_features
    hidden = torch.zeros(*texts.ids.shape, width)
    used = torch.zeros(texts.ids.shape)
    logit = torch.zeros(len(texts))
    for rows in batches(texts.lengths, size):
        length = int(texts.lengths[rows[0]])
        given = None if weights is None else weights[rows, :length]
        part = model(texts.ids[rows, :length], given)
        hidden[rows, :length] = part.hidden
        used[rows, :length] = part.weights
        logit[rows] = part.logit
    return Reading(hidden, used, logit)
