"""Whether a model chooses: a router that sends each token to a few experts is not continuous.

Found in what the model does, not by its name: during its first trace, top-k and the like are
looked for among the operations on numbers that follow from the input.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from whence.models.modes import Watch, met_by
from whence.models.unbroken import in_one_piece

CHOICES = ("topk", "argmax", "sort", "argsort")

# by model object: whether it chose in its first trace
_chooses: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()


class Watching(Watch):
    """Notes whether the largest of some floating numbers were chosen."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = False

    def see(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Note a choice."""
        del kwargs
        if name in CHOICES and args:
            numbers = args[0]
            self.seen |= isinstance(numbers, Tensor) and torch.is_floating_point(numbers)


@in_one_piece
def watching_for_choices(hf: nn.Module) -> Iterator[None]:
    """Find out, in the first run of a model, whether it chooses. Later runs are not slowed."""
    if hf in _chooses:
        yield
        return
    watching = Watching()
    with met_by(watching):
        yield
    _chooses[hf] = watching.seen


def chooses(hf: nn.Module) -> bool:
    """Whether the model was seen to choose by size; False before its first trace.

    >>> import whence
    >>> model = whence.load("sentiment")
    >>> a = whence.explain(model, "not bad", "gradient-l2", evidence=False)
    >>> chooses(model.hf)
    False
    """
    return _chooses.get(hf, False)
