"""Stand-ins for hidden states: an autoencoder's, and what costs no training, of as many numbers.

A stand-in gives back rows of hidden states with some of their content lost, and says how many
numbers it kept of each row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from whence.features.autoencoder import Autoencoder
from whence.features.cache import Moments

ROWS_AT_ONCE = 1024
RIDGE = 1e-6  # of the mean of a Gram matrix's diagonal: directions may be nearly the same


@dataclass(frozen=True, eq=False)
class StandIn:
    """A name, and the function from rows to rows and to the numbers kept of each."""

    name: str
    of: Callable[[Float[Tensor, "row dim"]], tuple[Tensor, Tensor]]


def by_features(autoencoder: Autoencoder, name: str = "autoencoder") -> StandIn:
    """What the features say; what they miss is lost."""

    def of(rows: Float[Tensor, "row dim"]) -> tuple[Tensor, Tensor]:
        restored, kept = [], []
        for some in rows.split(ROWS_AT_ONCE):
            activations = autoencoder.encode(some.float())
            restored.append(autoencoder.decode(activations))
            kept.append(activations.count_nonzero(1))
        return torch.cat(restored), torch.cat(kept)

    return StandIn(name, of)


def by_components(moments: Moments, number: int) -> StandIn:
    """The first principal components of the training rows: the best linear code of that size.

    >>> whole = Moments(9, torch.zeros(2), torch.diag(torch.tensor([4.0, 1.0])), 1.0, 1.0)
    >>> by_components(whole, 1).of(torch.tensor([[3.0, 5.0]]))[0]
    tensor([[3., 0.]])
    """
    _, vectors = torch.linalg.eigh(moments.covariance.double())
    first = vectors.flip(1)[:, :number].float()
    mean = moments.mean.float()

    def of(rows: Float[Tensor, "row dim"]) -> tuple[Tensor, Tensor]:
        restored = (rows.float() - mean) @ first @ first.T + mean
        return restored, torch.full((len(rows),), first.shape[1])

    return StandIn(f"{number} principal components", of)


def by_neurons(moments: Moments, number: int) -> StandIn:
    """The entries of a hidden state that are farthest from their mean; the others are the mean.

    >>> whole = Moments(9, torch.zeros(3), torch.eye(3), 1.0, 1.0)
    >>> by_neurons(whole, 1).of(torch.tensor([[3.0, -5.0, 1.0]]))[0]
    tensor([[ 0., -5.,  0.]])
    """
    mean = moments.mean.float()

    def of(rows: Float[Tensor, "row dim"]) -> tuple[Tensor, Tensor]:
        centred = rows.float() - mean
        largest = centred.abs().topk(min(number, centred.shape[1]), dim=1).indices
        kept = torch.zeros_like(centred).scatter(1, largest, centred.gather(1, largest))
        return kept + mean, torch.full((len(rows),), largest.shape[1])

    return StandIn(f"{number} largest neurons", of)


def by_random_directions(moments: Moments, size: int, number: int, seed: int = 0) -> StandIn:
    """Random directions in the place of learned ones.

    Of each row the ``number`` directions nearest to it are taken, with the coefficients that
    restore it best (least squares): more than an encoder could do.
    """
    generator = torch.Generator().manual_seed(seed)
    directions = torch.randn(size, len(moments.mean), generator=generator)
    directions /= directions.norm(dim=1, keepdim=True)
    mean = moments.mean.float()
    number = min(number, size, len(mean))

    def of(rows: Float[Tensor, "row dim"]) -> tuple[Tensor, Tensor]:
        restored = []
        for some in rows.float().split(ROWS_AT_ONCE):
            centred = some - mean
            nearest = (centred @ directions.T).abs().topk(number, dim=1).indices
            chosen = directions[nearest]  # row number dim
            products = chosen @ chosen.mT
            products += RIDGE * torch.eye(number)
            right = chosen @ centred[..., None]
            coefficients = torch.linalg.solve(products, right)
            restored.append((coefficients * chosen).sum(1) + mean)
        return torch.cat(restored), torch.full((len(rows),), number)

    return StandIn(f"{number} of {size} random directions", of)
