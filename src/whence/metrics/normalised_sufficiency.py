"""Sufficiency between that of the worst ranking of the text and that of the best."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.core.registry import Better, Needs, metric, setting
from whence.games.protocol import AnyGame
from whence.metrics.curves import SHARES, counts_of
from whence.metrics.limits import EXACT, EXACTLY, IN_WIDTH, WIDTH, Search, between, limits
from whence.metrics.sufficiency import Sufficiency


@metric("normalised-sufficiency", version=2, cites="edin2025normalized")
@dataclass(frozen=True, slots=True)
class NormalisedSufficiency:
    """Where sufficiency lies between the worst ranking of this text (0) and the best (1).

    Here high values are good, also though low ones are in sufficiency itself. How little can be
    missing depends on the model and the text; this takes it out, so that texts and models compare.
    Where every ranking is as good as any other, it is a half.
    """

    exact: int = setting(EXACT, EXACTLY)
    width: int = setting(WIDTH, IN_WIDTH)

    needs: ClassVar[Needs] = Needs.GAME | Needs.RANKINGS
    better: ClassVar[Better] = "higher"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    chance: ClassVar[float] = 0.32  # 0.172 of the 0.54 that the best ranking keeps
    misleads: ClassVar[str] = (
        "On a text where hardly anything is missing it blows up small differences. On long texts "
        "the best and the worst are searched for, and may not be the very best and worst."
    )

    def __post_init__(self) -> None:
        Search(self.exact, self.width)

    def passes(self, units: int) -> int:
        """Those of the search, of the ranking itself, and the whole text."""
        return Search(self.exact, self.width).passes(units, counts_of(units)) + len(SHARES) + 1

    def __call__(
        self, game: AnyGame, rankings: Int[np.ndarray, "ranking unit"]
    ) -> Float[np.ndarray, " ranking"]:
        full = game.full

        def missing(kept: Bool[np.ndarray, "set unit"]) -> Float[np.ndarray, " set"]:
            return full - game(kept)

        search = Search(self.exact, self.width)
        best, worst = limits(missing, game.size, counts_of(game.size), search)
        return between(Sufficiency()(game, rankings), worst, best, scale=full)
