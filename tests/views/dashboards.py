"""Made-up dashboards of any size: features that fire on words, with numbers that are known."""

from __future__ import annotations

import numpy as np

from whence.core.dashboard import Dashboard, Excerpt, FeatureCard, Neighbour, Top, Weighed

SENTENCES = (
    "the captain of this ship said that a long and stormy night had come upon them all , and no "
    "man could tell whether dawn would find sea or shore beneath their weary feet again . "
    "congress must act now to strengthen our nation's schools while peace holds among peoples"
)
WORDS = tuple(SENTENCES.split())
EDGES = 2.0 ** (np.arange(-8, 17) / 2)


def board(
    features: int = 40,
    passages: int = 8,
    words: tuple[str, ...] | list[str] = WORDS,
    seed: int = 0,
    width: int = 33,
    shared: bool = True,
    effects: str = "lens",
) -> Dashboard:
    """Feature ``i`` fires on one word; ``shared``: several features share their excerpts."""
    rng = np.random.default_rng(seed)
    count = 60 if shared else features * passages
    excerpts = []
    for number in range(count):
        chosen = rng.integers(0, len(words), width)
        pieces = tuple((" " if k else "") + words[i] for k, i in enumerate(chosen))
        excerpts.append(Excerpt(number, 0, pieces))
    cards = []
    for i in range(features):
        cards.append(_card(i, features, passages, excerpts, rng, words, shared))
    return Dashboard(
        model="writer",
        fingerprint="0123",
        layer=2,
        variant="topk",
        size=features + 7,
        dim=192,
        data="corpus.txt",
        tokens=123_456,
        passages=count,
        edges=EDGES,
        features=tuple(cards),
        excerpts=tuple(excerpts),
        effects=effects,  # type: ignore[arg-type]
        dead=7,
        l0=19.5,
        variance_explained=0.83,
    )


def _card(
    i: int,
    features: int,
    passages: int,
    excerpts: list[Excerpt],
    rng: np.random.Generator,
    words: tuple[str, ...] | list[str],
    shared: bool,
) -> FeatureCard:
    peak = float(2 ** rng.uniform(-1, 4))
    chosen = rng.permutation(len(excerpts))[:passages]
    if not shared:
        chosen = np.arange(i * passages, (i + 1) * passages)
    tops = []
    for rank, excerpt in enumerate(chosen):
        size = len(excerpts[excerpt].pieces)
        values = np.where(rng.random(size) < 0.15, rng.random(size) * peak * 0.7, 0.0)
        place = int(rng.integers(0, size))
        values[place] = peak * (1 - 0.3 * rank / passages)
        tops.append(Top(int(excerpt), 0, place, values))
    counts = np.zeros(len(EDGES) - 1, dtype=np.int64)
    last = int(np.searchsorted(EDGES, peak))
    falling = (2000 * rng.random(last) ** 2 * np.exp(-np.arange(last) / 4)).astype(int)
    counts[:last] = np.append(falling[:-1], 1)
    some = rng.permutation(len(words))[:20]
    promotes = [Weighed(f" {words[k]}", 1.5 - 0.1 * n) for n, k in enumerate(some[:8])]
    suppresses = [Weighed(f" {words[k]}", -1.0 + 0.1 * n) for n, k in enumerate(some[8:16])]
    near = [Neighbour((i + n + 1) % features, 0.9 - 0.15 * n) for n in range(min(5, features - 1))]
    return FeatureCard(
        number=i,
        frequency=float(10 ** rng.uniform(-4, -0.7)),
        peak=peak,
        mean=peak / 5,
        histogram=counts,
        tops=tuple(tops),
        promotes=tuple(promotes),
        suppresses=tuple(suppresses),
        similar=tuple(near),
    )
