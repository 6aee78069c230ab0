"""Games that are given as a function of the mask: the mathematical object itself, whose every value a test can enumerate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from whence.core.passage import Passage
from whence.core.target import Target
from whence.games.game import Game


class Table(Game):
    """A game whose values are ``value(masks)`` and whose label is whether the value is above zero; it notes every mask it was asked."""

    def __init__(
        self, d: int, value: Callable[[np.ndarray], np.ndarray], parts: Sequence[int] | None = None
    ) -> None:
        parts = [0] * d if parts is None else parts
        words, spans, texts = [f"w{i}" for i in range(d)], [], ["", ""]
        for word, part in zip(words, parts, strict=True):
            spans.append((len(texts[part]), len(texts[part]) + len(word)))
            texts[part] += f"{word} "
        pair = texts[1].strip() if any(parts) else None
        self.passage = Passage.from_tokens(
            texts[0].strip(), list(range(d)), words, spans, parts, pair=pair
        )
        self.value, self.removal, self.logits = value, "mask", np.zeros(2)
        self.asked: list[np.ndarray] = []
        self._forwards = self._saved = 0
        self._seconds = 0.0
        self.target = Target("yes", index=self.label)

    def __call__(self, masks: Any) -> np.ndarray:
        self.asked.append(np.asarray(masks, dtype=bool))
        return np.asarray(self.value(self.asked[-1]), dtype=np.float64)

    def labels(self, masks: Any) -> np.ndarray:
        return (self(masks) > 0).astype(np.int64)
