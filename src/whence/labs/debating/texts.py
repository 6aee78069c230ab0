"""Sentences as rows of numbers, padded to one length, with the labels that they were given."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

PADDING, UNKNOWN = 0, 1  # the first two numbers of every vocabulary
FILE = "sentences.tsv.gz"


@dataclass(frozen=True, eq=False)
class Texts:
    """Sentences of several lengths; behind its end, a row has the number of padding."""

    ids: Int[Tensor, "text place"]
    lengths: Int[Tensor, " text"]
    labels: Float[Tensor, " text"]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def present(self) -> Bool[Tensor, "text place"]:
        """Which places hold a word."""
        return torch.arange(self.ids.shape[1]) < self.lengths[:, None]

    def pick(self, rows: Int[Tensor, " picked"] | slice) -> Texts:
        """Some of the texts."""
        return Texts(self.ids[rows], self.lengths[rows], self.labels[rows])


def batches(
    lengths: Int[Tensor, " text"], size: int, generator: torch.Generator | None = None
) -> list[Int[Tensor, " row"]]:
    """The numbers of texts of one length, some at a time: no batch has padding.

    With a generator, texts and batches are shuffled.

    >>> [rows.tolist() for rows in batches(torch.tensor([3, 2, 3, 3]), 2)]
    [[1], [0, 2], [3]]
    """
    order = torch.arange(len(lengths))
    if generator is not None:
        order = torch.randperm(len(lengths), generator=generator)
    by_length = order[lengths[order].argsort(stable=True)]
    counts = lengths.unique(return_counts=True)[1]
    parts = []
    for group in by_length.split(counts.tolist()):
        parts += group.split(size)
    if generator is None:
        return parts
    shuffled = torch.randperm(len(parts), generator=generator)
    return [parts[i] for i in shuffled]


def bundled() -> dict[str, list[tuple[str, int]]]:
    """The sentences that ship with whence, with their labels (1 is praise), by part of the data.

    >>> parts = bundled()
    >>> {part: len(pairs) for part, pairs in parts.items()}
    {'train': 8530, 'test': 1066}
    """
    packed = files("whence.labs.debating").joinpath(FILE).read_bytes()
    parts: dict[str, list[tuple[str, int]]] = {}
    for line in gzip.decompress(packed).decode("utf-8").strip().split("\n"):
        if line.startswith("#"):
            continue
        part, label, text = line.split("\t")
        parts.setdefault(part, []).append((text, int(label)))
    return parts


def vocabulary(sentences: Iterable[str], at_least: int = 2) -> dict[str, int]:
    """A number for each word that is seen often enough; all others share one.

    >>> vocabulary(["a dull film", "a film"])
    {'a': 2, 'film': 3}
    """
    counts = Counter(word for sentence in sentences for word in sentence.split())
    frequent = sorted(word for word, count in counts.items() if count >= at_least)
    return {word: number for number, word in enumerate(frequent, UNKNOWN + 1)}


def as_texts(pairs: Sequence[tuple[str, int]], numbers: dict[str, int]) -> Texts:
    """Sentences with labels as rows of numbers.

    >>> as_texts([("a dull film", 0), ("fine", 1)], {"a": 2, "film": 3}).ids.tolist()
    [[2, 1, 3], [1, 0, 0]]
    """
    rows = []
    for sentence, _ in pairs:
        rows.append([numbers.get(word, UNKNOWN) for word in sentence.split()])
    lengths = torch.tensor([len(row) for row in rows])
    ids = torch.full((len(rows), int(lengths.max())), PADDING)
    for row, its_ids in zip(rows, ids, strict=True):
        its_ids[: len(row)] = torch.tensor(row)
    labels = torch.tensor([float(label) for _, label in pairs])
    return Texts(ids, lengths, labels)
