"""Which entries of a batch are active, found block by block, so that memory stays small.

All pre-activations of a block of rows are computed by one dense product; what is chosen of them is
kept, and the rest is forgotten before the next block.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from whence.features.groups import Group, largest_of_all
from whence.features.kernels import INDEX, At, Dense, Sparse, offsets_of

# a block has about so many numbers: 8 MB in float32
BLOCK = 2**21
FEWEST_ROWS = 256  # of a block: dense products of fewer rows are slower
# with more than this share of entries a dense product is taken to be faster: an estimate
DENSE_FROM = 0.06
# so many entries are gathered at most, about 60 MB with all that is computed from them
MOST_ENTRIES = 2**20
# rows that are looked at for a first guess of the batch's threshold
GUESS_ROWS = 64


@dataclass(frozen=True, eq=False)
class Encoder:
    """The two tensors that make pre-activations."""

    weights: Float[Tensor, "feature dim"]
    bias: Float[Tensor, " feature"]

    def blocks(self, rows: Float[Tensor, "row dim"]) -> Iterator[Block]:
        """Pre-activations of a few rows after the other, without gradients.

        All blocks share one piece of memory: who keeps a block beyond its turn must copy it.
        """
        size = len(self.bias)
        step = max(FEWEST_ROWS, BLOCK // size)
        room = rows.new_empty(min(step, len(rows)), size)
        for begin in range(0, len(rows), step):
            some = rows[begin : begin + step]
            yield Block(some, self.pre(some, room[: len(some)]), begin)

    @torch.no_grad()
    def pre(
        self, rows: Float[Tensor, "row dim"], out: Float[Tensor, "row feature"]
    ) -> Float[Tensor, "row feature"]:
        """All pre-activations of some rows, written to ``out``."""
        # with addmm the bias would be copied to every row first, which takes longer
        return torch.mm(rows, self.weights.T, out=out).add_(self.bias)


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows, which begin at ``begin`` of all, and all their pre-activations."""

    rows: Float[Tensor, "row dim"]
    pre: Float[Tensor, "row feature"]
    begin: int


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows with the pre-activations that may become activations; they carry gradients.

    ``dead`` has those of dead features, from which the auxiliary loss rebuilds the error.
    """

    rows: Float[Tensor, "row dim"]
    at: At
    pre: Float[Tensor, " entry"] | Float[Tensor, "row feature"]
    dead: Dead | None = None


@dataclass(frozen=True, eq=False)
class Dead:
    """Entries of dead features: the largest few of each row."""

    at: Sparse
    pre: Float[Tensor, " entry"]


@dataclass(frozen=True, eq=False)
class Wanted:
    """The dead features, and how many of them each row gets."""

    features: Int[Tensor, " dead"]
    k: int


def wanted_of(dead: Bool[Tensor, " feature"], dim: int, auxiliary_k: int | None) -> Wanted | None:
    """None where no feature is dead. By default half as many as dimensions (Gao et al. 2024)."""
    features = dead.nonzero().flatten()
    if len(features) == 0:
        return None
    return Wanted(features, min(auxiliary_k or max(1, dim // 2), len(features)))


# ---------------------------------------------------------------------- above a bound


def above(
    rows: Float[Tensor, "row dim"], encoder: Encoder, bound: Float[Tensor, " feature"] | float
) -> Iterator[Part]:
    """Entries above a bound. A block with many of them is a dense part; the others are gathered.

    Gathered blocks make one part, or several where there are so many entries that memory counts.
    A dense part lies in the memory that the next block is written to, so it has to be used before.
    """
    gathered = _Found(len(encoder.bias))
    for block in encoder.blocks(rows):
        mask = block.pre > bound
        if int(mask.count_nonzero()) > DENSE_FROM * mask.numel():
            del mask  # or it would be there as long as the parts are
            yield from _dense_parts(block, encoder)
            continue
        gathered.add(block, mask)
        if gathered.entries > MOST_ENTRIES:
            yield gathered.part(gathered.rows_of(rows), encoder)
            gathered = _Found(len(encoder.bias))
    if gathered.per_row:
        yield gathered.part(gathered.rows_of(rows), encoder)


def _dense_parts(block: Block, encoder: Encoder) -> Iterator[Part]:
    """As few rows as a product can do with: what is computed from them is all as large."""
    at = Dense()
    pieces = zip(block.rows.split(FEWEST_ROWS), block.pre.split(FEWEST_ROWS), strict=True)
    for rows, pre in pieces:
        yield Part(rows, at, at.pre(rows, encoder.weights, encoder.bias, pre))


class _Found:
    """Entries of one block after the other."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.features: list[Tensor] = []
        self.values: list[Tensor] = []
        self.per_row: list[Tensor] = []
        self.blocks: list[range] = []  # of rows
        self.entries = 0

    def add(self, block: Block, mask: Bool[Tensor, "row feature"]) -> None:
        pre = block.pre
        places = _places(mask.flatten())
        self.values.append(pre.flatten().index_select(0, places))
        rows = places // self.size
        self.features.append((places - rows * self.size).to(INDEX))
        self.per_row.append(torch.bincount(rows, minlength=len(pre)))
        self.blocks.append(range(block.begin, block.begin + len(block.rows)))
        self.entries += len(places)

    def rows_of(self, rows: Float[Tensor, "row dim"]) -> Float[Tensor, "own_row dim"]:
        """The rows of the blocks: no copy of all rows, unless a block between them is missing."""
        begin, end = self.blocks[0].start, self.blocks[-1].stop
        if end - begin == sum(map(len, self.blocks)):
            return rows[begin:end]
        return torch.cat([rows[block.start : block.stop] for block in self.blocks])

    @property
    def counts(self) -> Int[Tensor, " row"]:
        return torch.cat(self.per_row)

    def sparse(self) -> tuple[Sparse, Tensor]:
        at = Sparse(offsets_of(self.counts), torch.cat(self.features), self.size)
        return at, torch.cat(self.values)

    def part(self, rows: Tensor, encoder: Encoder, dead: Dead | None = None) -> Part:
        at, values = self.sparse()
        pre = at.pre(rows, encoder.weights, encoder.bias, values)
        return Part(rows, at, pre, dead)


