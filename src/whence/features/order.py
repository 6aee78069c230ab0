"""Which rows each step of a training sees: shuffled, and a function of the seed and the step alone.

An epoch takes the shards in a random order, some of them at a time, and shuffles the rows of those.
So no more than these are in memory, and a training that is continued sees the rows that it would
have seen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from whence.core.errors import InputError
from whence.features.cache import Cache

BYTES_AT_ONCE = 2**28  # of shards that are shuffled together


@dataclass(frozen=True, eq=False)
class _Loaded:
    """The shards that are in memory, and the order of their rows."""

    place: tuple[int, int]  # epoch, and number among its groups of shards
    states: Float[Tensor, "row dim"]
    order: Int[Tensor, " row"]


class Rows:
    """The batches of a training. ``at(step)`` is always the same for the same step."""

    def __init__(self, cache: Cache, batch: int, seed: int = 0) -> None:
        self.cache = cache
        self.batch = batch
        self.seed = seed
        if cache.rows < batch:
            raise InputError(
                f"the corpus has {cache.rows:,} tokens to learn from, and a batch has {batch:,}: "
                f"take a longer corpus, or a batch of at most {cache.rows:,} (--batch)."
            )
        dim = cache.states(0).shape[1]
        largest = max(shard.rows for shard in cache.shards)
        self.shards_at_once = max(2, BYTES_AT_ONCE // (4 * dim * largest))
        self._loaded: _Loaded | None = None

    @property
    def steps_of_an_epoch(self) -> int:
        """So many batches are in the corpus; what is left over waits for another epoch's order."""
        return self.cache.rows // self.batch

    def at(self, step: int) -> Float[Tensor, "row dim"]:
        """The rows of a step, counted from 0."""
        epoch, number = divmod(step, self.steps_of_an_epoch)
        first, last = number * self.batch, (number + 1) * self.batch
        parts = []
        begin = 0
        for group, shards in enumerate(self._groups(epoch)):
            end = begin + sum(self.cache.shards[shard].rows for shard in shards)
            if begin < last and first < end:
                loaded = self._load(epoch, group, shards)
                chosen = loaded.order[max(0, first - begin) : last - begin]
                parts.append(loaded.states[chosen])
            begin = end
        return torch.cat(parts)

    def _groups(self, epoch: int) -> list[Sequence[int]]:
        """The shards in the order of an epoch, so many at a time."""
        order = _permutation(len(self.cache.shards), self.seed, epoch, -1).tolist()
        return [
            order[first : first + self.shards_at_once]
            for first in range(0, len(order), self.shards_at_once)
        ]

    def _load(self, epoch: int, group: int, shards: Sequence[int]) -> _Loaded:
        if self._loaded is None or self._loaded.place != (epoch, group):
            self._loaded = None  # or both are in memory
            states = torch.cat([self.cache.states(shard) for shard in shards])
            order = _permutation(len(states), self.seed, epoch, group)
            self._loaded = _Loaded((epoch, group), states, order)
        return self._loaded


def _permutation(size: int, *numbers: int) -> Int[Tensor, " place"]:
    """A shuffled order that depends on these numbers alone."""
    digest = hashlib.sha256(" ".join(map(str, numbers)).encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "little"))
    return torch.randperm(size, generator=generator)
