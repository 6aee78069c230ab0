"""Occlusion: by how much the target falls when a unit, or a window of units, is removed."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Int

from whence.core.registry import Needs, Passes, method, setting
from whence.core.scores import Scores
from whence.games.protocol import AnyGame
from whence.games.settings import REMOVAL


@method(
    "occlusion",
    version=1,
    cites="zeiler2014visualizing",
    aliases=("leave-one-out", "loo", "feature-ablation"),
)
@dataclass(frozen=True, slots=True)
class Occlusion:
    """How far the target falls when a word, or a window of neighbouring words, is removed.

    A unit's score is the mean fall over the windows that hold it; with a window of one it is
    exactly v(all) − v(all but the unit). A window never reaches from one text of a pair into the
    other; a text that is shorter than the window is one window. The last window ends with the text,
    so that every unit is in one.
    """

    removal: str = setting("auto", REMOVAL)
    window: int = setting(1, "How many neighbouring units are removed together.")
    stride: int = setting(1, "How many units after the last window the next one begins.")

    needs: ClassVar[Needs] = Needs.GAME
    signed: ClassVar[bool] = True
    price: ClassVar[str] = "One forward pass for each unit."
    misleads: ClassVar[str] = (
        "Of two words that say the same, each scores about zero, as the other one still says "
        "it. The removal decides much: try two."
    )

    def __post_init__(self) -> None:
        if self.window < 1:
            raise ValueError(f"window must be at least 1 unit, not {self.window}")
        if not 1 <= self.stride <= self.window:
            raise ValueError(
                f"stride must be from 1 to window ({self.window}), "
                f"or units between windows get no score, not {self.stride}"
            )

    def passes(self, units: int) -> Passes:
        return Passes(forwards=units, at_most=self.window > 1)

    def __call__(self, game: AnyGame) -> Scores:
        removed = windows(np.array(game.units.parts), self.window, self.stride)
        falls = game.full - game(~removed)
        return Scores(units=falls @ removed / removed.sum(0))


def windows(
    parts: Int[np.ndarray, " unit"], window: int, stride: int
) -> Bool[np.ndarray, "window unit"]:
    """Every window of neighbours, as a mask of its units.

    ``parts`` says which text a unit belongs to, and windows stay within one.

    >>> windows(np.array([0, 0, 0, 1]), window=2, stride=1).astype(int)
    array([[1, 1, 0, 0],
           [0, 1, 1, 0],
           [0, 0, 0, 1]])
    """
    place = np.arange(len(parts))
    borders = np.flatnonzero(np.diff(parts)) + 1
    masks = []
    for start, end in zip([0, *borders], [*borders, len(parts)], strict=True):
        last_start = max(end - window, start)
        starts = {*range(start, last_start + 1, stride), last_start}
        for first in sorted(starts):
            is_inside = (first <= place) & (place < first + window) & (place < end)
            masks.append(is_inside)
    return np.array(masks)
