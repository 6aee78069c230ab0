"""What the page of attention maps is drawn from.

Labels, scales and shares are JSON; weights and neurons are packed blobs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.core.maps import AttentionMaps, Axis, Neurons, groups_of
from whence.core.passage import Passage
from whence.core.showing import token_name
from whence.core.units import distinct
from whence.views import wording
from whence.views.habits import does, why
from whence.views.markup import element
from whence.views.packing import (
    Packed,
    PackedNeurons,
    neuron_room,
    pack_neurons,
    rounded_up,
    stored,
)


def data(
    maps: AttentionMaps,
    packed: Mapping[str, Packed],
    neurons: Mapping[str, PackedNeurons],
    causal: Mapping[str, bool],
) -> dict[str, Any]:
    """All that is not packed."""
    kinds = [_kind(maps, k, packed[k], neurons.get(k), causal[k]) for k in maps.kinds]
    opening = maps.opening()
    return {
        "model": wording.visible(maps.model),
        "units": maps.units,
        "kind": maps.kinds.index(opening.kind),
        "why": why(maps, opening),
        "kinds": kinds,
        "image": _cells(maps),
    }


def blobs(packed: Mapping[str, Packed], neurons: Mapping[str, PackedNeurons]) -> list[str]:
    """The packed numbers as inert elements.

    The browser keeps them as text until a layer is wanted.
    """
    out = []
    for i, (kind, weights) in enumerate(packed.items()):
        for layer, content in enumerate(weights.blobs):
            out.append(_blob(f"weights-{i}-{layer}", content))
        if kind not in neurons:
            continue
        for layer, content in zip(neurons[kind].layers, neurons[kind].blobs, strict=True):
            out.append(_blob(f"neurons-{i}-{layer}", content))
    return out


def _blob(name: str, content: str) -> str:
    return element("script", content, type="text/plain", data_blob=name)


def packed_neurons(
    maps: AttentionMaps, packed: Mapping[str, Packed], taken: int, causal: Mapping[str, bool]
) -> dict[str, PackedNeurons]:
    """Each kind's neurons in its share of the room that weights and image leave."""
    weights = sum(stored(w.shape, causal[k]) for k, w in maps.weights.items())
    room = neuron_room(weights, taken + sum(p.size for p in packed.values()))
    every = {kind: _aligned(maps, kind) for kind in maps.neurons if kind in packed}
    entries = {kind: n.query.size + n.key.size for kind, n in every.items()}
    total = sum(entries.values())

    out = {}
    for kind, count in entries.items():
        if count:
            out[kind] = pack_neurons(every[kind], room * count / total)
    return out


def _aligned(maps: AttentionMaps, kind: str) -> Neurons:
    """The queries and keys of the layers and heads that are in the maps, if only some are."""
    neurons = merged(maps.neurons[kind], maps.from_axis[kind], maps.to_axis[kind])
    query, key = neurons.query, neurons.key
    layers, heads = maps.weights[kind].shape[:2]

    if len(query) != layers:
        kept = [int(name) for name in maps.layer_names(kind)]
        if len(query) > max(kept):
            query, key = query[kept], key[kept]

    names = maps.head_names(kind)
    chosen = all(name.isdigit() for name in names)  # and not "mean"
    own_keys = query.shape[1] == key.shape[1]  # heads do not share them
    if query.shape[1] != heads and own_keys and chosen:
        kept = [int(name) for name in names]
        query, key = query[:, kept], key[:, kept]
    return replace(neurons, query=query, key=key)


def merged(neurons: Neurons, looking: Axis, seen: Axis) -> Neurons:
    """The tokens of each place brought together: the mean of their queries, and of their keys.

    Scores are products, so that the score between two words is the mean over their tokens.
    """
    if neurons.from_places is None or neurons.to_places is None:
        return neurons
    if len(looking) == len(neurons.from_labels) and len(seen) == len(neurons.to_labels):
        return neurons
    return Neurons(
        query=_mean_of_places(neurons.query, neurons.from_places, len(looking)),
        key=_mean_of_places(neurons.key, neurons.to_places, len(seen)),
        scale=neurons.scale,
        from_labels=looking.labels,
        to_labels=seen.labels,
    )


def _mean_of_places(
    vectors: Float[np.ndarray, "layer head token dim"],
    places: Int[np.ndarray, " token"],
    count: int,
) -> Float[np.ndarray, "layer head place dim"]:
    member = (np.arange(count)[:, None] == places[None]).astype(vectors.dtype)
    share = member / np.maximum(member.sum(-1, keepdims=True), 1)
    return np.einsum("pt,lhtd->lhpd", share, vectors)


