"""Occlusion: by how much the target falls when a unit, or a window of units, is removed and everything else stays."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Int

from whence.core.registry import Needs, method
from whence.core.scores import Scores
from whence.games.game import Game


@method("occlusion", version=1, cites="zeiler2014visualizing")
@dataclass(frozen=True, slots=True)
class Occlusion:
    """The fall of the target when a unit is removed alone, or the mean fall over the windows of neighbours that hold it.

    ``window`` is the number of neighbouring units removed together, ``stride`` how far the next window begins after the last. With a
    window of one the score is exactly v(all) − v(all but the unit). A window never reaches from one text of a pair into the other; a
    text that is shorter than the window is one window. The last window ends with the text, so that every unit is in one.
    ``removal`` says what stands in place of what is removed.
    """

    removal: str = "auto"
    window: int = 1
    stride: int = 1

    needs: ClassVar[Needs] = Needs.GAME
    signed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.window < 1:
            raise ValueError(f"window must be at least 1 unit, not {self.window}")
        if not 1 <= self.stride <= self.window:
            raise ValueError(
                f"stride must be from 1 to window ({self.window}), or units between windows get no score, not {self.stride}"
            )

    def __call__(self, game: Game) -> Scores:
        removed = windows(
            np.array([part for part, *_ in game.passage.unit_spans]), self.window, self.stride
        )
        falls = game.full - game(~removed)
        return Scores(units=falls @ removed / removed.sum(0))


def windows(
    parts: Int[np.ndarray, " unit"], window: int, stride: int
) -> Bool[np.ndarray, "window unit"]:
    """Every window of neighbours, as a mask of its units; ``parts`` says which text a unit belongs to, and windows stay within one.

    >>> windows(np.array([0, 0, 0, 1]), window=2, stride=1).astype(int)
    array([[1, 1, 0, 0],
           [0, 1, 1, 0],
           [0, 0, 0, 1]])
    """
    borders = np.flatnonzero(np.diff(parts)) + 1
    spans = [
        (first, first + min(window, end - start))
        for start, end in zip([0, *borders], [*borders, len(parts)], strict=True)
        for first in sorted(
            {*range(start, max(end - window, start) + 1, stride), max(end - window, start)}
        )
    ]
    place = np.arange(len(parts))
    return np.array([(first <= place) & (place < last) for first, last in spans])
