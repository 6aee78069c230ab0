"""What each head does: where it looks, how it differs from others, what is lost without it."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from whence.core.errors import unknown_name
from whence.core.once import once
from whence.core.showing import visible

ALIKE = 9  # decimals of a share: what differs beyond them is equal
# of equal shares the earlier counts: one word that is a comma is called punctuation
PATTERNS = (
    "previous",
    "next",
    "self",
    "repeats",
    "first",
    "separators",
    "punctuation",
    "one",
)
DOMINANT = 0.5  # of a head's attention, from which on the head is called after it
BROAD = 0.9  # of the entropy of looking everywhere alike

# Said of each column of numbers about heads, by their tables and by the reference.
MEANING = {
    "entropy": "nats; 0 looks at one place, log of the number of places at all alike",
    "breadth": "entropy over that of looking at every visible place alike",
    "previous": "mean attention to the place before",
    "next": "mean attention to the place after",
    "self": "mean attention to itself",
    "repeats": "mean attention of a repeated word to its other places",
    "first": "share of attention to the first place",
    "separators": "share to special tokens other than the first place",
    "punctuation": "share to places of punctuation alone",
    "one": "the most that a single word gets, mean over all places that look",
    "reach": "largest weight on a word further away, mean over words: "
    "neither itself, nor beside it, nor punctuation, nor set apart",
    "value_change": "of the target's value when the head's output is set to zero",
    "output_change": "total variation between the labels' probabilities with and without the head "
    "(of labels that may all hold: the largest change of a probability)",
}


@dataclass(frozen=True, eq=False)
class HeadTable:
    """One number for each layer and head in every column.

    ``distances`` are between heads, and ``places`` lie on a 2-D map of them. ``names`` are those of
    the places that are looked at, and ``units`` says what these are.
    """

    kind: str
    layers: tuple[str, ...]
    heads: tuple[str, ...]
    columns: Mapping[str, Float[np.ndarray, "layer head"]]
    weights: Float[np.ndarray, "layer head from to"] = field(repr=False)
    names: tuple[str, ...] = ()
    units: str = "word"
    apart: Bool[np.ndarray, " to"] | None = field(default=None, repr=False)

    def __getitem__(self, column: str) -> Float[np.ndarray, "layer head"]:
        if column not in self.columns:
            raise unknown_name("column", column, self.columns)
        return self.columns[column]

    @once
    def pattern(self) -> np.ndarray:
        """What each head is mostly about: one of the patterns, "broad" or "mixed"."""
        nothing = np.zeros_like(self["entropy"])
        shares = np.stack([self.columns.get(pattern, nothing) for pattern in PATTERNS])
        otherwise = np.where(self["breadth"] >= BROAD, "broad", "mixed")
        strongest = np.array(PATTERNS)[shares.round(ALIKE).argmax(0)]
        return np.where(shares.max(0) >= DOMINANT, strongest, otherwise)

    @once
    def favourite(self) -> Int[np.ndarray, "layer head"]:
        """The place that gets most of each head's attention, of those that are not set apart."""
        return _favourites(self.weights, self.apart).argmax(-1)

    @once
    def distances(self) -> Float[np.ndarray, "one other"]:
        """The Jensen–Shannon divergence (nats) between every two heads, the mean over rows.

        Heads come layer by layer, in reading order.
        """
        return jensen_shannon(self.weights.reshape(-1, *self.weights.shape[2:]))

    @once
    def places(self) -> Float[np.ndarray, "layer head 2"]:
        """Heads on a plane, the nearer the more alike.

        By classical scaling of the root of the divergence, which is a metric.
        """
        return plane(np.sqrt(self.distances)).reshape(*self.weights.shape[:2], 2)

    def rows(self) -> list[dict[str, Any]]:
        """One row for each head, for a table or a data frame.

        >>> import pandas; pandas.DataFrame(maps.heads().rows())    # doctest: +SKIP
        """
        rows = []
        for i, layer in enumerate(self.layers):
            for j, head in enumerate(self.heads):
                row: dict[str, Any] = {"layer": layer, "head": head}
                row["pattern"] = str(self.pattern[i, j])
                for name, column in self.columns.items():
                    row[name] = float(column[i, j])
                rows.append(row)
        return rows

    def plot(self, column: str = "entropy", ax: Any = None) -> Any:
        """A heat-map of one column, layers by heads; "distances" draws the 2-D map of heads."""
        from whence.core.render import draw

        if column == "distances":
            return draw("plot_distances", self, ax=ax)
        return draw("plot_heads", self, column, ax=ax)

    def _repr_html_(self) -> str:
        from whence.core.render import render

        return render("heads_fragment", self)

    def __repr__(self) -> str:
        patterns, counts = np.unique(self.pattern, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        listing = ", ".join(f"{counts[i]} {patterns[i]}" for i in order)
        size = f"{len(self.layers)} × {len(self.heads)} heads"
        return visible(f"HeadTable({self.kind}: {size}; {listing})")


def measured(
    weights: Float[np.ndarray, "layer head from to"],
    labels: Sequence[str],
    special: Bool[np.ndarray, " to"],
    looks_at_itself: bool = True,
    apart: Bool[np.ndarray, " to"] | None = None,
) -> dict[str, Float[np.ndarray, "layer head"]]:
    """How broad each head looks, and its shares of attention to kinds of places.

    Places before and after have a meaning only in maps that look from a text at the same text.
    ``apart`` are places that take attention whatever the words are; by default the special tokens.
    """
    weights = np.asarray(weights, dtype=np.float64)
    special = np.asarray(special)
    apart = special if apart is None else apart
    total = weights.sum(-1, keepdims=True)
    # a sink's share is no place to look at
    entropy = entropies(weights / np.where(total > 0, total, 1.0)).mean(-1)
    # causal rows and local layers see fewer places
    visible = np.maximum((weights > 0).any(1).sum(-1), 1)
    most = np.log(visible).mean(-1)[:, None]
    breadth = np.where(most > 0, entropy / np.where(most > 0, most, 1.0), 0.0)

    columns = {"entropy": entropy, "breadth": breadth}
    if looks_at_itself:
        columns |= _offsets(weights)
        columns["repeats"] = _repeats(weights, labels)

    first = np.arange(weights.shape[3]) == 0
    marks = np.array([is_punctuation(label) for label in labels], dtype=bool)
    columns["first"] = _share(weights, first)
    columns["separators"] = _share(weights, special & ~first)
    columns["punctuation"] = _share(weights, marks & ~special)
    columns["one"] = _favourites(weights, apart).max(-1, initial=0.0)

    looks = _speakers(weights, special, looks_at_itself)
    columns["reach"] = reaches(weights, labels, apart, looks_at_itself)[..., looks].mean(-1)
    return columns


def _speakers(
    weights: Float[np.ndarray, "layer head from to"],
    special: Bool[np.ndarray, " to"],
    looks_at_itself: bool,
) -> Bool[np.ndarray, " from"]:
    """The places whose looking counts: words, where it is known which places are words."""
    if looks_at_itself and not special.all():
        return ~special
    return np.ones(weights.shape[2], dtype=bool)


def reaches(
    weights: Float[np.ndarray, "layer head from to"],
    labels: Sequence[str],
    apart: Bool[np.ndarray, " to"],
    looks_at_itself: bool = True,
) -> Float[np.ndarray, "layer head from"]:
    """The largest weight of each row on a word that has something to tell.

    Such a word is not the looking word itself, does not stand beside it, is not punctuation and not
    set apart. A text too short for such words counts neighbours too, then every other place.

    >>> near, far = np.eye(4)[[1, 2, 3, 2]], np.eye(4)[[3, 3, 0, 0]]
    >>> both = np.stack([near, far])[None]
    >>> reaches(both, ["a", "b", "c", "d"], np.zeros(4, dtype=bool)).tolist()
    [[[0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]]]
    """
    distance = _distances(weights.shape[2], weights.shape[3], looks_at_itself)
    far_words = _far_words(distance, labels, apart)
    other_words = (distance > 0) & ~apart
    everything = np.ones_like(far_words)
    for allowed in (far_words, other_words, everything):
        # layer by layer: the maps of a long text are large
        largest = [np.where(allowed, layer, 0.0).max(-1, initial=0.0) for layer in weights]
        if np.any(largest):
            break
    return np.array(largest)


def looks_far(
    weights: Float[np.ndarray, "layer head from to"],
    labels: Sequence[str],
    apart: Bool[np.ndarray, " to"],
    looks_at_itself: bool = True,
) -> bool:
    """Whether some weight is on a word further away, so that ``reaches`` are of such words.

    >>> far = np.eye(3)[[2, 0, 0]][None, None]
    >>> nothing = np.zeros(3, dtype=bool)
    >>> looks_far(far, list("abc"), nothing), looks_far(far[..., :2, :2], list("ab"), nothing[:2])
    (True, False)
    """
    distance = _distances(weights.shape[2], weights.shape[3], looks_at_itself)
    far_words = _far_words(distance, labels, apart)
    return any(bool(np.any(np.nan_to_num(layer)[:, far_words])) for layer in weights)


def _distances(rows: int, columns: int, looks_at_itself: bool) -> Int[np.ndarray, "from to"]:
    """How far places are apart; those of another text are far."""
    if not looks_at_itself:
        return np.full((rows, columns), columns)
    return np.abs(np.arange(rows)[:, None] - np.arange(columns)[None])


def _far_words(
    distance: Int[np.ndarray, "from to"], labels: Sequence[str], apart: Bool[np.ndarray, " to"]
) -> Bool[np.ndarray, "from to"]:
    marks = np.array([is_punctuation(label) for label in labels], dtype=bool)
    return (distance > 1) & ~(marks | apart)


def _repeats(
    weights: Float[np.ndarray, "layer head from to"], labels: Sequence[str]
) -> Float[np.ndarray, "layer head"]:
    """Mean attention of the words that stand more than once to their other places."""
    names = np.array([label.strip().lower() for label in labels])
    twins = (names[:, None] == names[None]) & ~np.eye(len(names), dtype=bool)
    repeated = twins.any(-1)
    if not repeated.any():
        return np.zeros(weights.shape[:2])
    to_twins = np.einsum("lhft,ft->lhf", weights, twins.astype(weights.dtype))
    return to_twins[..., repeated].mean(-1)


def _share(
    weights: Float[np.ndarray, "layer head from to"], here: Bool[np.ndarray, " to"]
) -> Float[np.ndarray, "layer head"]:
    """Of attention, to the marked places."""
    return weights[..., here].sum(-1).mean(-1)


def _favourites(
    weights: Float[np.ndarray, "layer head from to"], apart: Bool[np.ndarray, " to"] | None
) -> Float[np.ndarray, "layer head to"]:
    """What each place gets of a head's attention, in the mean; nothing where it is set apart."""
    gets = weights.mean(2)
    return gets if apart is None else np.where(apart, 0.0, gets)


def _offsets(
    weights: Float[np.ndarray, "layer head from to"],
) -> dict[str, Float[np.ndarray, "layer head"]]:
    """Mean attention to the place before, the place after, and itself."""
    columns = {}
    for name, offset in (("previous", -1), ("next", 1), ("self", 0)):
        diagonal = np.diagonal(weights, offset, axis1=2, axis2=3)
        columns[name] = np.zeros(weights.shape[:2])
        if diagonal.shape[-1]:
            columns[name] = diagonal.mean(-1)
    return columns


def is_punctuation(label: str) -> bool:
    """Whether a label is made of punctuation alone.

    >>> is_punctuation("…"), is_punctuation("Ġ("), is_punctuation("don't"), is_punctuation("")
    (True, True, False, False)
    """
    bare = label.lstrip("Ġ▁Ċ").strip()  # how byte-level and Unigram vocabularies write a space
    return bool(bare) and all(unicodedata.category(c).startswith("P") for c in bare)


def entropies(weights: Float[np.ndarray, "*any to"]) -> Float[np.ndarray, "*any"]:
    """In nats, of each row.

    >>> entropies(np.array([[0.5, 0.5], [1.0, 0.0]])).round(4).tolist()
    [0.6931, 0.0]
    """
    safe = np.where(weights > 0, weights, 1.0)
    return -(weights * np.log(safe)).sum(-1) + 0.0


def jensen_shannon(heads: Float[np.ndarray, "head from to"]) -> Float[np.ndarray, "head head"]:
    """H((p + q) / 2) − (H(p) + H(q)) / 2, the mean over rows.

    It is 0 for equal heads, and log 2 for heads that never look at the same place.

    >>> jensen_shannon(np.array([[[1.0, 0.0]], [[0.0, 1.0]]])).round(4).tolist()
    [[0.0, 0.6931], [0.6931, 0.0]]
    """
    heads = np.asarray(heads, dtype=np.float64)
    own = entropies(heads).mean(-1)
    out = np.zeros((len(heads), len(heads)))
    for i, head in enumerate(heads[:-1]):
        later = slice(i + 1, None)
        both = entropies((heads[later] + head) / 2).mean(-1)
        divergence = both - (own[later] + own[i]) / 2
        out[i, later] = out[later, i] = np.maximum(divergence, 0)
    return out


def plane(distances: Float[np.ndarray, "one other"]) -> Float[np.ndarray, "one 2"]:
    """Classical multidimensional scaling to two dimensions.

    Signs are fixed, so that the picture does not flip between machines.

    >>> flat = plane(np.array([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]]))
    >>> np.linalg.norm(flat[0] - flat[1]).round(6), np.linalg.norm(flat[1] - flat[2]).round(6)
    (np.float64(3.0), np.float64(5.0))
    """
    n = len(distances)
    centre = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(-0.5 * centre @ distances**2 @ centre)
    flat = np.zeros((n, 2))
    largest_first = range(n - 1, max(n - 3, -1), -1)
    for axis, k in enumerate(largest_first):
        coordinates = vectors[:, k] * np.sqrt(max(values[k], 0.0))
        farthest = coordinates[np.abs(coordinates).argmax()]
        flat[:, axis] = coordinates if farthest >= 0 else -coordinates
    return flat
