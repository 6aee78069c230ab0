"""Texts of one length in which one word in four decides: what ROAR must find out is known."""

from __future__ import annotations

import random
from typing import Any

GOOD = ("fine", "great", "funny")
BAD = ("dull", "poor", "awful")
THINGS = ("film", "room", "song", "meal")


def sentences(count: int, seed: int) -> list[tuple[str, str]]:
    """As many of each label; the word that decides is the last."""
    rng = random.Random(seed)
    rows = []
    for i in range(count):
        words = GOOD if i % 2 else BAD
        text = f"the {rng.choice(THINGS)} was {rng.choice(words)}"
        rows.append((text, "good" if i % 2 else "bad"))
    return rows


def decisive(_model: Any, passage: Any) -> list[float]:
    """The ranking that knows."""
    return [float(name in GOOD + BAD) for name in passage.names]
