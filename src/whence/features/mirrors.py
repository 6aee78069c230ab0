"""An autoencoder without training: a feature for each sign of each dimension of a hidden state.

Its encoder is [I; −I] and so is its decoder, so that nothing is missed: a closed form to test
against, and the raw dimensions as features, which a trained autoencoder should beat.
"""

from __future__ import annotations

import torch

from whence.core.features import About
from whence.features.autoencoder import Autoencoder
from whence.features.rules import Relu
from whence.models.blocks import side_of
from whence.models.model import Model
from whence.models.sample import sample
from whence.trace.hidden import hidden_at


def mirror(model: Model, layer: int, kind: str | None = None) -> Autoencoder:
    """Feature ``i`` is dimension ``i`` where it is above 0; the others where it is below.

    >>> import whence
    >>> autoencoder = mirror(whence.load("writer"), layer=1)
    >>> autoencoder.size, autoencoder.dim
    (384, 192)
    """
    (states,) = hidden_at(model, [sample(model)], layer, kind)
    dim = states.shape[-1]
    both = torch.cat([torch.eye(dim), -torch.eye(dim)])
    about = About(
        model=model.name,
        fingerprint=model.fingerprint,
        layer=layer,
        kind=side_of(model, kind),
        variant="mirror",
        size=2 * dim,
        dim=dim,
    )
    return Autoencoder(both, torch.zeros(2 * dim), both, torch.zeros(dim), Relu(), about)
