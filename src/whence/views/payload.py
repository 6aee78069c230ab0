"""What the page of attention maps is drawn from: labels, scales and shares as JSON, weights and neurons as packed blobs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Bool

from whence.core.maps import AttentionMaps, Axis, Neurons, groups_of
from whence.views import wording
from whence.views.packing import (
    Packed,
    PackedNeurons,
    neuron_room,
    pack_neurons,
    rounded_up,
    stored,
)

PLURAL = {
    "word": "words",
    "token": "tokens",
    "sentence": "sentences",
    "patch": "patches",
    "section": "sections",
}


def data(
    maps: AttentionMaps,
    packed: Mapping[str, Packed],
    neurons: Mapping[str, PackedNeurons],
    causal: Mapping[str, bool],
) -> str:
    """All that is not packed. ``<`` never appears in it, so that no text can end the script element."""
    content = {
        "model": wording.visible(maps.model),
        "units": maps.units,
        "kinds": [_kind(maps, k, packed[k], neurons.get(k), causal[k]) for k in maps.kinds],
        "image": _cells(maps),
    }
    raw = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        raw = raw.replace(sign, f"\\u{ord(sign):04x}")
    return f'<script type="application/json">{raw}</script>'


def blobs(packed: Mapping[str, Packed], neurons: Mapping[str, PackedNeurons]) -> list[str]:
    """The packed numbers as inert elements: the browser keeps them as text until a layer is wanted."""
    out = []
    for i, (kind, p) in enumerate(packed.items()):
        out += [_blob("weights", i, layer, content) for layer, content in enumerate(p.blobs)]
        if kind in neurons:
            kept = zip(neurons[kind].layers, neurons[kind].blobs, strict=True)
            out += [_blob("neurons", i, layer, content) for layer, content in kept]
    return out


def packed_neurons(
    maps: AttentionMaps, packed: Mapping[str, Packed], taken: int, causal: Mapping[str, bool]
) -> dict[str, PackedNeurons]:
    """Each kind's neurons in its share of the room that weights and image leave."""
    weights = sum(stored(w.shape, causal[k]) for k, w in maps.weights.items())
    room = neuron_room(weights, taken + sum(p.size for p in packed.values()))
    every = {k: _aligned(maps, k) for k in maps.neurons if k in packed}
    entries = {k: n.query.size + n.key.size for k, n in every.items()}
    return {
        k: pack_neurons(every[k], room * count / sum(entries.values()))
        for k, count in entries.items()
        if count
    }


def _aligned(maps: AttentionMaps, kind: str) -> Neurons:
    """The queries and keys of those layers and heads that the maps are of, where only some were kept."""
    n, (layers, heads) = maps.neurons[kind], maps.weights[kind].shape[:2]
    query, key = n.query, n.key
    if len(query) != layers and len(query) > max(map(int, maps.layer_names(kind))):
        query, key = (side[[int(name) for name in maps.layer_names(kind)]] for side in (query, key))
    names = maps.head_names(kind)
    if (
        query.shape[1] != heads
        and query.shape[1] == key.shape[1]
        and all(name.isdigit() for name in names)
    ):
        query, key = (side[:, [int(name) for name in names]] for side in (query, key))
    return replace(n, query=query, key=key)


def _kind(
    maps: AttentionMaps, kind: str, packed: Packed, neurons: PackedNeurons | None, causal: bool
) -> dict[str, Any]:
    patches = maps.passage.pixels is not None
    return {
        "name": kind,
        "layers": maps.layer_names(kind),
        "heads": maps.head_names(kind),
        "causal": causal,
        "from": _axis(maps.from_axis[kind], patches),
        "to": _axis(maps.to_axis[kind], patches),
        "scale": _rounded(packed.scale, 9),
        "levels": packed.levels,
        "share": _rounded(np.nan_to_num(maps.special_share(kind)), 6),
        "neurons": None if neurons is None else _neuron_data(maps, kind, neurons),
    }


def _axis(axis: Axis, patches: bool) -> dict[str, Any]:
    # of "patch 0,3" the numbers are enough: all are patches
    return {
        "labels": [_label(x.removeprefix("patch ") if patches else x) for x in axis.labels],
        "special": axis.special.astype(int).tolist(),
        "part": axis.part.tolist(),
    }


def _label(name: str) -> str:
    """A label as it is read: without the white space around it, unless there is nothing else."""
    return wording.visible(name.strip()) or wording.label(name)


def _rounded(values: np.ndarray, digits: int) -> list[Any]:
    """As lists of the shortest numbers with so many significant digits."""
    return [_rounded(v, digits) if v.ndim else float(f"{v:.{digits}g}") for v in values]


def _neuron_data(maps: AttentionMaps, kind: str, packed: PackedNeurons) -> dict[str, Any]:
    n, weights = _aligned(maps, kind), maps.weights[kind]
    layers, heads = n.query.shape[:2]
    names = maps.layer_names(kind) if layers == len(weights) else tuple(map(str, range(layers)))
    why = ""  # there is no weight beside a score
    if maps.units != "token":
        places = PLURAL.get(maps.units, maps.units)
        why = f'The places of the other views are {places}, which have no query of their own: attend(…, units="token") gives the weights too.'
    elif weights.shape != (layers, heads, len(n.from_labels), len(n.to_labels)):
        why = "The other views do not hold these heads one by one, so there are scores here, but no weights."
    return {
        "layers": packed.layers,
        "names": names,
        "heads": maps.head_names(kind)
        if heads == weights.shape[1]
        else tuple(map(str, range(heads))),
        "shared": heads // n.key.shape[1],
        "dim": n.query.shape[-1],
        "scale": n.scale,
        "from": [_label(x) for x in n.from_labels],
        "to": [_label(x) for x in n.to_labels],
        "special": _special(maps, n, kind).astype(int).tolist(),
        "query": _rounded(packed.query, 9),
        "key": _rounded(packed.key, 9),
        "levels": packed.levels,
        "error": [rounded_up(e) for e in packed.error],
        "why": why,
    }


def _special(maps: AttentionMaps, n: Neurons, kind: str) -> Bool[np.ndarray, " to"]:
    """Which of the tokens attended to are special, as far as that can be told."""
    if n.to_labels == maps.to_axis[kind].labels:
        return maps.to_axis[kind].special
    return (
        maps.passage.special
        if n.to_labels == maps.passage.tokens
        else np.zeros(len(n.to_labels), dtype=bool)
    )


def _cells(maps: AttentionMaps) -> dict[str, Any] | None:
    """Which patch each place is: row and column, or nothing."""
    p = maps.passage
    if p.pixels is None:
        return None
    first = range(len(p)) if maps.units == "token" else [g[0] for g in groups_of(p)]
    cells: Sequence[Any] = [
        p.unit_spans[p.unit_of[t]][1:] if p.unit_of[t] >= 0 else None for t in first
    ]
    return {
        "rows": 1 + max(r for _, r, _ in p.unit_spans),
        "columns": 1 + max(c for _, _, c in p.unit_spans),
        "cells": cells,
    }


def _blob(what: str, kind: int, layer: int, content: str) -> str:
    return f'<script type="text/plain" data-blob="{what}-{kind}-{layer}">{content}</script>'
