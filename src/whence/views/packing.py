"""Numbers in few bytes for a page: one byte a number, one deflated blob a layer.

A weight is stored as the whole number ``k`` of ``levels`` equal steps between 0 and the largest
weight of its head, so it is off by at most half a step: ``scale / (2 · levels)``. Places that are
set apart have a scale of their own: in GPT-2 the first token takes nearly all, and in steps of its
weights the others would all be 0. With 255 levels
that is 0.2 % of the largest weight, and never more than 0.002. Equal steps, because they keep the
error the same for every weight, and because deflate then finds most weights of a real head in a few
values near zero (a square root, or a scale for each row, made the page of a real model twice as
big). Where attention is noise that no deflate can shrink, there are fewer levels.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, UInt8

from whence.core.maps import Neurons

LEVELS = (255, 191, 127, 95, 63, 47, 31)
# on either side of zero; coarser ones would save little, and a score be off by several
NEURON_LEVELS = (127, 63, 31)
# bytes of a page for weights; the limit is 1.2 MB, and the rest of the page is under 0.1 MB
ROOM = 1_080_000
# bytes beyond that: as much for each weight as in a page of 128 tokens × 6 layers × 12 heads
ROOM_PER_WEIGHT = 0.915
BESIDE_NEURONS = 0.65  # of that room is for weights where neurons want some too
# bytes that neurons may add for each weight beyond those: 4 MB at 128 tokens × 12 layers × 12 heads
MORE_PER_WEIGHT = 2.2


@dataclass(frozen=True)
class Packed:
    """The weights of one kind: a blob for each layer, and what its bytes are multiplied by."""

    blobs: tuple[str, ...]
    # the largest weight of each head: on words, and on places that are set apart
    scale: Float[np.ndarray, "layer head 2"]
    levels: tuple[int, ...]  # of each layer

    @property
    def error(self) -> float:
        """The largest that any weight of this kind can be off: half of the longest step."""
        steps = self.scale / np.asarray(self.levels, dtype=np.float64)[:, None, None]
        return float(steps.max(initial=0.0)) / 2

    @property
    def size(self) -> int:
        """Bytes in the page."""
        return sum(map(len, self.blobs))


@dataclass(frozen=True)
class PackedNeurons:
    """Queries and keys of the layers that found room.

    Entries are whole steps of ``largest / levels``, on both sides of zero. ``query`` and ``key``
    hold the largest entry of each head; ``error`` is the largest that any score
    (scale · query · key) of a layer is off, measured.
    """

    layers: tuple[int, ...]
    blobs: tuple[str, ...]
    query: Float[np.ndarray, "kept head"]
    key: Float[np.ndarray, "kept head"]
    levels: int
    error: tuple[float, ...]


def rounded_up(error: float) -> float:
    """An error with two digits, never smaller than it is.

    >>> rounded_up(0.00104), rounded_up(0.25), rounded_up(0.0)
    (0.0011, 0.25, 0.0)
    """
    if error <= 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(error)) - 1)
    return float(f"{math.ceil(error / unit - 1e-6) * unit:.2g}")


def blob(content: bytes) -> str:
    """Deflated, in letters that mean nothing to HTML."""
    # level 9 takes ten times as long for 4 % less
    return base64.b64encode(zlib.compress(content, 6)).decode()


def pack(
    weights: Mapping[str, Float[np.ndarray, "layer head from to"]],
    causal: Mapping[str, bool],
    apart: Mapping[str, Bool[np.ndarray, " to"]],
    beside_neurons: bool = False,
) -> dict[str, Packed]:
    """All kinds with 255 levels, or with as many as fit.

    Of a causal kind only the half that is not empty is stored, row by row.
    """
    finest = {k: _with_levels(w, causal[k], apart[k], LEVELS[0]) for k, w in weights.items()}
    count = sum(stored(w.shape, causal[k]) for k, w in weights.items())
    room = max(ROOM, ROOM_PER_WEIGHT * count)
    if beside_neurons:
        room *= BESIDE_NEURONS
    if sum(p.size for p in finest.values()) <= room:
        return finest
    return {k: _within(w, causal[k], apart[k], room / count) for k, w in weights.items()}


def stored(shape: Sequence[int], causal: bool) -> int:
    """How many weights are written down."""
    layers, heads, rows, columns = shape
    in_a_map = rows * columns
    if causal:
        in_a_map = rows * (rows + 1) // 2
    return layers * heads * in_a_map


def _with_levels(
    weights: Float[np.ndarray, "layer head from to"],
    causal: bool,
    apart: Bool[np.ndarray, " to"],
    levels: int,
) -> Packed:
    weights = np.nan_to_num(weights)
    on_words = weights[..., ~apart].max((-2, -1), initial=0.0)
    on_apart = weights[..., apart].max((-2, -1), initial=0.0)
    scale = np.stack([on_words, on_apart], axis=-1).astype(np.float32)

    blobs = []
    for layer, largest in zip(weights, scale, strict=True):
        of_columns = largest[:, apart.astype(np.int64)]
        blobs.append(blob(_quantised(layer, of_columns, causal, levels)))
    blobs = tuple(blobs)
    return Packed(blobs, scale, (levels,) * len(blobs))


def _within(
    weights: Float[np.ndarray, "layer head from to"],
    causal: bool,
    apart: Bool[np.ndarray, " to"],
    per_weight: float,
) -> Packed:
    """Every layer with the most levels that keep its blob within its share of the room."""
    room = per_weight * stored((1, *weights.shape[1:]), causal)
    best = [_layer_within(layer[None], causal, apart, room) for layer in weights]
    return Packed(
        tuple(p.blobs[0] for p in best),
        np.concatenate([p.scale for p in best]),
        tuple(p.levels[0] for p in best),
    )


def _layer_within(
    layer: Float[np.ndarray, "layer head from to"],
    causal: bool,
    apart: Bool[np.ndarray, " to"],
    room: float,
) -> Packed:
    """One layer with the most levels that fit; with the fewest where none do."""
    for levels in LEVELS[:-1]:
        packed = _with_levels(layer, causal, apart, levels)
        if packed.size <= room:
            return packed
    return _with_levels(layer, causal, apart, LEVELS[-1])


def _quantised(
    weights: Float[np.ndarray, "head from to"],
    scale: Float[np.ndarray, "head to"],
    causal: bool,
    levels: int,
) -> bytes:
    steps = _steps(weights, scale[:, None], levels).astype(np.uint8)
    if causal:
        steps = steps[:, *np.tril_indices(steps.shape[-1])]
    return steps.tobytes()


def _steps(
    values: Float[np.ndarray, "head row column"],
    largest: Float[np.ndarray, "head 1 _"],
    levels: int,
) -> Float[np.ndarray, "head row column"]:
    divisor = np.where(largest > 0, largest, 1).astype(np.float64)
    return np.round(values / divisor * levels)


def pack_neurons(n: Neurons, room: float) -> PackedNeurons:
    """The finest levels at which all layers fit; if none do, the coarsest, of fewer layers."""
    every = tuple(range(len(n.query)))
    blobs: Sequence[str] = ()
    for levels in NEURON_LEVELS:
        packed = _neurons_with_levels(n, every, levels)
        blobs = packed.blobs
        if sum(map(len, blobs)) <= room:
            return packed
    return _neurons_with_levels(n, _layers_that_fit(blobs, room), NEURON_LEVELS[-1])


def _layers_that_fit(blobs: Sequence[str], room: float) -> tuple[int, ...]:
    """As many layers as there is room for, evenly spread; perhaps none."""
    for count in range(len(blobs) - 1, 0, -1):
        chosen = np.unique(np.linspace(0, len(blobs) - 1, count).round().astype(int)).tolist()
        if sum(len(blobs[i]) for i in chosen) <= room:
            return tuple(chosen)
    return ()


def neuron_room(weights: int, taken: int) -> float:
    """What neurons may fill of a page with so many weights, of which so many bytes are taken."""
    return ROOM + MORE_PER_WEIGHT * max(0.0, weights - ROOM / ROOM_PER_WEIGHT) - taken


def _neurons_with_levels(n: Neurons, layers: tuple[int, ...], levels: int) -> PackedNeurons:
    chosen = list(layers)
    query = np.nan_to_num(n.query[chosen]).astype(np.float32)
    key = np.nan_to_num(n.key[chosen]).astype(np.float32)
    largest_query = np.abs(query).max((-2, -1), initial=0.0)
    largest_key = np.abs(key).max((-2, -1), initial=0.0)

    blobs, errors = [], []
    for i in range(len(layers)):
        query_steps = _signed(query[i], largest_query[i], levels)
        key_steps = _signed(key[i], largest_key[i], levels)
        blobs.append(blob(query_steps.tobytes() + key_steps.tobytes()))

        stored_query = _back(query_steps, largest_query[i], levels)
        stored_key = _back(key_steps, largest_key[i], levels)
        off = np.abs(_scores(stored_query, stored_key) - _scores(query[i], key[i]))
        errors.append(abs(n.scale) * float(off.max(initial=0.0)))
    return PackedNeurons(layers, tuple(blobs), largest_query, largest_key, levels, tuple(errors))


def _signed(
    values: Float[np.ndarray, "head row dim"], largest: Float[np.ndarray, " head"], levels: int
) -> UInt8[np.ndarray, "head row dim"]:
    return (_steps(values, largest[:, None, None], levels) + levels).astype(np.uint8)


def _back(
    steps: UInt8[np.ndarray, "head row dim"], largest: Float[np.ndarray, " head"], levels: int
) -> Float[np.ndarray, "head row dim"]:
    return (steps.astype(np.float32) - levels) * (largest / levels)[:, None, None]


def _scores(
    query: Float[np.ndarray, "head from dim"], key: Float[np.ndarray, "group to dim"]
) -> Float[np.ndarray, "head from to"]:
    """Dot products; several heads may share a key, as in grouped-query attention."""
    return query @ np.repeat(key, len(query) // len(key), axis=0).swapaxes(-1, -2)
