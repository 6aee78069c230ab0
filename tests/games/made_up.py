"""A game whose players are no words: features that are switched off. No text, no model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from whence.core.attribution import Cost
from whence.core.target import Target, as_target
from whence.core.units import Units


@dataclass
class FeatureGame:
    """A game from a function of masks, which has what ``games/protocol.py`` asks for, and no more.

    ``asked`` counts the masks; the label is whether the value is above zero.
    """

    size: int
    value: Callable[[np.ndarray], np.ndarray]
    target: Target = field(default_factory=lambda: Target("yes", index=1))
    removal: str = "switch-off"
    digest: bytes = b"made up"
    asked: int = 0

    @property
    def units(self) -> Units:
        return Units("feature", tuple(f"feature {i}" for i in range(self.size)))

    @property
    def full(self) -> float:
        return float(self(np.ones((1, self.size), dtype=bool))[0])

    @property
    def empty(self) -> float:
        return float(self(np.zeros((1, self.size), dtype=bool))[0])

    @property
    def label(self) -> int | None:
        return int(self.labels(np.ones((1, self.size), dtype=bool))[0])

    @property
    def cost(self) -> Cost:
        return Cost(forwards=self.asked)

    def __call__(self, masks: Any, /) -> np.ndarray:
        masks = np.asarray(masks, dtype=bool)
        assert masks.ndim == 2
        assert masks.shape[1] == self.size
        self.asked += len(masks)
        return np.asarray(self.value(masks.astype(np.float64)), dtype=np.float64)

    def labels(self, masks: Any, /) -> np.ndarray:
        return (self(masks) > 0).astype(np.int64)

    def about(self, target: Any, /) -> FeatureGame:
        return replace(self, target=as_target(target))


def additive(weights: np.ndarray, start: float = 0.0) -> FeatureGame:
    """Units that act independently: the value is the sum of the weights of those that are kept."""
    return FeatureGame(len(weights), lambda z: start + z @ weights)
