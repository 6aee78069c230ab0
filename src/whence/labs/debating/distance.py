"""How far two answers are apart: the total variation distance."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor


def tvd(p: Float[Tensor, "*#more"], q: Float[Tensor, "*#more"]) -> Float[Tensor, "*#more"]:
    """Total variation distance of two answers, each given by its probability of the label 1.

    ½ Σ_y |p(y) - q(y)| over both labels is ½ (|p - q| + |(1 - p) - (1 - q)|) = |p - q|. The
    published code takes ½ |p - q|, which is half of it.

    >>> import torch
    >>> float(tvd(torch.tensor(1.0), torch.tensor(0.25)))
    0.75
    """
    return (p - q).abs()
