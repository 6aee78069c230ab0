"""Games that are a formula: all that the estimators may know of a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Formula:
    """A game from a function of masks as floats, with the masks that it was asked for."""

    size: int
    value: Callable[[np.ndarray], np.ndarray]
    asked: list[bytes] = field(default_factory=list)

    def __call__(self, masks: object) -> np.ndarray:
        kept = np.asarray(masks, dtype=bool)
        self.asked += [mask.tobytes() for mask in kept]
        return self.value(kept.astype(np.float64))


def sigmoid(units: int, seed: int) -> Formula:
    weights = 1.2 * np.random.default_rng(seed).normal(size=units)
    return Formula(units, lambda z: 1 / (1 + np.exp(0.3 - z @ weights)))


def bent_attention(units: int, seed: int) -> Formula:
    """A ratio of sums, bent, with a ripple: near to the surrogate's class and outside it."""
    rng = np.random.default_rng(seed)
    value, weight, ripple = rng.normal(size=(3, units))
    g = np.exp(1.2 * weight)

    def bent(z: np.ndarray) -> np.ndarray:
        ratio = z @ (2 * g * value) / (1 + z @ g)
        return np.tanh(ratio) + 0.2 * np.sin(z @ ripple)

    return Formula(units, bent)


def additive(units: int, seed: int) -> Formula:
    weights = np.random.default_rng(seed).normal(size=units)
    return Formula(units, lambda z: 2.0 + z @ weights)
