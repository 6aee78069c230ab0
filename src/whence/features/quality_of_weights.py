"""What can be said of an autoencoder from its weights and some rows, without the model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.errors import InputError
from whence.features.autoencoder import Autoencoder

ROWS = 1024  # encoded at a time


@dataclass(frozen=True, eq=False)
class Use:
    """How an autoencoder does on some rows.

    ``variance_explained`` is ``1 − Σ‖h − s‖² / Σ‖h − h̄‖²``: 1 for a perfect reconstruction, 0 for
    one that is no better than the mean. ``l0`` is the mean number of active features. ``frequency``
    is the share of rows in which each feature is active, ``peak`` the largest activation times
    decoder norm that it had.
    """

    rows: int
    variance_explained: float
    l0: float
    frequency: Float[Tensor, " feature"]
    peak: Float[Tensor, " feature"]


@torch.no_grad()
def use_of(autoencoder: Autoencoder, batches: Iterable[Float[Tensor, "row dim"]]) -> Use:
    """Encode all rows of the batches once.

    >>> from whence.core.features import About
    >>> from whence.features.rules import Relu
    >>> both, about = torch.tensor([[1.0], [-1.0]]), About("", "", 0, "encoder", "relu", 2, 1)
    >>> exact = Autoencoder(both, torch.zeros(2), both, torch.zeros(1), Relu(), about)
    >>> use = use_of(exact, [torch.tensor([[3.0], [-1.0]])])
    >>> use.variance_explained, use.l0, use.peak.tolist()
    (1.0, 1.0, [3.0, 1.0])
    """
    rows = 0
    missed, squares = 0.0, 0.0
    total = torch.zeros(autoencoder.dim, dtype=torch.float64)
    active = torch.zeros(autoencoder.size, dtype=torch.int64)
    peak = torch.zeros(autoencoder.size)
    shift = None  # sums of squares are taken from the first row, so that they stay small
    for batch in batches:
        for part in batch.split(ROWS):
            shift = part[0].double() if shift is None else shift
            activations = autoencoder.encode(part)
            error = part - autoencoder.decode(activations)
            centred = part.double() - shift
            rows += len(part)
            missed += float(error.double().square().sum())
            squares += float(centred.square().sum())
            total += centred.sum(dim=0)
            active += (activations > 0).sum(dim=0)
            peak = torch.maximum(peak, (activations * autoencoder.norms).amax(dim=0))
    if rows == 0:
        raise InputError("there are no rows to look at.")
    spread = squares - float(total.square().sum()) / rows
    return Use(
        rows=rows,
        variance_explained=1 - missed / spread if spread > 0 else 0.0,
        l0=float(active.sum()) / rows,
        frequency=active / rows,
        peak=peak,
    )


def best_cosines(
    wanted: Float[Tensor, "wanted dim"], found: Float[Tensor, "found dim"]
) -> Float[Tensor, " wanted"]:
    """For each wanted direction, its cosine with the nearest of those that were found.

    >>> best_cosines(torch.tensor([[0.0, 2.0]]), torch.tensor([[3.0, 0.0], [3.0, 4.0]])).round(
    ...     decimals=4
    ... )
    tensor([0.8000])
    """
    unit = torch.nn.functional.normalize
    return (unit(wanted, dim=1) @ unit(found, dim=1).T).amax(dim=1)
