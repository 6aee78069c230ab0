"""Several processes that train together, as ``torchrun`` starts them; most often it is one."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from jaxtyping import Float
from torch import Tensor

T = TypeVar("T")


@dataclass(frozen=True)
class Processes:
    """This process among those that share each batch. ``group`` is None where it is alone."""

    number: int = 0
    count: int = 1
    group: Any = None

    @property
    def is_first(self) -> bool:
        """Whether this one writes the files and tells of progress."""
        return self.number == 0

    def share(self, rows: Float[Tensor, "row dim"]) -> Float[Tensor, "own dim"]:
        """The rows of a batch that this process works on.

        >>> import torch
        >>> Processes(1, 2).share(torch.arange(5.0)[:, None]).flatten()
        tensor([1., 3.])
        """
        return rows if self.count == 1 else rows[self.number :: self.count]

    def wait(self) -> None:
        """Until all are here."""
        if self.group is not None:
            from torch import distributed

            distributed.barrier(group=self.group)

    def first_then_others(self, work: Callable[[], T]) -> T:
        """Let the first process do it before the others, which then find what it has written."""
        if self.is_first:
            done = work()
            self.wait()
            return done
        self.wait()
        return work()

    def any(self, asked: bool) -> bool:
        """Whether any process says so, so that all stop together."""
        if self.group is None:
            return asked
        from whence.features.groups import Group

        return Group(self.group).sum(float(asked)) > 0


def processes() -> Processes:
    """The processes that ``torchrun`` started, or that the caller has brought together."""
    from torch import distributed

    if not distributed.is_available():
        return Processes()
    if not distributed.is_initialized():
        if int(os.environ.get("WORLD_SIZE", "1")) < 2 or "RANK" not in os.environ:
            return Processes()
        distributed.init_process_group("gloo")
    count = distributed.get_world_size()
    if count == 1:
        return Processes()
    return Processes(distributed.get_rank(), count, distributed.group.WORLD)
