"""Group: the processes that share a batch; each has some of its rows, and all get the same sums."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor


@dataclass(frozen=True)
class Group:
    """Sums over processes. ``handle`` is a process group of torch; without one it is one process.

    >>> Group().sum(3.0)
    3.0
    """

    handle: Any = None

    def sum(self, number: float) -> float:
        """The sum of a number that each process has."""
        if self.handle is None:
            return number
        total = torch.tensor(number, dtype=torch.float64)
        return float(self._reduce(total, "SUM"))

    def least(self, number: float) -> float:
        """The least of the numbers that the processes have.

        >>> Group().least(3.0)
        3.0
        """
        if self.handle is None:
            return number
        return float(self._reduce(torch.tensor(number, dtype=torch.float64), "MIN"))

    def total_rows(self, rows: int) -> int:
        """The rows of the whole batch."""
        return round(self.sum(float(rows)))

    def sum_(self, tensors: Iterable[Tensor]) -> None:
        """Put the sum over processes in the place of each tensor."""
        if self.handle is not None:
            for tensor in tensors:
                self._reduce(tensor, "SUM")

    def any(self, flags: Bool[Tensor, " feature"]) -> Bool[Tensor, " feature"]:
        """Where any process says so."""
        if self.handle is None:
            return flags
        return self._reduce(flags.to(torch.uint8), "MAX").bool()

    def largest(self, numbers: Float[Tensor, " entry"], count: int) -> Float[Tensor, " kept"]:
        """Of each process, its largest ``count`` numbers (or all it has), together."""
        kept = numbers.topk(min(count, len(numbers)), sorted=False).values
        if self.handle is None:
            return kept
        from torch import distributed

        sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(distributed.get_world_size())]
        distributed.all_gather(sizes, torch.tensor([len(kept)]), group=self.handle)
        longest = max(int(size) for size in sizes)
        padded = kept.new_full((longest,), -torch.inf)
        padded[: len(kept)] = kept
        gathered = [torch.empty_like(padded) for _ in sizes]
        distributed.all_gather(gathered, padded, group=self.handle)
        return torch.cat([part[: int(size)] for part, size in zip(gathered, sizes, strict=True)])

    def _reduce(self, tensor: Tensor, how: str) -> Tensor:
        from torch import distributed

        distributed.all_reduce(tensor, op=getattr(distributed.ReduceOp, how), group=self.handle)
        return tensor


def largest_of_all(numbers: Float[Tensor, " entry"], count: int, group: Group) -> float:
    """The ``count``-th largest number of all processes; where there are fewer, the least one.

    >>> largest_of_all(torch.tensor([1.0, 5.0, 3.0]), 2, Group())
    3.0
    """
    kept = group.largest(numbers.detach(), count)
    if len(kept) == 0:
        return 0.0
    place = max(1, len(kept) - count + 1)
    return float(kept.kthvalue(place).values)