def _places(mask: Bool[Tensor, " number"]) -> Int[Tensor, " true"]:
    """Where a mask is true. On a processor numpy finds it in a third of the time."""
    if mask.device.type == "cpu":
        return torch.from_numpy(np.flatnonzero(mask.numpy()))
    return mask.nonzero().flatten()


# ---------------------------------------------------------------------- the largest ones


def largest_in_rows(
    rows: Float[Tensor, "row dim"], encoder: Encoder, k: int, wanted: Wanted | None
) -> Part:
    """The ``k`` largest entries of each row."""
    features, values, of_dead = [], [], []
    for block in encoder.blocks(rows):
        largest, which = largest_of_row(block.pre, k)
        features.append(which)
        values.append(largest)
        if wanted is not None:
            of_dead.append(_largest_dead(block, wanted))

    at, chosen = _even(torch.cat(features), torch.cat(values), len(encoder.bias))
    pre = at.pre(rows, encoder.weights, encoder.bias, chosen)
    return Part(rows, at, pre, _dead(rows, encoder, of_dead))


def largest_of_row(
    pre: Float[Tensor, "row feature"], k: int
) -> tuple[Float[Tensor, "row k"], Int[Tensor, "row k"]]:
    """The ``k`` largest numbers of each row and where they are, in any order.

    >>> largest_of_row(torch.arange(64.0)[None], 1)
    (tensor([[63.]]), tensor([[63]]))
    """
    size = pre.shape[1]
    in_group = _in_group(size, k)
    if pre.device.type == "cpu" and size % in_group == 0 and size >= 2 * k * in_group:
        return _largest_by_groups(pre, k, in_group)
    largest = pre.topk(k, dim=1, sorted=False)
    return largest.values, largest.indices


def _in_group(size: int, k: int) -> int:
    """A power of two near 2 √(size / k).

    With √(size / k) in a group, groups and members of those that are chosen would be fewest; but
    groups are sorted, and members only compared.
    """
    return 2 ** max(1, round(math.log2(size / k) / 2) + 1)


