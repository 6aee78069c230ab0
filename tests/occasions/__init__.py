"""Made-up results over the whole space of what can be, each made to say all that it can.

An area is a module with ``speak(rng)``, which makes one result by lot and calls every view of it.
The tests of sentences parse what is said back, and hold it against the result; the catalogue of
sentences (``docs/assets/sentences.py``) takes its examples from here.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np


def areas() -> list[str]:
    """The names of all areas."""
    return sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))


def speak(times: int, seed: int = 0) -> None:
    """Let every area speak so many times."""
    for number, name in enumerate(areas()):
        area = import_module(f"tests.occasions.{name}")
        rng = np.random.default_rng([seed, number])
        for _ in range(times):
            area.speak(rng)
