"""Attention maps as arrays, over tokens or over units, special tokens in their places and their share of the attention known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.core.aggregate import Together, across_heads, across_layers, with_residual
from whence.core.errors import SettingsError, unknown_name
from whence.core.heads import HeadTable, table_of
from whence.core.passage import SPECIAL, Passage
from whence.core.render import draw, render, write_text

GENERATED = 2  # the part of a place that the model wrote itself


@dataclass(frozen=True)
class Axis:
    """The labels along one side of a map, which of them are special tokens, and the text that each comes from.

    ``part`` is 0 for the text, 1 for the second of a pair, 2 for what the model wrote, -1 for a special token.
    """

    labels: tuple[str, ...]
    special: Bool[np.ndarray, " place"]
    part: Int[np.ndarray, " place"]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class Neurons:
    """Queries and keys of every head, token by token (never merged into words): weight = softmax(scale · query · key + bias)."""

    query: Float[np.ndarray, "layer head from dim"]
    key: Float[np.ndarray, "layer head to dim"]
    scale: float
    from_labels: tuple[str, ...]
    to_labels: tuple[str, ...]


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
    kept_layers: Mapping[str, tuple[int, ...]] = field(
        default_factory=dict
    )  # which layers, where not all were kept
    kept_heads: tuple[
        str, ...
    ] = ()  # the names of the heads, where they are not 0, 1, 2 …: "mean", or a choice
    units: str = "word"
    model: str = ""
    neurons: Mapping[str, Neurons] = field(default_factory=dict)
    effects: Mapping[str, Mapping[str, Float[np.ndarray, "layer head"]]] = field(
        default_factory=dict
    )  # of switching a head off

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
        kind = self._kind(kind)
        return self.weights[kind][..., self.to_axis[kind].special].sum(-1).mean(-1)

    def is_causal(self, kind: str | None = None) -> bool:
        """Whether nothing looks ahead in this kind of map, so that one half of it is empty."""
        w = self.weights[kind or self.kinds[0]]
        return w.shape[-1] == w.shape[-2] > 1 and not np.triu(w, 1).any()

    def layer_names(self, kind: str | None = None) -> tuple[str, ...]:
        """The layers' numbers in the model, counted from 0."""
        kind = kind or self.kinds[0]
        return tuple(map(str, self.kept_layers.get(kind) or range(self.weights[kind].shape[0])))

    def head_names(self, kind: str | None = None) -> tuple[str, ...]:
        """The heads' numbers, counted from 0; or what became of them."""
        return self.kept_heads or tuple(
            map(str, range(self.weights[kind or self.kinds[0]].shape[1]))
        )

    def heads(self, kind: str | None = None) -> HeadTable:
        """What each head does: entropy, offsets, shares, distances between heads; with ``attend(…, effects=True)`` what it is good for."""
        kind = self._kind(kind)
        axis = self.to_axis[kind]
        effects = self.effects.get(kind, {})
        names = self.layer_names(kind), self.head_names(kind)
        return table_of(
            kind,
            *names,
            self.weights[kind],
            axis.labels,
            axis.special,
            effects,
            self._looks_at_itself(kind),
        )

    def aggregate(
        self,
        layers: Together | int = "mean",
        heads: Together | int = "mean",
        *,
        residual: bool = False,
        kind: str | None = None,
    ) -> Float[np.ndarray, "from to"]:
        """One matrix of all layers and heads: brought together entry by entry, one chosen by its place, or layers as a product of
        matrices (later ones on the left); with ``residual`` half of each place stays where it is."""
        kind = self._kind(kind)
        if (residual or layers == "product") and not self._looks_at_itself(kind):
            raise SettingsError(
                f"{kind} attention looks from one text at another, so it has no residual and no product of layers."
            )
        maps = across_heads(self.weights[kind], heads)
        return across_layers(with_residual(maps) if residual else maps, layers)

    def rollout(self, kind: str | None = None) -> Float[np.ndarray, "from to"]:
        """The whole matrix of attention rollout, Â_N … Â_1, over the places of these maps.

        The method of that name follows one row of it, over tokens; on words it is the same only where no word is split.
        """
        return self.aggregate("product", "mean", residual=True, kind=kind)

    def plot(
        self, layer: int, head: int | str = "mean", ax: Any = None, kind: str | None = None
    ) -> Any:
        """A heat-map of one head for a paper: matplotlib Axes in, Axes out."""
        return draw("plot_map", self, layer, head, ax=ax, kind=kind)

    def _looks_at_itself(self, kind: str) -> bool:
        return kind != "cross" and self.from_axis[kind].labels == self.to_axis[kind].labels

    def _kind(self, kind: str | None) -> str:
        if kind is not None and kind not in self.weights:
            raise unknown_name("kind of attention", kind, self.kinds)
        return kind or self.kinds[0]

    def to_html(self, path: str | Path | None = None) -> str:
        """A self-contained page with the head view, the model view and (with ``neurons=True``) the neuron view; written to ``path``."""
        page = render("maps_page", self)
        if path is not None:
            write_text(path, page)
        return page

    def _repr_html_(self) -> str:
        return render("maps_fragment", self)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{k}: {' × '.join(map(str, w.shape))}" for k, w in self.weights.items())
        return f"AttentionMaps({shapes}; layer × head × from × to)"


def axis_of(passage: Passage, units: str, before: tuple[str, ...] = ()) -> Axis:
    """Special tokens and units (or tokens) in the order of the text; ``before`` are further special tokens in front."""
    if units == "token":
        labels, special, part = passage.tokens, passage.special, passage.parts
    else:
        groups = groups_of(passage)
        labels = tuple(
            passage.tokens[g[0]]
            if passage.unit_of[g[0]] < 0
            else passage.names[passage.unit_of[g[0]]]
            for g in groups
        )
        special = np.array([passage.unit_of[g[0]] < 0 for g in groups], dtype=bool)
        part = np.array([passage.parts[g[0]] for g in groups], dtype=np.int64)
    in_front = np.full(len(before), SPECIAL, dtype=np.int64)
    return Axis(
        before + tuple(labels),
        np.concatenate([in_front < 0, special]),
        np.concatenate([in_front, part]),
    )


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
