"""Attention maps as arrays, over tokens or over units.

Special tokens stand in their places, and their share of the attention is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.core.aggregate import Together, across_heads, across_layers, with_residual
from whence.core.errors import SettingsError, unknown_name
from whence.core.heads import HeadTable, looks_far, measured, reaches
from whence.core.passage import SPECIAL, Passage
from whence.core.render import draw, render
from whence.core.showing import token_name, visible
from whence.core.units import distinct
from whence.core.writing import write_text

# the maps that are looked at first, where a model has several kinds: what an answer reads of a text
SEEN_FIRST = ("cross", "language-to-vision")
GENERATED = 2  # the part of a place that the model wrote itself


@dataclass(frozen=True)
class Axis:
    """The labels along one side of a map, and what each of them is.

    ``special`` marks special tokens. ``part`` is 0 for the text, 1 for the second of a pair, 2 for
    what the model wrote, -1 for a special token.
    """

    labels: tuple[str, ...]
    special: Bool[np.ndarray, " place"]
    part: Int[np.ndarray, " place"]

    @property
    def shown(self) -> tuple[str, ...]:
        """The labels as they are read: of a token without the sign for the blank before it."""
        return tuple(map(token_name, self.labels))

    @property
    def names(self) -> tuple[str, ...]:
        """The same, told apart where a word stands more than once: the, the (2)."""
        return distinct(self.shown)

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class Neurons:
    """Queries and keys of every head: weight = softmax(scale · query · key + bias).

    They are of tokens. ``from_places`` and ``to_places`` say to which place of the maps each token
    belongs, so that a view can bring the tokens of a word together.
    """

    query: Float[np.ndarray, "layer head from dim"]
    key: Float[np.ndarray, "layer head to dim"]
    scale: float
    from_labels: tuple[str, ...]
    to_labels: tuple[str, ...]
    from_places: Int[np.ndarray, " from"] | None = None
    to_places: Int[np.ndarray, " to"] | None = None


@dataclass(frozen=True)
class Opening:
    """What to look at first: the place of a head in its maps, and a word that looks.

    ``by`` says how the head was found: by what is lost without it ("effects"), else by how strongly
    its words look at words further away ("reach"), or at any other place where there are none such
    ("nearest").
    """

    kind: str
    layer: int
    head: int
    place: int
    by: Literal["effects", "reach", "nearest"]


@dataclass(frozen=True, eq=False)
class AttentionMaps:
    """Attention of one passage: ``weights[kind]`` is "layer head from to", for each kind of map.

    ``tokens`` are the labels along the axes of the model's input side. Attention *to* a split word
    sums over its pieces, attention *from* it averages over them, so that rows sum to one. (They sum
    to less where a model has attention sinks, as gpt-oss does.) ``effects`` say by kind what
    switching a head off changes. Where the model wrote on, ``prompt`` is what it was given and
    ``written`` what it wrote.
    """

    passage: Passage
    weights: Mapping[str, Float[np.ndarray, "layer head from to"]]
    from_axis: Mapping[str, Axis]
    to_axis: Mapping[str, Axis]
    modules: Mapping[str, tuple[str, ...]]
    # which layers, where not all were kept
    kept_layers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    # the names of the heads, where they are not 0, 1, 2 …: "mean", or a choice
    kept_heads: tuple[str, ...] = ()
    units: str = "word"
    model: str = ""
    neurons: Mapping[str, Neurons] = field(default_factory=dict)
    effects: Mapping[str, Mapping[str, Float[np.ndarray, "layer head"]]] = field(
        default_factory=dict
    )
    prompt: str = ""
    written: str = ""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of encoder, decoder and cross, those that the model has."""
        return tuple(self.weights)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The labels of what is attended to."""
        return self.to_axis[self.kinds[0]].labels

    def special_share(self, kind: str | None = None) -> Float[np.ndarray, "layer head"]:
        """The share of attention that special tokens take, in each head."""
        kind = self._kind(kind)
        on_special = self.weights[kind][..., self.to_axis[kind].special]
        return on_special.sum(-1).mean(-1)

    def set_apart(self, kind: str | None = None) -> Bool[np.ndarray, " to"]:
        """The places that take attention whatever the words are.

        Special tokens, and the first token of a model that does not look ahead.
        """
        kind = self._kind(kind)
        apart = self.to_axis[kind].special.copy()
        if self.is_causal(kind):
            apart[0] = True
        return apart

    def opening(self, kind: str | None = None) -> Opening:
        """The head and the word that a page opens on; without ``kind``, in which kind of map too.

        Of the effects, if they were measured, the head whose loss changes the output most. Else the
        head with the largest "reach": its words look most strongly at one word that is neither
        themselves, nor beside them, nor punctuation, nor set apart. The word is the one of this
        head that does so most.
        """
        seen_first = next((k for k in SEEN_FIRST if k in self.weights), None)
        kind = self._kind(kind or seen_first)
        table = self.heads(kind)
        labels, apart = self.to_axis[kind].labels, self.set_apart(kind)
        is_far = looks_far(self.weights[kind], labels, apart, self.looks_at_itself(kind))
        by: Literal["effects", "reach", "nearest"] = "reach" if is_far else "nearest"
        column = table["reach"]
        if "output_change" in table.columns:
            by, column = "effects", table["output_change"]
        layer, head = np.unravel_index(np.nan_to_num(column).argmax(), column.shape)

        # the words of this head alone, and not its special tokens, if it has words
        looks = self.from_axis[kind].special
        of_head = self.weights[kind][layer, head][None, None]
        reach = reaches(of_head, labels, apart, self.looks_at_itself(kind))[0, 0]
        if not looks.all():
            reach = np.where(looks, -1.0, reach)
        return Opening(kind, int(layer), int(head), int(np.nan_to_num(reach).argmax()), by)

    def is_causal(self, kind: str | None = None) -> bool:
        """Whether nothing looks ahead in this kind of map, so that one half of it is empty."""
        weights = self.weights[kind or self.kinds[0]]
        is_square = weights.shape[-1] == weights.shape[-2] > 1
        return is_square and not np.triu(weights, 1).any()

    def layer_names(self, kind: str | None = None) -> tuple[str, ...]:
        """The layers' numbers in the model, counted from 0."""
        kind = kind or self.kinds[0]
        numbers = self.kept_layers.get(kind) or range(self.weights[kind].shape[0])
        return tuple(map(str, numbers))

    def head_names(self, kind: str | None = None) -> tuple[str, ...]:
        """The heads' numbers, counted from 0; or what became of them."""
        if self.kept_heads:
            return self.kept_heads
        kind = kind or self.kinds[0]
        return tuple(map(str, range(self.weights[kind].shape[1])))

    def heads(self, kind: str | None = None) -> HeadTable:
        """What each head does: entropy, offsets, shares, distances between heads.

        With ``attend(…, effects=True)`` also what is lost without it.
        """
        kind = self._kind(kind)
        axis = self.to_axis[kind]
        looks_at_itself = self.looks_at_itself(kind)
        columns = measured(
            self.weights[kind], axis.labels, axis.special, looks_at_itself, self.set_apart(kind)
        )
        columns |= self.effects.get(kind, {})
        return HeadTable(
            kind=kind,
            layers=self.layer_names(kind),
            heads=self.head_names(kind),
            columns=columns,
            weights=self.weights[kind],
            names=axis.names,
            units=self.units,
            apart=self.set_apart(kind),
        )

    def aggregate(
        self,
        layers: Together | int = "mean",
        heads: Together | int = "mean",
        *,
        residual: bool = False,
        kind: str | None = None,
    ) -> Float[np.ndarray, "from to"]:
        """One matrix of all layers and heads.

        They are brought together entry by entry, or one is chosen by its place, or layers are
        multiplied as matrices, later ones on the left. With ``residual`` half of each place stays
        where it is.
        """
        kind = self._kind(kind)
        if (residual or layers == "product") and not self.looks_at_itself(kind):
            raise SettingsError(
                f"{kind} attention looks from one text at another, "
                "so it has no residual and no product of layers."
            )
        maps = across_heads(self.weights[kind], heads)
        if residual:
            maps = with_residual(maps)
        return across_layers(maps, layers)

    def rollout(self, kind: str | None = None) -> Float[np.ndarray, "from to"]:
        """The whole matrix of attention rollout, Â_N … Â_1, over the places of these maps.

        The method of that name follows one row of it, over tokens; on words it is the same only
        where no word is split.
        """
        return self.aggregate("product", "mean", residual=True, kind=kind)

    def plot(
        self, layer: int, head: int | str = "mean", ax: Any = None, kind: str | None = None
    ) -> Any:
        """A heat-map of one head for a paper: matplotlib Axes in, Axes out."""
        return draw("plot_map", self, layer, head, ax=ax, kind=kind)

    def looks_at_itself(self, kind: str) -> bool:
        """Whether this kind of map looks from a text at the same text."""
        return kind != "cross" and self.from_axis[kind].labels == self.to_axis[kind].labels

    def _kind(self, kind: str | None) -> str:
        if kind is not None and kind not in self.weights:
            raise unknown_name("kind of attention", kind, self.kinds)
        return kind or self.kinds[0]

    def to_html(self, path: str | Path | None = None) -> str:
        """A self-contained page with the head and the model view, written to ``path`` if given.

        Maps that were made with ``neurons=True`` have the neuron view too.
        """
        page = render("maps_page", self)
        if path is not None:
            write_text(path, page)
        return page

    def _repr_html_(self) -> str:
        return render("maps_fragment", self)

    def __repr__(self) -> str:
        shapes = []
        for kind, weights in self.weights.items():
            sizes = " × ".join(map(str, weights.shape))
            shapes.append(f"{kind}: {sizes}")
        return visible(f"AttentionMaps({', '.join(shapes)}; layer × head × from × to)")


