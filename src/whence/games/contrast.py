"""A game whose value is a difference: how much better one text follows a prompt than another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from whence.core.attribution import Cost
from whence.core.target import Target
from whence.core.units import Units
from whence.games.game import AnyRemover, Game

OTHER = -1  # the label of the text that was not written; both may begin with the same token


@dataclass(frozen=True, eq=False, repr=False)
class RivalGame:
    """``v(masks)`` of one continuation less that of another, under the same masks of the prompt.

    Its label is which of the two is the likelier: that of the target for the first, else the other.
    """

    first: Game
    second: Game
    target: Target

    @property
    def size(self) -> int:
        """The number of units."""
        return self.first.size

    @property
    def units(self) -> Units:
        """The units, in order."""
        return self.first.units

    @property
    def removal(self) -> str:
        """What becomes of a unit that is not kept."""
        return self.first.removal

    @property
    def remover(self) -> AnyRemover:
        """What makes the rows of the first text; that of the other does the same."""
        return self.first.remover

    @property
    def digest(self) -> bytes:
        """A hash of what is played on: the seed of anything random."""
        return self.first.digest

    @property
    def full(self) -> float:
        """The value when the whole prompt is kept."""
        return self.first.full - self.second.full

    @property
    def empty(self) -> float:
        """The value when every unit is removed."""
        return self.first.empty - self.second.empty

    @property
    def label(self) -> int:
        """Which of the two is the likelier after the whole prompt."""
        return int(self._likelier(np.array([self.full]))[0])

    @property
    def is_still(self) -> bool:
        """Whether neither text has become likelier or less so, whatever was taken out so far."""
        return self.first.is_still and self.second.is_still

    @property
    def logits_read(self) -> Float[np.ndarray, " label"]:
        """What the model says where both texts begin."""
        return self.first.logits_read

    @property
    def cost(self) -> Cost:
        """Passes paid for both, passes that memory saved, and seconds, so far."""
        costs = (self.first.cost, self.second.cost)
        return Cost(
            forwards=sum(cost.forwards for cost in costs),
            seconds=sum(cost.seconds for cost in costs),
            saved=sum(cost.saved for cost in costs),
        )

    def about(self, target: Any, /) -> RivalGame:
        """The same game under another name of its target."""
        return replace(self, target=target)

    def __call__(self, masks: Any, /) -> Float[np.ndarray, " mask"]:
        """The difference for each mask."""
        return self.first(masks) - self.second(masks)

    def labels(self, masks: Any, /) -> Int[np.ndarray, " mask"]:
        """Which of the two is the likelier for each mask."""
        return self._likelier(self(masks))

    def _likelier(self, values: Float[np.ndarray, " mask"]) -> Int[np.ndarray, " mask"]:
        own = self.target.index
        assert own is not None  # the target of a game is resolved
        return np.where(values > 0, own, OTHER).astype(np.int64)
