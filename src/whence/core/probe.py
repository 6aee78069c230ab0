"""Two texts that differ in a word or two, aligned, and the attention that differs with them: a probe for bias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

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
    """Two maps over the places that both texts have. ``difference[kind]`` is "layer head from to", second less first.

    ``changed`` marks the places where the texts say different things.
    """

    first: AttentionMaps
    second: AttentionMaps
    labels: tuple[str, ...]
    changed: tuple[bool, ...]
    places: Int[
        np.ndarray, "place 2"
    ]  # of each aligned place: its index in the first and in the second text
    difference: Mapping[str, Float[np.ndarray, "layer head from to"]]
    left_out: tuple[str, ...]  # words that have no counterpart

    def strongest(self, count: int = 10, source: str | None = None) -> list[Change]:
        """The weights that differ most, among all heads; ``source`` looks only at what that place looks at."""
        found = []
        for kind, change in self.difference.items():
            size = np.abs(change)
            if source is not None:
                rows = [
                    i
                    for i, label in enumerate(self.labels)
                    if source in (label, *label.split(" → "))
                ]
                if not rows:
                    raise InputError(
                        f"no aligned place is called {source!r}; there are: {', '.join(self.labels)}."
                    )
                size = np.where(np.isin(np.arange(len(self.labels)), rows)[:, None], size, -1)
            order = np.argsort(-size, axis=None, kind="stable")[:count]
            found += [
                self._change(kind, *map(int, at))
                for at in zip(*np.unravel_index(order, size.shape), strict=True)
            ]
        return sorted(found, key=lambda c: -abs(c.change))[:count]

    def mean(self, kind: str | None = None) -> Float[np.ndarray, "from to"]:
        """The difference, averaged over layers and heads."""
        return self.difference[kind or next(iter(self.difference))].mean((0, 1))

    def _change(self, kind: str, layer: int, head: int, row: int, column: int) -> Change:
        one, two = self.places[row], self.places[column]
        return Change(
            kind,
            self.first.layer_names(kind)[layer],
            self.first.head_names(kind)[head],
            self.labels[row],
            self.labels[column],
            float(self.first.weights[kind][layer, head, one[0], two[0]]),
            float(self.second.weights[kind][layer, head, one[1], two[1]]),
        )

    def to_dict(self, count: int = 50) -> dict[str, Any]:
        """Plain values for JSON: the aligned places, the mean difference, and the weights that differ most."""
        strongest = [{**vars(c), "change": c.change} for c in self.strongest(count)]
        return {
            "texts": [self.first.passage.text, self.second.passage.text],
            "places": list(self.labels),
            "changed": list(self.changed),
            "left_out": list(self.left_out),
            "mean_difference": {k: self.mean(k).tolist() for k in self.difference},
            "strongest": strongest,
        }

    def to_html(self, path: str | Path | None = None) -> str:
        """A page with the aligned texts, the mean difference as a heat-map, and the strongest weights; also written to ``path``."""
        page = render("probe_page", self)
        if path is not None:
            write_text(path, page)
        return page

    def _repr_html_(self) -> str:
        return render("probe_fragment", self)

    @property
    def is_same(self) -> bool:
        """Whether no weight differs: the model reads the same tokens from both, perhaps because it knows neither word."""
        return not any(d.any() for d in self.difference.values())

    def about(self) -> list[str]:
        """What was aligned, what was not, and which maps were compared, in a line each."""
        apart = [label for label, changed in zip(self.labels, self.changed, strict=True) if changed]
        one, two = self.first.passage.pixels, self.second.passage.pixels
        if one is not None and two is not None and not np.array_equal(one, two):
            apart.append("the image")
        lines = [
            f"{len(self.labels)} places aligned"
            + (f"; they differ in: {', '.join(apart)}" if apart else "")
        ]
        if self.left_out:
            lines.append(f"without a counterpart: {', '.join(self.left_out)}")
        if unseen := [k for k in self.first.kinds if k not in self.difference]:
            lines.append(
                f"compared by {', '.join(self.difference)} attention; not by {', '.join(unseen)}"
            )
        if self.is_same:
            unknown = (
                " (their words may be unknown to its tokenizer)" if apart or self.left_out else ""
            )
            lines.append(
                f"no weight differs: the model reads the same tokens from both texts{unknown}"
            )
        return lines

    def __repr__(self) -> str:
        return f"Probe({'; '.join(self.about())})"


def probed(first: AttentionMaps, second: AttentionMaps) -> Probe:
    """Align the places of two maps of one model and subtract."""
    # places are aligned once, so only maps over the same places are subtracted: of an encoder-decoder, the encoder's
    kinds = [
        k for k in first.kinds if k in second.kinds and all(_over(m, k) for m in (first, second))
    ]
    if not kinds or any(first.weights[k].shape[:2] != second.weights[k].shape[:2] for k in kinds):
        raise InputError(
            "two texts are compared by self-attention of the same layers and heads of one model; these maps have none in common."
        )
    one, two = first.to_axis[kinds[0]].labels, second.to_axis[kinds[0]].labels
    places, left_out = aligned(one, two)
    if not places:
        raise InputError("the two texts have no word in common, so nothing can be aligned.")
    i, j = np.array(places).T
    return Probe(
        first,
        second,
        labels=tuple(one[a] if one[a] == two[b] else f"{one[a]} → {two[b]}" for a, b in places),
        changed=tuple(one[a] != two[b] for a, b in places),
        places=np.array(places),
        difference={
            k: second.weights[k][:, :, j][..., j] - first.weights[k][:, :, i][..., i] for k in kinds
        },
        left_out=left_out,
    )


def _over(maps: AttentionMaps, kind: str) -> bool:
    """Whether both sides of a kind of map are the places of the first kind."""
    places = maps.to_axis[maps.kinds[0]].labels
    return maps.from_axis[kind].labels == places == maps.to_axis[kind].labels


def aligned(
    one: Sequence[str], two: Sequence[str]
) -> tuple[list[tuple[int, int]], tuple[str, ...]]:
    """Pairs of places: equal words, and words between them that stand for one another one to one; and the words left over.

    >>> aligned(["the", "nurse", ".", "She"], ["the", "nurse", ".", "He"])
    ([(0, 0), (1, 1), (2, 2), (3, 3)], ())
    >>> aligned(["a", "b"], ["a", "x", "b"])
    ([(0, 0), (1, 2)], ('x',))
    """
    pairs, left = [], []
    for kind, a, b, c, d in SequenceMatcher(a=list(one), b=list(two), autojunk=False).get_opcodes():
        if kind == "equal" or (kind == "replace" and b - a == d - c):
            pairs += list(zip(range(a, b), range(c, d), strict=True))
        else:
            left += [*one[a:b], *two[c:d]]
    return pairs, tuple(left)