def axis_of(passage: Passage, units: str, before: tuple[str, ...] = ()) -> Axis:
    """Special tokens and units (or tokens) in the order of the text.

    ``before`` are further special tokens in front.
    """
    if units == "token":
        labels, special, part = passage.tokens, passage.special, passage.parts
    else:
        firsts = [group[0] for group in groups_of(passage)]
        labels = tuple(_label(passage, token) for token in firsts)
        special = np.array([passage.unit_of[token] < 0 for token in firsts], dtype=bool)
        part = np.array([passage.parts[token] for token in firsts], dtype=np.int64)

    in_front = np.full(len(before), SPECIAL, dtype=np.int64)
    return Axis(
        labels=before + tuple(labels),
        special=np.concatenate([in_front < 0, special]),
        part=np.concatenate([in_front, part]),
    )


def _label(passage: Passage, token: int) -> str:
    """The name of the token's unit, or the token itself where it is special."""
    unit = passage.unit_of[token]
    return passage.tokens[token] if unit < 0 else passage.names[unit]


def groups_of(passage: Passage) -> list[list[int]]:
    """Token indices in groups: each special token alone, each unit's tokens together."""
    groups: list[list[int]] = []
    for token, unit in enumerate(passage.unit_of):
        if unit >= 0 and groups and passage.unit_of[groups[-1][0]] == unit:
            groups[-1].append(token)
        else:
            groups.append([token])
    return groups


def membership(passage: Passage, units: str, before: int = 0) -> Float[np.ndarray, "place token"]:
    """1 where a token belongs to a place of the axis; ``before`` tokens in front are one each."""
    tokens = before + len(passage)
    if units == "token":
        return np.eye(tokens, dtype=np.float32)

    groups = groups_of(passage)
    out = np.zeros((before + len(groups), tokens), dtype=np.float32)
    for token in range(before):
        out[token, token] = 1
    for place, group in enumerate(groups, before):
        for token in group:
            out[place, before + token] = 1
    return out
