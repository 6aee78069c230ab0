"""How long a training will take: some steps and some held-out text, timed before it begins."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median

from whence.features.autoencoder import Autoencoder
from whence.features.cache import Cache, Moments
from whence.features.corpus import Piece
from whence.features.quality import (
    MOST_ROWS,
    TOKENS_PER_BATCH,
    Place,
    measure,
    stand_ins_of,
)
from whence.features.quality_of_weights import ROWS, use_of
from whence.models.model import Model

# the first steps load what is loaded once, and take many times as long as the others
WARM, TIMED = 3, 5
LONG = 2.0  # seconds, from which on a larger sample is not waited for


def seconds_of_a_step(one: Callable[[], None], steps: int) -> float:
    """The median of some steps, after those that warm up; of a short training, of fewer.

    Every process of a training that shares its batch takes as many.

    >>> seconds_of_a_step(lambda: None, 10) < 1
    True
    """
    for _ in range(WARM):
        one()
    return median(_timed(one) for _ in range(min(TIMED, steps)))


def seconds_of_measuring(
    model: Model,
    autoencoder: Autoencoder,
    cache: Cache,
    moments: Moments,
    pieces: Sequence[Piece],
    active: int,
) -> float:
    """About how long the quality of one autoencoder will take, from a part of what is measured."""
    stand_ins = stand_ins_of(autoencoder, moments, active)
    place = Place(autoencoder.about.layer, cache.wanted.kind, cache.wanted.special)

    def run(some: Sequence[Piece]) -> float:
        return _timed(lambda: measure(model, some, place, stand_ins, moments.mean))

    sample = list(pieces[:1])
    seconds = run(sample)
    if seconds < LONG:
        sample = _until(pieces, TOKENS_PER_BATCH)
        seconds = run(sample)
    every = _tokens(pieces) / max(1, _tokens(sample)) * seconds

    some = cache.states(0)[:ROWS]
    of_rows = _timed(lambda: use_of(autoencoder, [some]))
    return every + of_rows * min(cache.rows, MOST_ROWS) / len(some)


def _until(pieces: Sequence[Piece], tokens: int) -> list[Piece]:
    """The first pieces, up to so many tokens."""
    some: list[Piece] = []
    for piece in pieces:
        some.append(piece)
        if _tokens(some) >= tokens:
            break
    return some


def _tokens(pieces: Sequence[Piece]) -> int:
    return sum(len(piece.passage) for piece in pieces)


def _timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
