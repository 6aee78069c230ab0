"""How often the intervals of an audit hold, where the truth is known, for docs/audit.md.

    python -m bench.audit_coverage

An audit of 53 places is made up again and again, and its intervals are to hold together in 95 of
100. A change of the output is of one of two kinds:

    spread   exponential, with a mean of 0.05: most texts move a little, and some a lot
    rare     0.5 on 15 texts of 100, and hardly anything on the others: a mean of 0.08
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from jaxtyping import Float

from whence.core.audit import Observation, Place, effects_of
from whence.core.audited import MATTERS

PLACES = 53  # as the bundled model has
AUDITS = 200
TEXTS = (5, 12, 20, 40, 60, 100, 200)
SHARE, LARGE, NOISE = 0.15, 0.5, 0.005  # of what is rare
MEAN = 0.05  # of what is spread
MEAN_OF_RARE = SHARE * LARGE + (1 - SHARE) * NOISE * np.sqrt(2 / np.pi)

Texts = list[list[Observation]]


def rare_and_large(texts: int, places: int, seed: int) -> Texts:
    """What the two tests see on each text, where attention matters on few texts."""
    rng = np.random.default_rng([seed, texts])
    is_large = rng.random((texts, places)) < SHARE
    small = np.abs(rng.normal(0, NOISE, (texts, places)))
    return _observed(np.where(is_large, LARGE, small))


def spread(texts: int, places: int, seed: int) -> Texts:
    """The same, where it matters a little on most texts."""
    rng = np.random.default_rng([seed, texts])
    return _observed(rng.exponential(MEAN, (texts, places)).clip(max=1.0))


def _observed(changes: Float[np.ndarray, "text place"]) -> Texts:
    tests = ("permutation", "uniform")
    return [
        [
            Observation(test, "change", float(change), Place(0, head))
            for head, change in enumerate(of_text)
            for test in tests
        ]
        for of_text in changes
    ]


def coverage(made: Callable[[int, int, int], Texts], truth: float, texts: int) -> tuple[float, ...]:
    """The shares of audits whose intervals all hold, of intervals that do, and of those below the
    bar."""
    together, alone, below = 0, 0, 0
    for seed in range(AUDITS):
        effects = effects_of(made(texts, PLACES, seed), seed)
        of_test = [effect for effect in effects if effect.test == "permutation"]
        holds = []
        for effect in of_test:
            assert effect.interval is not None
            low, high = effect.interval
            holds.append(low <= truth <= high)
        together += all(holds)
        alone += sum(holds)
        below += sum(effect.is_above(MATTERS) is False for effect in of_test)
    every = AUDITS * PLACES
    return together / AUDITS, alone / every, below / every


def rows() -> Iterator[str]:
    """The table, line by line."""
    yield "| texts | all hold, spread | all hold, rare | one holds, rare | rare, called below |"
    yield "|---|---|---|---|---|"
    for texts in TEXTS:
        of_spread = coverage(spread, MEAN, texts)
        of_rare = coverage(rare_and_large, MEAN_OF_RARE, texts)
        shares = [of_spread[0], *of_rare]
        yield f"| {texts} | {' | '.join(f'{share:.1%}'.replace('%', ' %') for share in shares)} |"


if __name__ == "__main__":
    for row in rows():
        print(row, flush=True)
