"""Adam without weight decay, after a clip of the gradient's length, on tensors that are given.

Kingma and Ba 2015, with the usual 0.9 and 0.999. Moments are tensors like the parameters, so that a
checkpoint holds all there is.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

BETAS = (0.9, 0.999)
EPSILON = 1e-8


def clip_(gradients: Mapping[str, Tensor], most: float) -> float:
    """Shorten all gradients together to a length of at most ``most``; return what it was.

    >>> gradients = {"a": torch.tensor([3.0]), "b": torch.tensor([4.0])}
    >>> clip_(gradients, 1.0), gradients["a"].item().__round__(4)
    (5.0, 0.6)
    """
    lengths = [gradient.norm() for gradient in gradients.values()]
    length = float(torch.stack(lengths).norm())
    if length > most:
        for gradient in gradients.values():
            gradient.mul_(most / length)
    return length


def adam_(
    parameters: Mapping[str, Tensor],
    gradients: Mapping[str, Tensor],
    first: Mapping[str, Tensor],
    second: Mapping[str, Tensor],
    step: int,
    rate: float,
) -> None:
    """Move the parameters, in place, by step ``step``, which is counted from 0."""
    from torch.optim.adam import adam

    names = list(parameters)
    adam(
        [parameters[name] for name in names],
        [gradients[name] for name in names],
        [first[name] for name in names],
        [second[name] for name in names],
        [],
        [torch.tensor(float(step)) for _ in names],  # it adds one
        fused=True,
        amsgrad=False,
        beta1=BETAS[0],
        beta2=BETAS[1],
        lr=rate,
        weight_decay=0.0,
        eps=EPSILON,
        maximize=False,
    )


def along_removed_(
    gradient: Float[Tensor, "feature dim"], directions: Float[Tensor, "feature dim"]
) -> None:
    """Take from the gradient of unit directions what would only change their lengths."""
    along = torch.linalg.vecdot(gradient, directions)
    gradient.addcmul_(along[:, None], directions, value=-1)


def unit_(directions: Float[Tensor, "feature dim"]) -> None:
    """Give each direction the length 1, in place; one of length 0 stays."""
    directions.div_(directions.norm(dim=1, keepdim=True).clamp_min(1e-12))
