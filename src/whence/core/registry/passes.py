"""Passes: how often a method will run the model, as it declares itself before it runs."""

from __future__ import annotations

from dataclasses import dataclass

# a backward pass does about twice the arithmetic of a forward one
BACKWARD = 2


@dataclass(frozen=True)
class Passes:
    """How often a method runs the model, beyond the one trace that methods share.

    A method declares it by ``passes(self, units)``. ``at_most`` says that it may stop sooner.
    ``pool`` is a name for masks that methods draw alike: whoever comes first pays for them, and
    methods of the same pool and removal find theirs in the game's memory.

    >>> Passes(forwards=16, backwards=16).weight
    48
    """

    forwards: int = 0
    backwards: int = 0
    at_most: bool = False
    pool: str = ""

    @property
    def weight(self) -> int:
        """The passes as one number: a backward pass counts as two forward ones."""
        return self.forwards + BACKWARD * self.backwards
