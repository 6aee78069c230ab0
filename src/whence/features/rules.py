"""How pre-activations become activations, once training is over: four rules for six variants.

Each is a small frozen record that can be called. The variants of training
(``whence.features.variants``) end in one of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Relu:
    """``a = max(z, 0)``: the variants ``relu`` and, as a plain dictionary, what others call so.

    >>> Relu()(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def __call__(self, pre: Float[Tensor, "*any feature"]) -> Float[Tensor, "*any feature"]:
        """The activations of these pre-activations."""
        return pre.relu()


@dataclass(frozen=True)
class TopK:
    """The ``k`` largest of each row, as far as they are above zero: the variant ``topk``.

    >>> TopK(1)(torch.tensor([1.0, 3.0, 2.0]))
    tensor([0., 3., 0.])
    """

    k: int

    def __call__(self, pre: Float[Tensor, "*any feature"]) -> Float[Tensor, "*any feature"]:
        """The activations of these pre-activations."""
        largest = pre.topk(min(self.k, pre.shape[-1]), dim=-1)
        return torch.zeros_like(pre).scatter(-1, largest.indices, largest.values.relu())


@dataclass(frozen=True, eq=False)
class Threshold:
    """``a = z`` where it is above the feature's threshold: ``jump-relu``, and ``batch-topk``.

    >>> Threshold(torch.tensor([0.5, 0.5]))(torch.tensor([0.4, 0.6]))
    tensor([0.0000, 0.6000])
    """

    thresholds: Float[Tensor, " feature"]

    def __call__(self, pre: Float[Tensor, "*any feature"]) -> Float[Tensor, "*any feature"]:
        """The activations of these pre-activations."""
        return torch.where(pre > self.thresholds, pre.relu(), 0)


@dataclass(frozen=True, eq=False)
class Gated:
    """Whether a feature is active, and how much, apart: the variant ``gated``.

    The pre-activation itself is the gate; ``scale · z + shift`` is the magnitude. With the names
    of the paper: ``scale = exp(r_mag)``, ``shift = b_mag − exp(r_mag) · b_gate``, and ``b_gate`` is
    the autoencoder's ``encoder_bias``.

    >>> Gated(torch.tensor([2.0]), torch.tensor([1.0]))(torch.tensor([[3.0], [-3.0]])).flatten()
    tensor([7., 0.])
    """

    scale: Float[Tensor, " feature"]
    shift: Float[Tensor, " feature"]

    def __call__(self, pre: Float[Tensor, "*any feature"]) -> Float[Tensor, "*any feature"]:
        """The activations of these pre-activations."""
        magnitude = (self.scale * pre + self.shift).relu()
        return torch.where(pre > 0, magnitude, 0)


Rule = Relu | TopK | Threshold | Gated