def _kind(
    maps: AttentionMaps, kind: str, packed: Packed, neurons: PackedNeurons | None, causal: bool
) -> dict[str, Any]:
    patches = maps.passage.pixels is not None
    apart = maps.set_apart(kind)
    looks_at_itself = maps.looks_at_itself(kind)
    table, opening = maps.heads(kind), maps.opening(kind)
    layers, heads = maps.weights[kind].shape[:2]
    return {
        "name": kind,
        "two_sided": not looks_at_itself,
        "opening": {"layer": opening.layer, "head": opening.head, "place": opening.place},
        "says": [[does(table, i, j) for j in range(heads)] for i in range(layers)],
        "layers": maps.layer_names(kind),
        "heads": maps.head_names(kind),
        "causal": causal,
        "from": _axis(maps.from_axis[kind], apart if looks_at_itself else None, patches),
        "to": _axis(maps.to_axis[kind], apart, patches),
        "scale": _rounded(packed.scale, 9),
        "levels": packed.levels,
        "share": _rounded(np.nan_to_num(_share(maps.weights[kind], apart)), 6),
        "neurons": None if neurons is None else _neuron_data(maps, kind, neurons),
    }


def _share(
    weights: Float[np.ndarray, "layer head from to"], apart: Bool[np.ndarray, " to"]
) -> Float[np.ndarray, "layer head"]:
    """Of all attention of a head, to the places that are set apart."""
    return weights[..., apart].sum(-1).mean(-1)


def _axis(axis: Axis, apart: Bool[np.ndarray, " place"] | None, patches: bool) -> dict[str, Any]:
    """``names`` are labels that are told apart where they repeat."""
    labels = list(axis.shown)
    if patches:  # of "patch 0,3" the numbers are enough: all are patches
        labels = [label.removeprefix("patch ") for label in labels]
    labels = [_label(label) for label in labels]
    apart = axis.special if apart is None else apart
    return {
        "labels": labels,
        "names": list(distinct(labels)),
        "special": axis.special.astype(int).tolist(),
        "apart": apart.astype(int).tolist(),
        "part": axis.part.tolist(),
    }


def _label(name: str) -> str:
    """A label as it is read: without the white space around it, unless there is nothing else."""
    return wording.visible(name.strip()) or wording.label(name)


def _rounded(values: np.ndarray, digits: int) -> list[Any]:
    """As lists of the shortest numbers with so many significant digits."""
    if values.ndim == 1:
        return [float(f"{value:.{digits}g}") for value in values]
    return [_rounded(row, digits) for row in values]


def _neuron_data(maps: AttentionMaps, kind: str, packed: PackedNeurons) -> dict[str, Any]:
    n = _aligned(maps, kind)
    layers, heads = n.query.shape[:2]
    layers_of_maps, heads_of_maps = maps.weights[kind].shape[:2]
    layer_names = maps.layer_names(kind) if layers == layers_of_maps else _numbers(layers)
    head_names = maps.head_names(kind) if heads == heads_of_maps else _numbers(heads)
    return {
        "layers": packed.layers,
        "names": layer_names,
        "heads": head_names,
        "shared": heads // n.key.shape[1],
        "dim": n.query.shape[-1],
        "scale": n.scale,
        "from": list(distinct([_label(token_name(label)) for label in n.from_labels])),
        "to": list(distinct([_label(token_name(label)) for label in n.to_labels])),
        "apart": _apart(maps, n, kind).astype(int).tolist(),
        "merged": maps.units != "token" and _has_split_places(maps.neurons[kind]),
        "query": _rounded(packed.query, 9),
        "key": _rounded(packed.key, 9),
        "levels": packed.levels,
        "error": [rounded_up(e) for e in packed.error],
        "why": _why_no_weights(maps, n, kind),
    }


def _numbers(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))


def _why_no_weights(maps: AttentionMaps, n: Neurons, kind: str) -> str:
    """Why there is no weight beside a score; empty where there is one.

    Said in the neuron view where the maps are of other heads or places: ``The other views do not
    hold these heads one by one, so there are scores here, but no weights.``
    """
    layers, heads = n.query.shape[:2]
    if maps.weights[kind].shape != (layers, heads, len(n.from_labels), len(n.to_labels)):
        return (
            "The other views do not hold these heads one by one, "
            "so there are scores here, but no weights."
        )
    return ""


def _apart(maps: AttentionMaps, n: Neurons, kind: str) -> Bool[np.ndarray, " to"]:
    """Which of the places attended to are set apart, as far as that can be told."""
    if len(n.to_labels) == len(maps.to_axis[kind]):
        return maps.set_apart(kind)
    return np.zeros(len(n.to_labels), dtype=bool)


def _has_split_places(n: Neurons) -> bool:
    """Whether some place of the maps has several tokens."""
    return any(
        places is not None and len(np.unique(places)) < len(places)
        for places in (n.from_places, n.to_places)
    )


def _cells(maps: AttentionMaps) -> dict[str, Any] | None:
    """Which patch each place is: row and column, or nothing."""
    passage = maps.passage
    if passage.pixels is None:
        return None
    first_tokens = range(len(passage))
    if maps.units != "token":
        first_tokens = [group[0] for group in groups_of(passage)]
    return {
        "rows": 1 + max(row for _, row, _ in passage.unit_spans),
        "columns": 1 + max(column for _, _, column in passage.unit_spans),
        "cells": [_cell(passage, token) for token in first_tokens],
    }


def _cell(passage: Passage, token: int) -> Sequence[int] | None:
    """Row and column of the patch that a token stands for; None for a special token."""
    unit = passage.unit_of[token]
    return passage.unit_spans[unit][1:] if unit >= 0 else None