def _largest_by_groups(pre: Tensor, k: int, in_group: int) -> tuple[Tensor, Tensor]:
    """The same on a processor, in half of the time.

    At least k numbers of a row are as large as the k-th largest of its groups' maxima, and hardly
    more, as few groups hold two of the largest. So only groups are searched, and then the numbers
    above that bound. numpy partitions faster than torch.
    """
    rows, size = pre.shape
    groups = size // in_group
    # features g, g + groups, g + 2 groups, … are together: so their maximum is taken along memory
    maxima = pre.unflatten(1, (in_group, groups)).amax(dim=1).numpy()
    if np.isnan(maxima).any():  # which is as large as can be, and not to be passed over
        largest = pre.topk(k, dim=1, sorted=False)
        return largest.values, largest.indices
    bounds = np.partition(maxima, groups - k, axis=1)[:, groups - k]
    numbers = pre.numpy()
    places = np.flatnonzero(numbers >= bounds[:, None])
    counts = np.bincount(places // size, minlength=rows)
    if counts.max(initial=k) > k:
        places = _first_k(numbers.ravel()[places], places, counts, k)
    places = places.reshape(rows, k)
    features = places - np.arange(rows)[:, None] * size
    return torch.from_numpy(numbers.ravel()[places]), torch.from_numpy(features)


def _first_k(
    values: Float[np.ndarray, " candidate"],
    places: Int[np.ndarray, " candidate"],
    counts: Int[np.ndarray, " row"],
    k: int,
) -> Int[np.ndarray, " chosen"]:
    """The places of the k largest of each row's candidates; of equal ones any that are needed."""
    rows, widest = len(counts), int(counts.max())
    is_there = np.arange(widest) < counts[:, None]
    table = np.full((rows, widest), -np.inf, dtype=values.dtype)
    table[is_there] = values
    chosen = np.argpartition(table, widest - k, axis=1)[:, widest - k :]
    begins = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return places[(begins[:, None] + chosen).ravel()]


def largest_in_batch(
    rows: Float[Tensor, "row dim"],
    encoder: Encoder,
    k: int,
    wanted: Wanted | None,
    group: Group,
) -> Part:
    """The ``k`` × rows largest entries of the whole batch, as far as they are above zero.

    Candidates are the entries above a guess, made from a few rows. Where the guess was too high,
    which is seen by their number, the batch is gone through once more with all above zero. So the
    guess changes what it costs, and never what is chosen. Processes share the lowest guess: above
    a guess of its own, one of them would drop what is among the largest of the batch, or go
    through its rows once more while the others do not.
    """
    guess = group.least(_guess(rows, encoder, k))
    found, of_dead = _candidates(rows, encoder, guess, wanted)
    enough = group.total_rows(len(rows)) * k
    if guess > 0 and group.sum(float(found.entries)) < enough:
        found, of_dead = _candidates(rows, encoder, 0.0, wanted)

    at, values = found.sparse()
    least = largest_of_all(values, enough, group)
    keep = values >= least
    counts = torch.bincount(at.rows[keep], minlength=len(rows))
    at, values = Sparse(offsets_of(counts), at.features[keep], at.size), values[keep]
    pre = at.pre(rows, encoder.weights, encoder.bias, values)
    return Part(rows, at, pre, _dead(rows, encoder, of_dead))


def _guess(rows: Tensor, encoder: Encoder, k: int) -> float:
    """A bound that leaves about half as many entries again as are needed."""
    few = rows[:GUESS_ROWS]
    some = encoder.pre(few, few.new_empty(len(few), len(encoder.bias)))
    kept = len(some) * k * 3 // 2
    if kept >= some.numel():
        return 0.0
    place = some.numel() - kept
    return max(0.0, float(some.flatten().kthvalue(place).values))


def _candidates(
    rows: Tensor, encoder: Encoder, bound: float, wanted: Wanted | None
) -> tuple[_Found, list[tuple[Tensor, Tensor]]]:
    found, of_dead = _Found(len(encoder.bias)), []
    for block in encoder.blocks(rows):
        found.add(block, block.pre > bound)
        if wanted is not None:
            of_dead.append(_largest_dead(block, wanted))
    return found, of_dead


def _largest_dead(block: Block, wanted: Wanted) -> tuple[Tensor, Tensor]:
    largest = block.pre[:, wanted.features].topk(wanted.k, dim=1, sorted=False)
    return wanted.features[largest.indices], largest.values


def _dead(rows: Tensor, encoder: Encoder, parts: list[tuple[Tensor, Tensor]]) -> Dead | None:
    if not parts:
        return None
    features = torch.cat([features for features, _ in parts])
    values = torch.cat([values for _, values in parts])
    at, values = _even(features, values, len(encoder.bias))
    return Dead(at, at.pre(rows, encoder.weights, encoder.bias, values))


def _even(
    features: Int[Tensor, "row k"], values: Float[Tensor, "row k"], size: int
) -> tuple[Sparse, Float[Tensor, " entry"]]:
    """Entries of which every row has as many."""
    rows, k = features.shape
    offsets = torch.arange(0, rows * k + 1, k, dtype=INDEX, device=features.device)
    return Sparse(offsets, features.flatten().to(INDEX), size), values.flatten()
