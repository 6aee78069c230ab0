"""A planted dictionary: 48 directions in 24 dimensions, each present in a twentieth of the rows."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from whence.features.fitting import Report, Settings, State, Statistics, begin, step

TRUE, DIM, SHARE = 48, 24, 0.05


def directions(seed: int = 0) -> Float[Tensor, "true dim"]:
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(TRUE, DIM, generator=generator)
    return drawn / drawn.norm(dim=1, keepdim=True)


def batches(rows: int, seed: int = 1) -> Iterator[Float[Tensor, "row dim"]]:
    """Sums of the directions that are present, each times a number from 0 to 1."""
    generator = torch.Generator().manual_seed(seed)
    truth = directions()
    while True:
        present = torch.rand(rows, TRUE, generator=generator) < SHARE
        amounts = torch.rand(rows, TRUE, generator=generator)
        yield (present * amounts) @ truth


def fit(settings: Settings, seed: int = 1) -> tuple[State, list[Report]]:
    """All steps of a training on planted rows."""
    statistics = Statistics.of(next(batches(20_000, seed=seed + 100)))
    state = begin(settings, DIM, statistics)
    rows = batches(settings.batch, seed=seed)
    return state, [step(state, settings, next(rows)) for _ in range(settings.steps)]
