"""What made-up results are drawn from: words, shares and numbers, those at a border most of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

Kind = TypeVar("Kind")

# no quotation marks: a reader of sentences has to find where a name ends
WORDS = (
    *("the", "a", "not", "good", "dull", "1889", "and", "Sp", "don't", "naïve", "שלום", "مرحبا"),
    *("👍🏽", "<b>", "</script>", "100", "%", "&amp;", "=1+1", "x\x1b[31m", "\u202eevil", "\x07"),
    *("depends", "rather", "x" * 90, "ab" * 40, ".", ",", "…", "it", "fell", "down"),
)
BORDERS = (0.0, 1.0, 0.5, 0.05, 0.25, 0.995, 0.9951, 0.004, 0.0001, 1e-5, 1e-9, 0.99999, 0.1, 0.01)


def does(rng: np.random.Generator, probability: float = 0.5) -> bool:
    """Whether something of this probability happens."""
    return bool(rng.random() < probability)


def one_of(rng: np.random.Generator, choices: Sequence[Kind]) -> Kind:
    """One of several, each as likely."""
    return choices[int(rng.integers(len(choices)))]


def share(rng: np.random.Generator) -> float:
    """A share: at a border, next to 0 or to 1, or anywhere."""
    kind = rng.integers(4)
    if kind == 0:
        return one_of(rng, BORDERS)
    if kind == 1:
        return float(10 ** rng.uniform(-8, 0))
    if kind == 2:
        return float(1 - 10 ** rng.uniform(-8, 0))
    return float(rng.random())


def count(rng: np.random.Generator, most: int = 1000) -> int:
    """From 1 up to so many: small numbers are as likely as large ones."""
    return int(min(most, np.exp(rng.uniform(0, np.log(most + 1)))))


def words(rng: np.random.Generator, number: int, of: Sequence[str] = WORDS) -> list[str]:
    """So many words, some of them several times."""
    few = [one_of(rng, of) for _ in range(max(1, number if does(rng, 0.7) else number // 2))]
    return [one_of(rng, few) for _ in range(number)]


def scores(rng: np.random.Generator, number: int, signed: bool = True) -> Any:
    """Scores of any kind: far apart, alike, zero, all on one side, tiny, tied."""
    kind = int(rng.integers(8))
    drawn = rng.normal(size=number) ** 3
    if kind == 0:
        drawn = np.zeros(number)
    elif kind == 1:
        drawn = np.full(number, float(rng.normal()))
    elif kind == 2:
        drawn = -np.abs(drawn)
    elif kind == 3:
        drawn = drawn * 10.0 ** rng.uniform(-9, 7)
    elif kind == 4:
        drawn = np.round(drawn)
    elif kind == 5 and number:
        drawn[int(rng.integers(number))] = one_of(rng, (-50.0, 50.0))
    return drawn if signed else np.abs(drawn)
