"""How far two distributions are apart: Kullback–Leibler, Jensen–Shannon and total variation.

All are in nats, and shapes are broadcast. A place where both have no weight (padding) adds nothing.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

MOST = math.log(2)  # the largest Jensen–Shannon divergence: no place in common
SMALLEST = torch.finfo(torch.float32).tiny


def kl(
    p: Float[Tensor, "*#more place"], q: Float[Tensor, "*#more place"]
) -> Float[Tensor, "*#more"]:
    """KL(p || q) = Σ p log(p / q). The order matters.

    >>> one, other = torch.tensor([0.9, 0.1]), torch.tensor([0.5, 0.5])
    >>> round(float(kl(one, other)), 4), round(float(kl(other, one)), 4)
    (0.3681, 0.5108)
    """
    # the logarithm of zero would make the gradient at padding not a number
    log_p, log_q = p.clamp_min(SMALLEST).log(), q.clamp_min(SMALLEST).log()
    return (p * (log_p - log_q)).sum(-1)


def jsd(
    p: Float[Tensor, "*#more place"], q: Float[Tensor, "*#more place"]
) -> Float[Tensor, "*#more"]:
    """Jensen–Shannon divergence: the mean KL of both to their mixture, from 0 to ln 2.

    >>> jsd(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])) == torch.tensor(2.0).log()
    tensor(True)
    """
    mixture = (p + q) / 2
    return (kl(p, mixture) + kl(q, mixture)) / 2


def tvd(p: Float[Tensor, "*#more"], q: Float[Tensor, "*#more"]) -> Float[Tensor, "*#more"]:
    """Total variation distance of two answers, each given by its probability of the label 1.

    ½ Σ_y |p(y) - q(y)| over both labels is ½ (|p - q| + |(1 - p) - (1 - q)|) = |p - q|. The
    published code takes ½ |p - q|, which is half of it.

    >>> float(tvd(torch.tensor(1.0), torch.tensor(0.25)))
    0.75
    """
    return (p - q).abs()
