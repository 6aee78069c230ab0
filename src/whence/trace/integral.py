"""An integral along a path, panel by panel: what each panel gives, what it misses, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whence.trace.path import PER_PANEL, Jump, Panel, Part, Path, Steep

SURE = 3.0  # times the rounding of a value: a panel that misses less is as good as it gets
CLEAR = 10.0  # times the rounding: what a panel misses beyond that is not rounding
WORTH = 1 / 16  # of what is tolerated: a jump below that is not looked for
NOTHING = 1e-12  # a change of the target below that is none

# bisections: a stretch that is found in more is so short that panels are laid towards it at once
SHALLOW = 4

Stop = Literal["met", "rounding", "slow", "spent"]


@dataclass(eq=False)
class Integral:
    """The integral so far: the path cut into panels, and what each of them gives."""

    path: Path
    values: dict[float, float]
    parts: dict[Panel, Part]
    nodes: int = 0
    rounding: float = 0.0
    jumps: list[Jump] = field(default_factory=list)
    stop: Stop = "met"

    def __post_init__(self) -> None:
        self.nodes = PER_PANEL * len(self.parts)

    @property
    def change(self) -> float:
        """The change of the target from the baseline to the text."""
        return self.values[1.0] - self.values[0.0]

    @property
    def smooth_change(self) -> float:
        """The change without what the target jumps: what the scores should sum to."""
        return self.change - sum(jump.size for jump in self.jumps)

    @property
    def tokens(self) -> Float[Tensor, " token"]:
        """The scores."""
        return torch.stack([part.tokens for part in self.parts.values()]).sum(0)

    def gap(self, panel: Panel) -> float:
        """By how much a panel's part misses the change between its ends."""
        a, b = panel
        return abs(float(self.parts[panel].tokens.sum()) - (self.values[b] - self.values[a]))

    def missed(self) -> float:
        """The share of the change that panels miss, without signs, so that none cancel."""
        gaps = [self.gap(panel) for panel in self.parts]
        return sum(gaps) / max(abs(self.change), NOTHING)

    def is_rounding(self, times: float = SURE) -> bool:
        """Whether every panel misses no more than rounding does, so that halving cannot help."""
        return max(self.gap(panel) for panel in self.parts) <= times * self.rounding

    def swing(self) -> float:
        """How far the target moves up and down along the path, over its change."""
        values = [self.values[place] for place in sorted(self.values)]
        return float(np.abs(np.diff(values)).sum()) / max(abs(self.change), NOTHING)

    def stopped(self, stop: Stop) -> Integral:
        """The same, with why it is not refined further."""
        if stop != "met" and self.is_rounding(CLEAR):
            stop = "rounding"
        self.stop = stop
        return self

    def halve_the_worst(self) -> None:
        """Two panels in place of the one that misses most."""
        a, b = max(self.parts, key=self.gap)
        middle = (a + b) / 2
        (self.values[middle],) = self.path.values(np.array([middle]))
        self._replace((a, b), [(a, middle), (middle, b)])

    def look(self, tolerance: float, searches: int, max_nodes: int) -> int:
        """Find out what the worst panels miss: rounding, jumps, which are cut out, or steepness.

        Gives the number of panels that were searched for a jump.
        """
        worst = sorted(self.parts, key=self.gap, reverse=True)
        if not self.rounding:
            self.rounding = self.path.rounding(sum(worst[0]) / 2)
        least = max(CLEAR * self.rounding, WORTH * tolerance * abs(self.change))
        searched = 0
        for panel in worst[:searches]:
            if self.gap(panel) < least or self.missed() <= tolerance:
                break
            if self.nodes + 2 * PER_PANEL > max_nodes:
                break
            searched += 1
            found = self.path.search(panel, self.parts[panel], self.values, least)
            if isinstance(found, Jump):
                self.jumps.append(found)
                self._replace(panel, _around(panel, found))
            elif len(found.places) > SHALLOW:
                smaller = _towards(panel, found)
                if self.nodes + PER_PANEL * len(smaller) <= max_nodes:
                    self._replace(panel, smaller)
        return searched

    def _replace(self, panel: Panel, smaller: list[Panel]) -> None:
        del self.parts[panel]
        self.nodes += PER_PANEL * len(smaller)
        self.parts |= dict(zip(smaller, self.path.parts(smaller), strict=True))

    def detail(self) -> Mapping[str, Any] | None:
        """What is known of a path that was not integrated to the tolerance."""
        if self.stop == "met" and not self.jumps:
            return None
        jumps = sorted(self.jumps, key=lambda jump: jump.before)
        return {
            "stopped": self.stop,
            "nodes": self.nodes,
            "missed": self.missed(),
            "rounding": self.rounding,
            "change": self.change,
            "swing": self.swing(),
            "jumps": [[jump.before, jump.after, jump.size] for jump in jumps],
        }


def _around(panel: Panel, jump: Jump) -> list[Panel]:
    """The panel without the jump."""
    a, b = panel
    return [(x, y) for x, y in ((a, jump.before), (jump.after, b)) if x < y]


def _towards(panel: Panel, steep: Steep) -> list[Panel]:
    """Panels that get shorter towards the steep stretch.

    >>> _towards((0.0, 1.0), Steep((0.5, 0.25, 0.125, 0.0625)))
    [(0.0, 0.0625), (0.0625, 0.125), (0.125, 0.5), (0.5, 1.0)]
    """
    # every other cut is enough, and the last two hold the stretch
    cuts = {*steep.places[:-2:2], *steep.places[-2:]}
    ends = sorted({*panel, *cuts})
    return list(pairwise(ends))
