"""Autoencoder: a hidden state as a sum of a few directions, each with its activation.

    a = rule(W_enc h + b_enc)          how far each feature is present
    s = Σ_j a_j W_dec[j] + b_dec       the hidden state without what the features miss

It works on hidden states as the model has them. What training scaled and centred is folded into
the weights before it gets here. No bias is taken off before encoding (Templeton et al. 2024,
*Scaling Monosemanticity*).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.errors import InputError
from whence.core.features import About
from whence.core.once import once
from whence.features.rules import Gated, Rule, Threshold, TopK


@dataclass(frozen=True, eq=False)
class Autoencoder:
    """A trained dictionary of features. Rows of ``decoder`` are the directions of the features.

    >>> both = torch.cat([torch.eye(2), -torch.eye(2)])
    >>> about = About("none", "", 0, "encoder", "relu", size=4, dim=2)
    >>> from whence.features.rules import Relu
    >>> exact = Autoencoder(both, torch.zeros(4), both, torch.zeros(2), Relu(), about)
    >>> exact.encode(torch.tensor([3.0, -4.0]))
    tensor([3., 0., 0., 4.])
    >>> exact.error(torch.tensor([3.0, -4.0]))
    tensor([0., 0.])
    """

    encoder: Float[Tensor, "feature dim"]
    encoder_bias: Float[Tensor, " feature"]
    decoder: Float[Tensor, "feature dim"]
    decoder_bias: Float[Tensor, " dim"]
    rule: Rule
    about: About

    def __post_init__(self) -> None:
        for name, tensor, shape in self._expected():
            if tuple(tensor.shape) != shape:
                raise InputError(
                    f"{name} of an autoencoder with encoder {tuple(self.encoder.shape)} "
                    f"has the shape {tuple(tensor.shape)}; it must be {shape}."
                )
        if (self.about.size, self.about.dim) != (self.size, self.dim):
            raise InputError(
                f"the weights have {self.size} features of {self.dim} dimensions, but their "
                f"description says {self.about.size} of {self.about.dim}."
            )
        if isinstance(self.rule, TopK) and not 1 <= self.rule.k <= self.size:
            raise InputError(f"k is from 1 to the {self.size} features, not {self.rule.k}.")

    def _expected(self) -> list[tuple[str, Tensor, tuple[int, ...]]]:
        """Each tensor with its name and the shape that it must have."""
        if self.encoder.ndim != 2:
            shape = tuple(self.encoder.shape)
            raise InputError(f"encoder must have two axes, feature and dim; its shape is {shape}.")
        size, dim = self.encoder.shape
        expected = [
            ("encoder_bias", self.encoder_bias, (size,)),
            ("decoder", self.decoder, (size, dim)),
            ("decoder_bias", self.decoder_bias, (dim,)),
        ]
        if isinstance(self.rule, Threshold):
            expected.append(("thresholds", self.rule.thresholds, (size,)))
        if isinstance(self.rule, Gated):
            expected.append(("scale", self.rule.scale, (size,)))
            expected.append(("shift", self.rule.shift, (size,)))
        return expected

    @property
    def size(self) -> int:
        """The number of features."""
        return self.encoder.shape[0]

    @property
    def dim(self) -> int:
        """The width of the hidden state."""
        return self.encoder.shape[1]

    @once
    def norms(self) -> Float[Tensor, " feature"]:
        """The lengths of the directions. ``a_j · norms_j`` is the activation shown to people."""
        return self.decoder.norm(dim=1)

    def pre(self, h: Float[Tensor, "*any dim"]) -> Float[Tensor, "*any feature"]:
        """What the rule is applied to: ``W_enc h + b_enc``."""
        self._check_width(h)
        return torch.nn.functional.linear(h, self.encoder, self.encoder_bias)

    def encode(self, h: Float[Tensor, "*any dim"]) -> Float[Tensor, "*any feature"]:
        """The activation of each feature, not multiplied by the norm of its direction."""
        return self.rule(self.pre(h))

    def decode(self, activations: Float[Tensor, "*any feature"]) -> Float[Tensor, "*any dim"]:
        """The hidden state that these activations stand for."""
        return activations @ self.decoder + self.decoder_bias

    def error(self, h: Float[Tensor, "*any dim"]) -> Float[Tensor, "*any dim"]:
        """What the features miss: ``h − decode(encode(h))``."""
        return h - self.decode(self.encode(h))

    def _check_width(self, h: Tensor) -> None:
        if h.shape[-1] != self.dim:
            raise InputError(
                f"this autoencoder reads hidden states of {self.dim} numbers, not of "
                f"{h.shape[-1]}: it belongs to {self.about.model!r}, layer {self.about.layer}."
            )
