"""What waits to be done, and what becomes of it when a worker dies.

A part whose worker died is done again, first of all, unless the worker had written it. If it kills
workers twice, its rows are tried one by one, and those that kill their worker become failures. So
it is for every engine whose workers can die.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from whence.core.errors import ModelError

# so often a part may kill its worker before its rows are done one by one
DEATHS = 2
# workers that die before their first part, one after the other: something else is wrong
MOST_STILLBORN = 3


@dataclass(frozen=True)
class Order:
    """What a worker is told to do: a part, and whether it is known to kill.

    ``apart`` asks for each row to be announced and tried alone; those in ``deadly`` are not tried.
    ``again`` says that an earlier worker was lost over it, perhaps after it had written the part
    and before it could say so.
    """

    part: int
    apart: bool = False
    deadly: tuple[int, ...] = ()
    again: bool = False


@dataclass
class Hand:
    """What is known of a worker: what it is at."""

    is_ready: bool = False  # whether its model is loaded
    order: Order | None = None  # None while it loads its model, and when it waits
    row: int | None = None  # the one that it is at, where rows are tried alone


@dataclass
class Pool:
    """The parts that are still to be done, and what is known of those that killed."""

    waiting: list[int]
    deaths: dict[int, int] = field(default_factory=dict)
    deadly: dict[int, set[int]] = field(default_factory=dict)  # rows, by part
    unheard: set[int] = field(default_factory=set)  # parts whose worker was lost, whoever's fault
    stillborn: int = 0

    def give(self, hand: Hand) -> Order | None:
        """The next order, for a worker that waits; None if it does not, or nothing is left."""
        if not hand.is_ready or hand.order is not None or not self.waiting:
            return None
        part = self.waiting.pop(0)
        apart = self.deaths.get(part, 0) >= DEATHS
        deadly = tuple(sorted(self.deadly.get(part, ())))
        hand.order = Order(part, apart, deadly, again=part in self.unheard)
        return hand.order

    def done(self, hand: Hand) -> None:
        """A worker has done what it was told."""
        hand.order = hand.row = None
        self.stillborn = 0

    def lost(self, hand: Hand, how: str, is_blameless: bool = False) -> None:
        """A worker is gone. Unless something else killed it, its part is blamed."""
        if hand.order is None:
            if not hand.is_ready and not is_blameless:
                self.stillborn += 1
            if self.stillborn >= MOST_STILLBORN:
                raise ModelError(
                    f"{self.stillborn} workers ended before they did anything ({how}). "
                    "What they said stands above; with the engine inline the work is done in this "
                    "process."
                )
            return
        part = hand.order.part
        self.waiting.insert(0, part)
        self.unheard.add(part)
        if is_blameless:
            return
        self.deaths[part] = self.deaths.get(part, 0) + 1
        if hand.row is not None:
            self.deadly.setdefault(part, set()).add(hand.row)
