"""Games that are given as a function of the mask: a test can enumerate their every value."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from whence.core.attribution import Cost
from whence.core.target import Target
from whence.core.units import Units


class Table:
    """A game whose values are ``value(masks)``; it has no model and no text behind it.

    The label is 1 where the value is above zero. Every mask that it was asked is noted.
    """

    removal = "mask"

    def __init__(
        self,
        size: int,
        value: Callable[[np.ndarray], np.ndarray],
        parts: Sequence[int] | None = None,
        kind: str = "word",
    ) -> None:
        parts = [0] * size if parts is None else parts
        names = tuple(f"w{place}" for place in range(size))
        spans = tuple((part, place, place + 1) for place, part in enumerate(parts))
        self.size = size
        self.value = value
        self.units = Units(kind, names, spans=spans)
        self.asked: list[np.ndarray] = []
        self.label: int | None = int(self.labels(np.ones((1, size), dtype=bool))[0])
        self.target = Target("yes", index=self.label)

    @property
    def digest(self) -> bytes:
        return hashlib.sha256(repr(self.units).encode()).digest()

    @property
    def full(self) -> float:
        return float(self(np.ones((1, self.size), dtype=bool))[0])

    @property
    def empty(self) -> float:
        return float(self(np.zeros((1, self.size), dtype=bool))[0])

    @property
    def cost(self) -> Cost:
        return Cost(forwards=sum(len(masks) for masks in self.asked))

    def __call__(self, masks: Any) -> np.ndarray:
        self.asked.append(np.asarray(masks, dtype=bool))
        return np.asarray(self.value(self.asked[-1]), dtype=np.float64)

    def labels(self, masks: Any) -> np.ndarray:
        return (self(masks) > 0).astype(np.int64)

    def about(self, target: Any) -> Table:
        raise NotImplementedError("a table has one target")
