"""One short loop of training, and the two things that are trained for.

``labelled``: to answer as people did. ``opposed``: to answer as another model does, with attention
that is as different from its attention as possible (Wiegreffe & Pinter 2019, section 4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float, Int
from torch import Tensor

from whence.labs.debating.distance import tvd
from whence.labs.debating.network import Network, Reading
from whence.labs.debating.texts import Texts, batches
from whence.theory import kl

Loss = Callable[[Reading, Int[Tensor, " row"]], Float[Tensor, ""]]


@dataclass(frozen=True)
class Training:
    """How a model is trained. Jain & Wallace 2019 take 8 epochs of batches of 32 at 1e-3."""

    epochs: int = 4
    batch: int = 64
    rate: float = 2e-3
    decay: float = 1e-5  # not of attention


def train(
    model: Network,
    texts: Texts,
    loss: Loss,
    training: Training,
    seed: int,
    weights: Float[Tensor, "text place"] | None = None,
) -> Network:
    """Train a model in place, and return it.

    With ``weights``, it reads by these instead of its own attention, which then learns nothing.
    """
    attention = list(model.attention.parameters())
    rest = [p for name, p in model.named_parameters() if not name.startswith("attention")]
    groups = [{"params": rest, "weight_decay": training.decay}, {"params": attention}]
    optimiser = torch.optim.Adam(groups, lr=training.rate, amsgrad=True, fused=True)
    generator = torch.Generator().manual_seed(seed)

    for _ in range(training.epochs):
        for rows in batches(texts.lengths, training.batch, generator):
            length = int(texts.lengths[rows[0]])
            given = None if weights is None else weights[rows, :length]
            value = loss(model(texts.ids[rows, :length], given), rows)
            optimiser.zero_grad()
            value.backward()
            optimiser.step()
    return model


def labelled(texts: Texts) -> Loss:
    """Cross-entropy with the labels."""

    def loss(reading: Reading, rows: Int[Tensor, " row"]) -> Float[Tensor, ""]:
        return F.binary_cross_entropy_with_logits(reading.logit, texts.labels[rows])

    return loss


def opposed(base: Reading, strength: float) -> Loss:
    """TVD(ŷ, ŷ of base) - λ KL(α || α of base), the mean over texts; λ is ``strength``.

    The published code adds up the batch, so its λ are in other units.
    """

    def loss(reading: Reading, rows: Int[Tensor, " row"]) -> Float[Tensor, ""]:
        places = reading.weights.shape[1]
        distance = tvd(reading.probability, base.probability[rows])
        unlike = kl(reading.weights, base.weights[rows, :places])
        return (distance - strength * unlike).mean()

    return loss
