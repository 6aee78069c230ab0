"""Activations on the disk: the hidden states of a corpus in shards, made once and read often.

A shard is a safetensors file of whole passages. It is written beside its name, flushed and renamed,
and only then noted in the manifest with its checksum: a process that is killed loses the shard at
hand. A shard that is torn, altered or gone is found when it is read, and made again, to the last
bit on the same machine: the batches of a shard are its own.
"""

from __future__ import annotations

import errno
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.errors import InputError, LoadError, ModelError, Unsupported
from whence.core.sizes import human
from whence.core.stored import Stored, as_stored
from whence.core.writing import UNFINISHED, write_bytes, write_json
from whence.features.corpus import Corpus, Piece, pieces_of, rows_to_learn
from whence.models.blocks import block_at, side_of
from whence.models.model import Model
from whence.trace.hidden import hidden_at

MANIFEST = "manifest.json"
ROWS_OF_A_SHARD = 8192
LAYOUT = 1  # of the files; another one gets another key
DTYPES = {"float32": torch.float32, "float16": torch.float16}
ABANDONED = 3600  # seconds after which a half-written file is nobody's
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class Wanted:
    """Which activations: everything that their numbers depend on."""

    fingerprint: str
    layer: int
    kind: str
    data: str  # the digest of the corpus
    length: int
    special: bool
    dtype: str
    tokens: int | None  # at most so many
    rows_of_a_shard: int = ROWS_OF_A_SHARD
    layout: int = LAYOUT

    @property
    def key(self) -> str:
        """A name for the folder, that no other wish has."""
        written = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(written.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Shard:
    """Some rows of the cache: the passages that they come from, and the checksum of their file."""

    rows: int
    first: int  # passage
    last: int  # passage, which is not in it
    checksum: str = ""  # empty until it is made


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean, spread and correlations of all rows, and their mean lengths."""

    rows: int
    mean: Float[Tensor, " dim"]
    covariance: Float[Tensor, "dim dim"]
    length: float  # the mean length of a row
    centred_length: float  # the mean distance from the mean

    @property
    def spread(self) -> float:
        """The root of the mean squared distance from the mean."""
        return float(self.covariance.trace()) ** 0.5

    @property
    def ratio(self) -> float:
        """The length of the mean, in spreads: how far the rows lie to one side."""
        return float(self.mean.norm()) / self.spread if self.spread else float("inf")


class Cache:
    """The shards of one wish. ``states(i)`` gives one of them, made again if it is not sound."""

    def __init__(
        self, folder: Path, wanted: Wanted, shards: Sequence[Shard], make: Callable[[int], Tensor]
    ) -> None:
        self.folder = folder
        self.wanted = wanted
        self.shards = list(shards)
        self.made_again: list[int] = []
        self._make = make

    @property
    def rows(self) -> int:
        """How many activations there are."""
        return sum(shard.rows for shard in self.shards)

    def file(self, number: int) -> Path:
        """Where a shard lies."""
        return self.folder / f"shard-{number:05d}.safetensors"

    def states(self, number: int) -> Float[Tensor, "row dim"]:
        """The activations of a shard, as float32."""
        tensors = self._sound(number)
        if tensors is None:
            if self.shards[number].checksum:
                self.made_again.append(number)
            self._write(number)
            tensors = self._sound(number)
        if tensors is None:
            raise LoadError(
                f"{str(self.file(number))!r} was written and cannot be read back as it was; the "
                "disk or the memory is not sound."
            )
        return tensors["states"].float()

    def moments(self) -> Moments:
        """Of all rows, in float64; shard by shard, so that they are always the same."""
        numbers = range(len(self.shards))
        total = sum(self.states(number).double().sum(0) for number in numbers)
        mean = torch.as_tensor(total) / self.rows
        products = torch.zeros(len(mean), len(mean), dtype=torch.float64)
        length = centred_length = 0.0
        for number in numbers:
            states = self.states(number).double()
            centred = states - mean
            products += centred.T @ centred
            length += float(states.norm(dim=1).sum())
            centred_length += float(centred.norm(dim=1).sum())
        return Moments(
            self.rows, mean, products / self.rows, length / self.rows, centred_length / self.rows
        )

    def _sound(self, number: int) -> dict[str, Tensor] | None:
        """What the file of a shard holds, or None where it is not what was written."""
        from safetensors.torch import load

        shard = self.shards[number]
        if not shard.checksum:
            return None
        try:
            content = self.file(number).read_bytes()
        except OSError:
            return None
        if hashlib.sha256(content).hexdigest() != shard.checksum:
            return None
        return load(content)

    def _write(self, number: int) -> None:
        """Make a shard, write it, and then note it."""
        from safetensors.torch import save

        states = self._make(number)
        content = save({"states": states.to(DTYPES[self.wanted.dtype]).contiguous()})
        try:
            write_bytes(self.file(number), content)
            checksum = hashlib.sha256(content).hexdigest()
            self.shards[number] = replace(self.shards[number], checksum=checksum)
            self.write_manifest()
        except InputError as problem:
            raise _about_the_disk(problem, self, number, len(content)) from problem

    def write_manifest(self) -> None:
        """Note which shards are done."""
        stored = {
            "kind": "activations",
            "wanted": asdict(self.wanted),
            "shards": [asdict(shard) for shard in self.shards],
        }
        write_json(self.folder / MANIFEST, stored)


def open_cache(
    model: Model,
    corpus: Corpus,
    layer: int,
    folder: str | Path,
    *,
    kind: str | None = None,
    length: int,
    special: bool,
    tokens: int | None = None,
    dtype: str = "float32",
    rows_of_a_shard: int = ROWS_OF_A_SHARD,
) -> Cache:
    """The activations of a corpus at a layer: what is there already, and a way to make the rest.

    Nothing is run before a shard is asked for, or ``fill`` is called. ``folder`` may hold the
    activations of many models, layers and corpora, each below a name of its own.

    >>> import tempfile, whence
    >>> from whence.features.corpus import open_corpus
    >>> model, corpus = whence.load("writer"), open_corpus(["It was dark.", "And stormy."])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = open_cache(model, corpus, 2, folder, length=64, special=False)
    ...     cache.states(0).shape
    torch.Size([5, 192])
    """
    if model.is_encoder_decoder and side_of(model, kind) == "decoder":
        raise Unsupported(
            "of an encoder-decoder, features are trained on the encoder: what its decoder reads "
            "is what it writes, and a corpus holds no such pairs."
        )
    block_at(model, layer, kind)
    if dtype not in DTYPES:
        raise InputError(f"activations are kept in {' or '.join(DTYPES)}, not in {dtype!r}.")
    wanted = Wanted(
        model.fingerprint,
        layer,
        side_of(model, kind),
        corpus.digest,
        length,
        special,
        dtype,
        tokens,
        rows_of_a_shard,
    )
    own = Path(folder) / wanted.key
    try:
        own.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"cannot make {str(own)!r}: {problem.strerror or problem}.") from problem
    _remove_leftovers(own)
    maker = _Maker(model, corpus, wanted)
    shards = _known_shards(own, wanted)
    if shards is None:
        shards = maker.plan()
        if not shards:
            raise InputError(f"the corpus {corpus.name} has no token to learn from.")
        cache = Cache(own, wanted, shards, maker)
        cache.write_manifest()
        return cache
    maker.shards = shards
    return Cache(own, wanted, shards, maker)


def _remove_leftovers(folder: Path) -> None:
    """What killed processes were writing; a young file may be another training's, just now."""
    for file in folder.glob(UNFINISHED.format("*")):
        with suppress(OSError):
            if time.time() - file.stat().st_mtime > ABANDONED:
                file.unlink()


def _tell_nobody(_done: int, _of: int) -> None:
    pass


def fill(cache: Cache, tell: Callable[[int, int], None] = _tell_nobody) -> None:
    """Make every shard that is not there. ``tell`` hears of rows that are done, of how many."""
    done = 0
    for number, shard in enumerate(cache.shards):
        # what was noted as done is checked when it is read
        if not shard.checksum:
            cache.states(number)
        done += shard.rows
        tell(done, cache.rows)


def _known_shards(folder: Path, wanted: Wanted) -> list[Shard] | None:
    """What the manifest says; None where there is none, or it is not to be trusted."""
    try:
        stored = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return _read_manifest(as_stored(stored, "manifest of activations"), wanted)


def _read_manifest(stored: Stored, wanted: Wanted) -> list[Shard] | None:
    try:
        if stored["wanted"].record(Wanted) != wanted:
            return None
        return [shard.record(Shard) for shard in stored["shards"].items()]
    except LoadError:
        return None


class _Maker:
    """Makes the activations of a shard, from the passages that belong to it."""

    def __init__(self, model: Model, corpus: Corpus, wanted: Wanted) -> None:
        self.model = model
        self.corpus = corpus
        self.wanted = wanted
        self.shards: Sequence[Shard] = ()
        # most shards are made one after the other, so that the reading goes on
        self._pieces: Iterator[Piece] = iter(())
        self._at = -1  # the passage that it gives next; -1 before it was begun

    def plan(self) -> list[Shard]:
        """Which passages make which shard: counted, without running the model."""
        shards = []
        first = rows = total = passage = 0
        most = self.wanted.tokens
        for piece in self._read():
            if most is not None and total >= most:
                break
            here = len(rows_to_learn(piece.passage, self.wanted.special))
            passage += 1
            rows += here
            total += here
            if rows >= self.wanted.rows_of_a_shard:
                shards.append(Shard(rows, first, passage))
                first, rows = passage, 0
        if rows:
            shards.append(Shard(rows, first, passage))
        self.shards = shards
        return shards

    def __call__(self, number: int) -> Float[Tensor, "row dim"]:
        """The hidden states of the tokens of a shard."""
        shard = self.shards[number]
        passages = self._passages(shard.first, shard.last)
        states = hidden_at(self.model, passages, self.wanted.layer, self.wanted.kind)
        kept = []
        for passage, rows in zip(passages, states, strict=True):
            here = rows[torch.from_numpy(rows_to_learn(passage, self.wanted.special))]
            _check_finite(self.model, here, passage, self.wanted)
            kept.append(here.float().cpu())
        return torch.cat(kept)

    def _passages(self, first: int, last: int) -> list[Any]:
        if self._at != first:
            self._pieces = self._read()
            self._at = 0
            for _ in islice(self._pieces, first):
                self._at += 1
        passages = [piece.passage for piece in islice(self._pieces, last - first)]
        self._at = last
        if len(passages) < last - first:
            raise InputError(f"the corpus {self.corpus.name} was changed while it was read.")
        return passages

    def _read(self) -> Iterator[Piece]:
        return pieces_of(self.model, self.corpus, held_out=False, length=self.wanted.length)


def _check_finite(model: Model, states: Tensor, passage: Any, wanted: Wanted) -> None:
    """Refuse what no autoencoder could learn from, and say which text it came from."""
    as_kept = states.to(DTYPES[wanted.dtype])
    if bool(as_kept.isfinite().all()):
        return
    text = passage.text[:60]
    if bool(states.isfinite().all()):
        raise InputError(
            f"activations of layer {wanted.layer} are as large as {float(states.abs().max()):.3g}, "
            "which float16 cannot hold; keep them as float32."
        )
    raise ModelError(
        f"layer {wanted.layer} of {type(model.hf).__name__} gave NaN or infinity for the text "
        f"{text!r}; features cannot be trained on such activations. Another dtype of the model "
        "(float32 for float16) may help."
    )


def _about_the_disk(problem: InputError, cache: Cache, number: int, size: int) -> InputError:
    """A full disk, with what is kept and what is needed; other problems as they are."""
    cause = problem.__cause__
    if not isinstance(cause, OSError) or cause.errno not in FULL:
        return problem
    done = sum(bool(shard.checksum) for shard in cache.shards)
    left = sum(shard.rows for shard in cache.shards if not shard.checksum)
    needed = size * left // max(1, cache.shards[number].rows)
    return InputError(
        f"the disk is full: {done} of {len(cache.shards)} shards of activations are kept in "
        f"{str(cache.folder)!r}, and about {human(needed)} more are needed. Make room and ask for "
        "the same again, keep them elsewhere (--cache), or take fewer tokens or float16."
    )
