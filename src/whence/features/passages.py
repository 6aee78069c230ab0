"""What each feature fires on: its strongest passages, counts and histogram, in one pass.

The corpus streams by. Of each feature the ``top`` strongest passages are kept, each with the
activations around its strongest token, so that nothing has to be run again; passages that no
feature needs any more are let go. Memory does not grow with the corpus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from whence.core.errors import InputError
from whence.core.passage import Passage
from whence.features.autoencoder import Autoencoder
from whence.models.model import Model
from whence.models.unbroken import unbroken
from whence.trace.hidden import hidden_at

BEFORE, AFTER = 20, 12  # tokens that are shown around the strongest one
# bins of half an octave, so that no range need be known before the corpus is
EDGES: Float[np.ndarray, " edge"] = 2.0 ** (np.arange(-24, 25) / 2)
BINS = len(EDGES) - 1
ACTIVATIONS_AT_ONCE = 8_000_000  # numbers, of a table "token feature"
PASSAGES_AT_ONCE = 64

Tick = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Seen:
    """What was seen of every feature over a corpus. Activations are a_j · ‖decoder_j‖.

    A row of ``passage``, ``place`` and ``around`` is a feature's strongest passages, strongest
    first; ``passage`` is −1 where there are fewer. ``around`` holds the activations from
    ``BEFORE`` tokens before the strongest to ``AFTER`` behind it.
    """

    tokens: int
    passages: int
    active: Int[np.ndarray, " feature"]  # tokens on which it is active
    total: Float[np.ndarray, " feature"]  # of its activations
    peak: Float[np.ndarray, " feature"]
    histogram: Int[np.ndarray, "feature bin"]
    largest: Float[np.ndarray, "feature top"]
    passage: Int[np.ndarray, "feature top"]
    place: Int[np.ndarray, "feature top"]
    around: Float[np.ndarray, "feature top window"]
    texts: dict[int, Passage]  # those that some feature names
    variance_explained: float

    @property
    def frequency(self) -> Float[np.ndarray, " feature"]:
        """The share of tokens on which each feature is active."""
        return self.active / max(1, self.tokens)

    @property
    def mean(self) -> Float[np.ndarray, " feature"]:
        """The mean over the tokens on which each feature is active; 0 of one that never is."""
        return self.total / np.maximum(1, self.active)

    @property
    def live(self) -> Int[np.ndarray, " live"]:
        """The features that were active at least once."""
        return np.flatnonzero(self.active)


def top_passages(
    model: Model,
    autoencoder: Autoencoder,
    passages: Iterable[Passage | str],
    *,
    top: int = 20,
    tick: Tick | None = None,
) -> Seen:
    """The strongest passages of every feature, with counts, over passages or texts.

    No passage is named twice for a feature, and a passage that the corpus repeats is a candidate
    once; all of its tokens are counted each time. Special tokens are left out. ``tick`` is told
    how many passages were read.

    >>> import whence
    >>> from whence.features.mirrors import mirror
    >>> model = whence.load("writer")
    >>> seen = top_passages(model, mirror(model, layer=1), ["The sea was calm.", "Go home!"], top=1)
    >>> seen.passages, seen.passage.shape
    (2, (384, 1))
    """
    if top < 1:
        raise InputError(f"at least one passage is kept for each feature, not {top}.")
    watch = _Watch(autoencoder, top)
    for group in _groups(_encoded(model, passages)):
        watch.see(model, group)
        if tick is not None:
            tick(watch.passages)
    if not watch.tokens:
        raise InputError("the corpus is empty: there is no token to see features on.")
    return watch.seen()


def _encoded(model: Model, passages: Iterable[Passage | str]) -> Iterator[Passage]:
    """Passages that fit the model; a longer text gives several."""
    for one in passages:
        if isinstance(one, Passage):
            yield one
            continue
        if one.strip():
            yield from model.windows(model.encode(one, overflow="window"))


def _groups(passages: Iterator[Passage]) -> Iterator[list[Passage]]:
    while group := list(islice(passages, PASSAGES_AT_ONCE)):
        yield group


@dataclass(eq=False)
class _Watch:
    """What is kept while the corpus streams by."""

    autoencoder: Autoencoder
    top: int
    tokens: int = 0
    passages: int = 0
    texts: dict[int, Passage] = field(default_factory=dict)
    kept: set[bytes] = field(default_factory=set)  # their digests

    def __post_init__(self) -> None:
        size, top = self.autoencoder.size, self.top
        self.active = torch.zeros(size, dtype=torch.int64)
        self.total = torch.zeros(size, dtype=torch.float64)
        self.histogram = torch.zeros(size * BINS, dtype=torch.int64)
        self.largest = torch.zeros(size, top)
        self.passage = torch.full((size, top), -1)
        self.place = torch.zeros(size, top, dtype=torch.int64)
        self.around = torch.zeros(size, top, BEFORE + 1 + AFTER)
        # for the variance: sums over tokens of states, of their squares, and of squared errors
        self.states = torch.zeros(self.autoencoder.dim, dtype=torch.float64)
        self.squares, self.errors = 0.0, 0.0

    def see(self, model: Model, group: Sequence[Passage]) -> None:
        about = self.autoencoder.about
        kind = about.kind if model.is_encoder_decoder else None
        states = hidden_at(model, group, about.layer, kind)
        at_once = max(1, ACTIVATIONS_AT_ONCE // self.autoencoder.size)
        with unbroken(torch.inference_mode()):
            for part in _within(states, at_once):
                self._see_part([group[i] for i in part], [states[i].cpu() for i in part])

    def _see_part(self, group: Sequence[Passage], states: Sequence[Tensor]) -> None:
        """Count on tokens that are no special ones, and let each passage compete once."""
        ordinary = [_ordinary(p, len(h)) for p, h in zip(group, states, strict=True)]
        rows = torch.cat([h[keep] for h, keep in zip(states, ordinary, strict=True)]).float()
        if not len(rows):
            self.passages += len(group)
            return
        codes = self.autoencoder.encode(rows)
        self._count(rows, codes)
        values = codes * self.autoencoder.norms
        self._count_values(values)
        first = 0
        for passage, keep in zip(group, ordinary, strict=True):
            count = int(keep.sum())
            number = self.passages
            self.passages += 1
            own = values[first : first + count]
            first += count
            # a repetition of a passage that was let go is not stronger than what took its place
            if count and passage.digest not in self.kept:
                self._compete(number, passage, keep, own)
        used = set(self.passage.unique().tolist())
        self.texts = {number: text for number, text in self.texts.items() if number in used}
        self.kept = {text.digest for text in self.texts.values()}

    def _count(self, rows: Float[Tensor, "token dim"], codes: Float[Tensor, "token f"]) -> None:
        self.tokens += len(rows)
        missed = rows - self.autoencoder.decode(codes)
        self.errors += float(missed.double().square().sum())
        self.states += rows.double().sum(0)
        self.squares += float(rows.double().square().sum())

    def _count_values(self, values: Float[Tensor, "token feature"]) -> None:
        token, feature = values.nonzero(as_tuple=True)
        active = values[token, feature].double()
        size = self.autoencoder.size
        self.active += torch.bincount(feature, minlength=size)
        self.total += torch.bincount(feature, weights=active, minlength=size)
        octaves = (2 * active.log2() + len(EDGES) // 2).floor().long().clamp(0, BINS - 1)
        self.histogram += torch.bincount(feature * BINS + octaves, minlength=size * BINS)

    def _compete(
        self,
        number: int,
        passage: Passage,
        keep: Bool[Tensor, " token"],
        values: Float[Tensor, "ordinary feature"],
    ) -> None:
        """Where this passage is stronger than the weakest that is kept, it takes its place."""
        strongest, row = values.max(0)
        better = (strongest > self.largest[:, -1]).nonzero()[:, 0]
        if not len(better):
            return
        places = keep.nonzero()[:, 0]
        whole = torch.zeros(BEFORE + len(keep) + AFTER, len(better))
        whole[places + BEFORE] = values[:, better]
        place = places[row[better]]
        window = place[:, None] + torch.arange(BEFORE + 1 + AFTER)
        around = whole[window, torch.arange(len(better))[:, None]]

        # the last one is the weakest: replace it and sort anew; equals stay in reading order
        self.largest[better, -1] = strongest[better]
        self.passage[better, -1] = number
        self.place[better, -1] = place
        self.around[better, -1] = around
        order = self.largest[better].sort(dim=1, descending=True, stable=True).indices
        for table in (self.largest, self.passage, self.place):
            table[better] = table[better].gather(1, order)
        wide = order[:, :, None].expand(-1, -1, self.around.shape[-1])
        self.around[better] = self.around[better].gather(1, wide)
        self.texts[number] = passage
        self.kept.add(passage.digest)

    def seen(self) -> Seen:
        mean = self.states / self.tokens
        spread = self.squares - self.tokens * float(mean.square().sum())
        return Seen(
            tokens=self.tokens,
            passages=self.passages,
            active=self.active.numpy(),
            total=self.total.numpy(),
            peak=self.largest[:, 0].numpy(),
            histogram=self.histogram.view(-1, BINS).numpy(),
            largest=self.largest.numpy(),
            passage=self.passage.numpy(),
            place=self.place.numpy(),
            around=self.around.numpy(),
            texts=self.texts,
            variance_explained=1 - self.errors / spread if spread > 0 else float("nan"),
        )


def _ordinary(passage: Passage, length: int) -> Bool[Tensor, " token"]:
    """Which tokens are no special ones; of a decoder's side beside a text, all of them."""
    if len(passage) != length:
        return torch.ones(length, dtype=torch.bool)
    return torch.from_numpy(passage.parts >= 0)


def _within(states: Sequence[Tensor], at_once: int) -> Iterator[list[int]]:
    """Numbers of consecutive passages that together have so many tokens at most, or are alone."""
    part: list[int] = []
    tokens = 0
    for i, rows in enumerate(states):
        if part and tokens + len(rows) > at_once:
            yield part
            part, tokens = [], 0
        part.append(i)
        tokens += len(rows)
    if part:
        yield part
