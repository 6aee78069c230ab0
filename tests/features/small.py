"""A small writer and a small corpus, for tests of training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from tests.families import build
from whence.features.cache import Cache, open_cache
from whence.features.corpus import open_corpus
from whence.models.model import Model

WORDS = ("the", "food", "is", "great", "but", "service", "not", "bad", "prices", "I", "like", "it")


def documents(number: int = 40, length: int = 12, seed: int = 0) -> list[str]:
    """Texts of words in a random order, no two the same."""
    generator = torch.Generator().manual_seed(seed)
    texts = []
    for _ in range(number):
        chosen = torch.randint(len(WORDS), (length,), generator=generator).tolist()
        texts.append(" ".join(WORDS[i] for i in chosen))
    return texts


def writer() -> Model:
    return build("gpt2")


def cache_of(folder: Path, texts: list[str] | None = None, **more: Any) -> Cache:
    settings: dict[str, Any] = {"length": 32, "special": False, "rows_of_a_shard": 100, **more}
    return open_cache(writer(), open_corpus(texts or documents()), 0, folder, **settings)
