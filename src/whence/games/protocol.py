"""What methods and metrics may know of a game.

Words under a removal are players of one; features that are switched off are those of another.
"""

from __future__ import annotations

import inspect
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from whence.core.attribution import Cost
from whence.core.target import Target
from whence.core.units import Units


@runtime_checkable
class SetFunction(Protocol):
    """A value for each set of kept players: all that an estimator needs."""

    @property
    def size(self) -> int:
        """The number of players."""
        ...

    def __call__(self, masks: Any, /) -> Any:
        """The value at each row of "mask player"; True keeps a player."""
        ...


_ProtocolMeta: Any = type(Protocol)


class _LooksAtNames(_ProtocolMeta):
    """``isinstance`` sees whether the names are there, and asks for no value.

    Python 3.11 would ask for each, and a game that is asked for ``empty`` runs the model.
    """

    def __instancecheck__(self, instance: object) -> bool:
        missing = object()
        for name in dir(AnyGame):
            is_public = not name.startswith("_")
            if is_public and inspect.getattr_static(instance, name, missing) is missing:
                return False
        return callable(instance)


@runtime_checkable
class AnyGame(SetFunction, Protocol, metaclass=_LooksAtNames):
    """A game as methods and metrics see it, whatever its players are."""

    @property
    def units(self) -> Units:
        """The players."""
        ...

    @property
    def target(self) -> Target:
        """The number that the game gives."""
        ...

    @property
    def removal(self) -> str:
        """What becomes of a player that is not kept."""
        ...

    @property
    def digest(self) -> bytes:
        """A hash of what is played on: the seed of anything random."""
        ...

    @property
    def full(self) -> float:
        """The value when every player is kept."""
        ...

    @property
    def empty(self) -> float:
        """The value when no player is kept."""
        ...

    @property
    def label(self) -> int | None:
        """The label that is predicted when every player is kept; None if there are no labels."""
        ...

    @property
    def cost(self) -> Cost:
        """The passes that were paid so far, and those that memory saved."""
        ...

    def __call__(self, masks: Any, /) -> Float[np.ndarray, " mask"]:
        """The target's value for each mask."""
        ...

    def labels(self, masks: Any, /) -> Int[np.ndarray, " mask"]:
        """The label that the model predicts for each mask."""
        ...

    def about(self, target: Any, /) -> AnyGame:
        """The same game, read for another target; what is remembered costs no pass."""
        ...
