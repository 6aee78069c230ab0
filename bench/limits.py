"""The search for the best and the worst ranking of a text, beside all rankings that there are.

    python -m bench.limits --data DATA/rotten_tomatoes/test.tsv --texts 12

Texts have 13 to 15 words: there ``normalised-comprehensiveness`` and ``normalised-sufficiency``
search by beams, and every subset can still be tried. What the search finds is told as a share of
the way from the worst ranking to the best. Texts are drawn by a seed from data on which nothing
about the search was chosen.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

import whence
from whence.core.bootstrap import means
from whence.metrics.curves import counts_of
from whence.metrics.limits import Falls, Search, limits

WORDS = range(13, 16)
REMOVALS = ("mask", "delete")
EVERY_RANKING = Search(exact=2**15)


@dataclass(frozen=True)
class Found:
    """What the search found of one text, by one metric and removal."""

    words: int
    removal: str
    metric: str
    share: float  # of the way from the worst to the best that there is
    masks: int  # that the search asked for


def falls_of(game: whence.Game, metric: str) -> Falls:
    """How far the target falls without a set, or with nothing but it."""
    if metric == "comprehensiveness":
        return lambda sets: game.full - game(~sets)
    return lambda sets: game.full - game(sets)


def looked_at(model: whence.Model, text: str) -> Iterator[Found]:
    for removal in REMOVALS:
        game = whence.game(model, text, removal=removal)
        counts = counts_of(game.size)
        for metric in ("comprehensiveness", "sufficiency"):
            falls = falls_of(game, metric)
            asked = 0

            def counted(sets: np.ndarray, falls: Falls = falls) -> np.ndarray:
                nonlocal asked
                asked += len(sets)
                return falls(sets)

            lowest, highest = limits(falls, game.size, counts, EVERY_RANKING)
            low, high = limits(counted, game.size, counts, Search())
            share = (high - low) / (highest - lowest)
            yield Found(game.size, removal, metric, share, asked)


def drawn(path: Path, model: whence.Model, count: int, seed: int) -> list[str]:
    """Texts of 13 to 15 words, by a seed."""
    lines = path.read_text(encoding="utf-8").splitlines()
    texts = [max(line.split("\t"), key=len) for line in lines]
    order = np.random.default_rng(seed).permutation(len(texts))
    chosen = []
    for place in order.tolist():
        if len(model.encode(texts[place]).units) in WORDS:
            chosen.append(texts[place])
        if len(chosen) == count:
            break
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.limits", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="lines with a text in a column")
    parser.add_argument("--texts", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    model = whence.load("sentiment")
    rows: list[Found] = []
    texts = drawn(given.data, model, given.texts, given.seed)
    for number, text in enumerate(texts):
        own = list(looked_at(model, text))
        rows += own
        shares = ", ".join(f"{found.share:.3f}" for found in own)
        print(f"{number + 1}: {own[0].words} words, {shares}", flush=True)

    by_text = np.array([found.share for found in rows]).reshape(len(texts), -1)
    (mean,) = means(by_text.mean(1, keepdims=True))
    assert mean.interval is not None  # there are enough texts
    low, high = mean.interval
    print(f"share of the way: mean {by_text.mean():.3f} (95 % over texts {low:.3f} to {high:.3f})")
    print(
        f"least of a case {by_text.min():.3f}; found exactly in {(by_text > 1 - 1e-9).mean():.0%}"
    )
    print(f"masks asked for: {np.mean([found.masks for found in rows]):.0f} on average")


if __name__ == "__main__":
    main()
