"""What a metric is: a function of rankings or scores that says which values are good ones."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from whence.core.registry import Better, Needs


@runtime_checkable
class Metric(Protocol):
    """One number for each ranking, or for each row of scores.

    What it is given follows from its needs (``GIVEN_TO_METRICS``): a game and rankings, a game and
    scores, a mask of gold units and either, or scores alone. One that needs the explanation made
    again is an ``AgainMetric``.

    ``better`` says which values are good. ``range`` holds the values on a game whose own values
    lie between 0 and 1; on other games a metric is in the game's unit, unless it has none.
    ``chance`` is what random rankings get, on average, of a hundred units that act independently:
    half of them do nothing, the weights of the others are drawn from the exponential distribution,
    and all sum to one. On any other game it is the random control that says what chance gets.
    """

    @property
    def needs(self) -> Needs:
        """Rankings or scores, and what to hold them against."""
        ...

    @property
    def better(self) -> Better:
        """Which values are the good ones: "higher" or "lower"."""
        ...

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest value, on a game with values from 0 to 1."""
        ...

    @property
    def chance(self) -> float:
        """What random rankings get, where units act independently."""
        ...

    def __call__(self, *given: Any) -> Any:
        """The value of each row of "ranking unit", the most important unit first.

        A metric that needs scores gets rows of "attribution unit" instead. A metric of a game also
        has ``passes(units)``: the most masks that one row asks the game for.
        """
        ...
