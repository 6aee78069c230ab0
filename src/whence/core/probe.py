"""Two texts that differ in a word or two, and the attention that differs with them.

The texts are aligned place by place. This is a probe for bias.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.core.errors import InputError
from whence.core.maps import AttentionMaps
from whence.core.render import render, write_text


@dataclass(frozen=True)
class Change:
    """One weight that differs between the two texts: second less first."""

    kind: str
    layer: str
    head: str
    source: str  # the place that looks, "She → He" where the texts differ
    to: str
    first: float
    second: float

    @property
    def change(self) -> float:
        """Second less first."""
        return self.second - self.first


@dataclass(frozen=True, eq=False)
class Probe:
    """Two maps over the places that both texts have, and how they differ.

    ``difference[kind]`` is "layer head from to", second less first. ``changed`` marks the places
    where the texts say different things.
    """

    first: AttentionMaps
    second: AttentionMaps
    labels: tuple[str, ...]
    changed: tuple[bool, ...]
    # of each aligned place: its index in the first and in the second text
    places: Int[np.ndarray, "place 2"]
    difference: Mapping[str, Float[np.ndarray, "layer head from to"]]
    left_out: tuple[str, ...]  # words that have no counterpart

    def strongest(self, count: int = 10, source: str | None = None) -> list[Change]:
        """The weights that differ most, among all heads.

        ``source`` takes only the weights with which that place looks at others.
        """
        changes = []
        for kind, difference in self.difference.items():
            size = np.abs(difference)
            if source is not None:
                size = np.where(self._is_called(source)[:, None], size, -1)
            order = np.argsort(-size, axis=None, kind="stable")[:count]
            for where in zip(*np.unravel_index(order, size.shape), strict=True):
                layer, head, row, column = map(int, where)
                changes.append(self._change(kind, layer, head, row, column))
        return sorted(changes, key=lambda change: -abs(change.change))[:count]

    def _is_called(self, name: str) -> Bool[np.ndarray, " place"]:
        """The places of that name, in either of the texts."""
        here = [name == label or name in label.split(" → ") for label in self.labels]
        if not any(here):
            raise InputError(
                f"no aligned place is called {name!r}; there are: {', '.join(self.labels)}."
            )
        return np.array(here)

    def mean(self, kind: str | None = None) -> Float[np.ndarray, "from to"]:
        """The difference, averaged over layers and heads."""
        return self.difference[kind or next(iter(self.difference))].mean((0, 1))

    def _change(self, kind: str, layer: int, head: int, row: int, column: int) -> Change:
        first, second = self.first.weights[kind], self.second.weights[kind]
        looks, seen = self.places[row], self.places[column]
        return Change(
            kind=kind,
            layer=self.first.layer_names(kind)[layer],
            head=self.first.head_names(kind)[head],
            source=self.labels[row],
            to=self.labels[column],
            first=float(first[layer, head, looks[0], seen[0]]),
            second=float(second[layer, head, looks[1], seen[1]]),
        )

    def to_dict(self, count: int = 50) -> dict[str, Any]:
        """Plain values for JSON: places, mean difference, and the weights that differ most."""
        strongest = [vars(c) | {"change": c.change} for c in self.strongest(count)]
        return {
            "texts": [self.first.passage.text, self.second.passage.text],
            "places": list(self.labels),
            "changed": list(self.changed),
            "left_out": list(self.left_out),
            "mean_difference": {kind: self.mean(kind).tolist() for kind in self.difference},
            "strongest": strongest,
        }

    def to_html(self, path: str | Path | None = None) -> str:
        """A page with the aligned texts, the mean difference as a heat-map, and what differs most.

        It is written to ``path`` if one is given.
        """
        page = render("probe_page", self)
        if path is not None:
            write_text(path, page)
        return page

    def _repr_html_(self) -> str:
        return render("probe_fragment", self)

    @property
    def is_same(self) -> bool:
        """Whether no weight differs.

        The model then reads the same tokens from both, perhaps because it knows neither word.
        """
        return not any(d.any() for d in self.difference.values())

    def about(self) -> list[str]:
        """What was aligned, what was not, and which maps were compared, in a line each."""
        apart = [label for label, changed in zip(self.labels, self.changed, strict=True) if changed]
        one, two = self.first.passage.pixels, self.second.passage.pixels
        if one is not None and two is not None and not np.array_equal(one, two):
            apart.append("the image")

        aligned = f"{len(self.labels)} places aligned"
        if apart:
            aligned += f"; they differ in: {', '.join(apart)}"
        lines = [aligned]

        if self.left_out:
            lines.append(f"without a counterpart: {', '.join(self.left_out)}")

        unseen = [kind for kind in self.first.kinds if kind not in self.difference]
        if unseen:
            compared = ", ".join(self.difference)
            lines.append(f"compared by {compared} attention; not by {', '.join(unseen)}")

        if self.is_same:
            same = "no weight differs: the model reads the same tokens from both texts"
            if apart or self.left_out:
                same += " (their words may be unknown to its tokenizer)"
            lines.append(same)
        return lines

    def __repr__(self) -> str:
        return f"Probe({'; '.join(self.about())})"


def probed(first: AttentionMaps, second: AttentionMaps) -> Probe:
    """Align the places of two maps of one model and subtract."""
    kinds = _comparable(first, second)
    one, two = first.to_axis[kinds[0]].labels, second.to_axis[kinds[0]].labels
    places, left_out = aligned(one, two)
    if not places:
        raise InputError("the two texts have no word in common, so nothing can be aligned.")

    labels = []
    for a, b in places:
        same = one[a] == two[b]
        labels.append(one[a] if same else f"{one[a]} → {two[b]}")

    i, j = np.array(places).T
    difference = {}
    for kind in kinds:
        in_first = first.weights[kind][:, :, i][..., i]
        in_second = second.weights[kind][:, :, j][..., j]
        difference[kind] = in_second - in_first

    return Probe(
        first=first,
        second=second,
        labels=tuple(labels),
        changed=tuple(one[a] != two[b] for a, b in places),
        places=np.array(places),
        difference=difference,
        left_out=left_out,
    )


def _comparable(first: AttentionMaps, second: AttentionMaps) -> list[str]:
    """The kinds of map that both have over the same places.

    Places are aligned once, so only such maps are subtracted: of an encoder-decoder, the encoder's.
    """
    in_first = [kind for kind in first.kinds if _is_over_places(first, kind)]
    in_second = [kind for kind in second.kinds if _is_over_places(second, kind)]
    kinds = [kind for kind in in_first if kind in in_second]
    same = [first.weights[k].shape[:2] == second.weights[k].shape[:2] for k in kinds]
    if not kinds or not all(same):
        raise InputError(
            "two texts are compared by self-attention of the same layers and heads of one model; "
            "these maps have none in common."
        )
    return kinds


def _is_over_places(maps: AttentionMaps, kind: str) -> bool:
    """Whether both sides of a kind of map are the places of the first kind."""
    places = maps.to_axis[maps.kinds[0]].labels
    return maps.from_axis[kind].labels == places == maps.to_axis[kind].labels


def aligned(
    one: Sequence[str], two: Sequence[str]
) -> tuple[list[tuple[int, int]], tuple[str, ...]]:
    """Pairs of places, and the words that are left over.

    Paired are equal words, and words between them that stand for one another one to one.

    >>> aligned(["the", "nurse", ".", "She"], ["the", "nurse", ".", "He"])
    ([(0, 0), (1, 1), (2, 2), (3, 3)], ())
    >>> aligned(["a", "b"], ["a", "x", "b"])
    ([(0, 0), (1, 2)], ('x',))
    """
    pairs, left = [], []
    matcher = SequenceMatcher(a=list(one), b=list(two), autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        one_to_one = kind == "replace" and b - a == d - c
        if kind == "equal" or one_to_one:
            pairs += list(zip(range(a, b), range(c, d), strict=True))
        else:
            left += [*one[a:b], *two[c:d]]
    return pairs, tuple(left)
