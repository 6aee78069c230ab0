"""Attention maps as arrays, over tokens or over units, special tokens in their places and their share of the attention known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from whence.core.passage import Passage


@dataclass(frozen=True)
class Axis:
    """The labels along one side of a map, and which of them are special tokens."""

    labels: tuple[str, ...]
    special: Bool[np.ndarray, " place"]


@dataclass(frozen=True, eq=False)
class AttentionMaps:
    """Attention of one passage: ``weights[kind]`` is "layer head from to", for each kind that the model has.

    ``tokens`` are the labels along the axes of the model's input side. Rows sum to one (to less where a
    model has attention sinks, as gpt-oss does): attention *to* a split word sums over its pieces, *from* it averages.
    """

    passage: Passage
    weights: Mapping[str, Float[np.ndarray, "layer head from to"]]
    from_axis: Mapping[str, Axis]
    to_axis: Mapping[str, Axis]
    modules: Mapping[str, tuple[str, ...]]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of encoder, decoder and cross, those that the model has."""
        return tuple(self.weights)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The labels of what is attended to."""
        return self.to_axis[self.kinds[0]].labels

    def special_share(self, kind: str | None = None) -> Float[np.ndarray, "layer head"]:
        """The share of attention that special tokens soak up, in each head: reported, not hidden."""
        kind = kind or self.kinds[0]
        return self.weights[kind][..., self.to_axis[kind].special].sum(-1).mean(-1)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{k}: {' × '.join(map(str, w.shape))}" for k, w in self.weights.items())
        return f"AttentionMaps({shapes}; layer × head × from × to)"


def axis_of(passage: Passage, units: str, before: tuple[str, ...] = ()) -> Axis:
    """Special tokens and units (or tokens) in the order of the text; ``before`` are further special tokens in front."""
    if units == "token":
        labels, special = passage.tokens, passage.special
    else:
        groups = groups_of(passage)
        labels = tuple(passage.tokens[g[0]] if passage.unit_of[g[0]] < 0 else passage.names[passage.unit_of[g[0]]] for g in groups)
        special = np.array([passage.unit_of[g[0]] < 0 for g in groups], dtype=bool)
    return Axis(before + tuple(labels), np.concatenate([np.ones(len(before), dtype=bool), special]))


def groups_of(passage: Passage) -> list[list[int]]:
    """Token indices in groups: each special token alone, each unit's tokens together."""
    groups: list[list[int]] = []
    for t, unit in enumerate(passage.unit_of):
        if unit >= 0 and groups and passage.unit_of[groups[-1][0]] == unit:
            groups[-1].append(t)
        else:
            groups.append([t])
    return groups


def membership(passage: Passage, units: str, before: int = 0) -> Float[np.ndarray, "place token"]:
    """1 where a token belongs to a place of the axis."""
    groups = [[t] for t in range(len(passage))] if units == "token" else groups_of(passage)
    groups = [[b] for b in range(before)] + [[t + before for t in g] for g in groups]
    out = np.zeros((len(groups), len(passage) + before), dtype=np.float32)
    for place, group in enumerate(groups):
        out[place, group] = 1
    return out
