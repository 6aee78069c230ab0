"""How far two distributions are apart: Kullback–Leibler and Jensen–Shannon, both in nats.

Gradients go through both. A place where both have no weight (padding, a hidden key) adds nothing.
The total variation of two outputs is ``Model.change``. Core, which knows no torch, has its own
table of divergences between heads (``core/heads.py``).
"""

from __future__ import annotations

from math import log

import torch
from jaxtyping import Float
from torch import Tensor

MOST = log(2)  # the largest Jensen–Shannon divergence: no place in common


def kl(
    p: Float[Tensor, "*#more place"], q: Float[Tensor, "*#more place"]
) -> Float[Tensor, "*#more"]:
    """KL(p || q) = Σ p log(p / q). The order matters.

    >>> one, other = torch.tensor([0.9, 0.1]), torch.tensor([0.5, 0.5])
    >>> round(float(kl(one, other)), 4), round(float(kl(other, one)), 4)
    (0.3681, 0.5108)
    """
    # the logarithm of zero would make the gradient at padding not a number
    smallest = torch.finfo(p.dtype).tiny
    log_p, log_q = p.clamp_min(smallest).log(), q.clamp_min(smallest).log()
    return (p * (log_p - log_q)).sum(-1)


def jsd(
    p: Float[Tensor, "*#more place"], q: Float[Tensor, "*#more place"]
) -> Float[Tensor, "*#more"]:
    """Jensen–Shannon divergence: the mean KL of both to their mixture, from 0 to ln 2.

    >>> jsd(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])) == torch.tensor(2.0).log()
    tensor(True)
    """
    mixture = (p + q) / 2
    divergence = (kl(p, mixture) + kl(q, mixture)) / 2
    return divergence.clamp_min(0)  # of equals, rounding leaves the last digits on either side
