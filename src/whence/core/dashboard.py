"""A Dashboard: every live feature of a sparse autoencoder, with what it fires on and what it does.

Texts are stored once: a feature's passages point into excerpts that features share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float, Int

from whence.core.errors import InputError
from whence.core.render import draw, render
from whence.core.showing import visible
from whence.core.stored import Stored, as_stored
from whence.core.writing import write_json, write_text

# how it was found out what a feature does: from the weights, by clamping it, or not at all
EffectKind = Literal["lens", "clamped", "none"]
DENSE = 0.1  # of all tokens; a feature that fires more often says little about any of them


@dataclass(frozen=True)
class Excerpt:
    """Some consecutive tokens of a passage of the corpus, as they are written there.

    ``start`` is the first of them, counted from the beginning of the passage.
    """

    passage: int
    start: int
    pieces: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Top:
    """One of the passages on which a feature is strongest: its activation at each token shown.

    ``start`` is where the tokens begin in the excerpt, and ``place`` the strongest of them.
    """

    excerpt: int
    start: int
    place: int
    values: Float[np.ndarray, " token"]

    @property
    def largest(self) -> float:
        """The activation at the strongest token."""
        return float(self.values[self.place])


@dataclass(frozen=True)
class Weighed:
    """A token, or a class, and by how much a feature raises its score."""

    name: str
    effect: float


@dataclass(frozen=True)
class Neighbour:
    """Another feature, and the cosine of the angle between both directions."""

    number: int
    cosine: float


@dataclass(frozen=True, eq=False)
class FeatureCard:
    """What was seen of one feature. Activations are a_j · ‖decoder_j‖, as the loss counts them."""

    number: int
    frequency: float  # of all tokens of the corpus, the share on which it is active
    peak: float  # the largest activation
    mean: float  # over the tokens on which it is active
    histogram: Int[np.ndarray, " bin"]  # tokens by activation, between the dashboard's edges
    tops: tuple[Top, ...]  # strongest first
    promotes: tuple[Weighed, ...] = ()  # strongest first
    suppresses: tuple[Weighed, ...] = ()
    similar: tuple[Neighbour, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Dashboard:
    """The live features of an autoencoder over a corpus. Made by ``whence.features.dashboard``.

    ``size`` counts all features, and ``live`` those that were active at least once; ``features``
    may be fewer, where it was asked for the most frequent ones only. ``dense`` counts among all of
    them. ``effects`` says how ``promotes`` and ``suppresses`` were found.

    >>> board.to_html("features.html")                # doctest: +SKIP
    >>> board.find("captain")[0].number               # doctest: +SKIP
    """

    model: str
    fingerprint: str
    layer: int
    variant: str
    size: int
    dim: int
    data: str
    tokens: int
    passages: int
    edges: Float[np.ndarray, " edge"]  # of the histograms' bins
    features: tuple[FeatureCard, ...]
    excerpts: tuple[Excerpt, ...]
    effects: EffectKind = "none"
    dead: int = 0  # never active on this corpus
    dense: int = 0  # active on more than a tenth of all tokens
    l0: float = 0.0  # features that are active on a token, on average
    variance_explained: float | None = None
    quality: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        numbers = [card.number for card in self.features]
        if len(set(numbers)) != len(numbers):
            raise InputError("a dashboard has each feature once.")
        if len(numbers) > self.live:
            raise InputError(
                f"a dashboard shows live features, of which there are {self.live}, not "
                f"{len(numbers)}."
            )
        for card in self.features:
            _check(card, self.excerpts, len(self.edges) - 1)

    def __getitem__(self, number: int) -> FeatureCard:
        for card in self.features:
            if card.number == number:
                return card
        if 0 <= number < self.size and self.left_out:
            raise InputError(
                f"feature {number} is not on this dashboard, which shows {len(self.features):,} of "
                f"{self.live:,} live features: it was left out, or never active."
            )
        if 0 <= number < self.size:
            raise InputError(f"feature {number} is not on this dashboard: it was never active.")
        raise InputError(
            f"feature {number} is outside the {self.size} features (0 to {self.size - 1})."
        )

    @property
    def live(self) -> int:
        """How many features were active at least once, on the dashboard or not."""
        return self.size - self.dead

    @property
    def left_out(self) -> int:
        """How many live features are not on the dashboard."""
        return self.live - len(self.features)

    def pieces(self, top: Top) -> tuple[str, ...]:
        """The tokens of one of the passages of a feature."""
        return self.excerpts[top.excerpt].pieces[top.start : top.start + len(top.values)]

    def text(self, top: Top) -> str:
        """The same as running text."""
        return "".join(self.pieces(top))

    def fires_on(self, card: FeatureCard, most: int = 3) -> tuple[str, ...]:
        """The tokens on which a feature is strongest, most frequent first."""
        counts: dict[str, int] = {}
        for top in card.tops:
            name = self.pieces(top)[top.place].strip() or self.pieces(top)[top.place]
            counts[name] = counts.get(name, 0) + 1
        # of equals the one that stands in the stronger passage comes first
        return tuple(sorted(counts, key=lambda name: -counts[name])[:most])

    def find(self, word: str) -> list[FeatureCard]:
        """Features in whose passages a word stands, those that fire on it first."""
        wanted = word.casefold()
        ranked = []
        for card in self.features:
            fires = sum(wanted in name.casefold() for name in self.fires_on(card, len(card.tops)))
            holds = sum(wanted in self.text(top).casefold() for top in card.tops)
            if fires or holds:
                ranked.append((-fires, -holds, card.number, card))
        return [card for *_, card in sorted(ranked, key=lambda entry: entry[:3])]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; ``from_dict`` gives back an equal dashboard."""
        return {
            "schema": 1,
            "kind": "dashboard",
            "model": self.model,
            "fingerprint": self.fingerprint,
            "layer": self.layer,
            "variant": self.variant,
            "size": self.size,
            "dim": self.dim,
            "data": self.data,
            "tokens": self.tokens,
            "passages": self.passages,
            "dead": self.dead,
            "dense": self.dense,
            "l0": self.l0,
            "variance_explained": self.variance_explained,
            "effects": self.effects,
            "quality": dict(self.quality),
            "notes": list(self.notes),
            "edges": np.asarray(self.edges).tolist(),
            "features": [_card_to_dict(card) for card in self.features],
            "excerpts": [asdict(excerpt) for excerpt in self.excerpts],
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any] | Stored) -> Dashboard:
        """What ``to_dict`` gave."""
        stored = as_stored(stored, "dashboard")
        explained = stored["variance_explained"].given()
        read = {
            "model": stored["model"].text(),
            "fingerprint": stored["fingerprint"].text(),
            "layer": stored["layer"].whole(),
            "variant": stored["variant"].text(),
            "size": stored["size"].whole(),
            "dim": stored["dim"].whole(),
            "data": stored["data"].text(),
            "tokens": stored["tokens"].whole(),
            "passages": stored["passages"].whole(),
            "dead": stored["dead"].whole(),
            "dense": stored["dense"].whole(),
            "l0": stored["l0"].number(),
            "variance_explained": None if explained is None else explained.number(),
            "effects": stored["effects"].choice(get_args(EffectKind)),
            "quality": stored["quality"].plain_record(),
            "notes": stored["notes"].texts(),
            "edges": stored["edges"].numbers(),
            "features": tuple(_card_from_dict(card) for card in stored["features"].items()),
            "excerpts": tuple(_excerpt_from_dict(one) for one in stored["excerpts"].items()),
        }
        return stored.made(lambda: cls(**read))

    def save(self, path: str | Path) -> Path:
        """Write JSON; ``whence.read`` reads it back."""
        return write_json(path, self.to_dict())

    def to_text(self, most: int = 12, feature: int | None = None) -> str:
        """What ``print`` shows: the first features, or one of them in full."""
        return draw("dashboard_text", self, most=most, feature=feature)

    def to_html(self, path: str | Path | None = None) -> str:
        """A self-contained page; also written to ``path`` when one is given."""
        page = render("dashboard_page", self)
        if path is not None:
            write_text(path, page)
        return page

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return visible(
            f"Dashboard({self.model!r}, layer {self.layer}, {self.live} live of "
            f"{self.size} features, {self.tokens:,} tokens)"
        )


def _check(card: FeatureCard, excerpts: Sequence[Excerpt], bins: int) -> None:
    """Raise where a feature points to what is not there."""
    if len(card.histogram) != bins:
        raise InputError(
            f"feature {card.number} has {len(card.histogram)} bins, and the edges make {bins}."
        )
    for top in card.tops:
        if not 0 <= top.excerpt < len(excerpts):
            raise InputError(
                f"feature {card.number} names excerpt {top.excerpt} of {len(excerpts)}."
            )
        pieces = len(excerpts[top.excerpt].pieces)
        is_inside = top.start >= 0 and top.start + len(top.values) <= pieces
        if not is_inside or not 0 <= top.place < len(top.values):
            raise InputError(
                f"feature {card.number}: tokens {top.start} to {top.start + len(top.values)} "
                f"are not in an excerpt of {pieces}."
            )


def _card_to_dict(card: FeatureCard) -> dict[str, Any]:
    tops = []
    for top in card.tops:
        values = [float(value) for value in top.values]
        tops.append(
            {"excerpt": top.excerpt, "start": top.start, "place": top.place, "values": values}
        )
    return {
        "number": card.number,
        "frequency": card.frequency,
        "peak": card.peak,
        "mean": card.mean,
        "histogram": np.asarray(card.histogram).tolist(),
        "promotes": [[one.name, one.effect] for one in card.promotes],
        "suppresses": [[one.name, one.effect] for one in card.suppresses],
        "similar": [[one.number, one.cosine] for one in card.similar],
        "tops": tops,
    }


def _card_from_dict(stored: Stored) -> FeatureCard:
    tops = []
    for top in stored["tops"].items():
        tops.append(
            Top(
                top["excerpt"].whole(),
                top["start"].whole(),
                top["place"].whole(),
                top["values"].numbers(),
            )
        )
    similar = []
    for one in stored["similar"].items():
        number, cosine = _pair(one)
        similar.append(Neighbour(number.whole(), cosine.number()))
    return FeatureCard(
        number=stored["number"].whole(),
        frequency=stored["frequency"].number(0.0, 1.0),
        peak=stored["peak"].number(),
        mean=stored["mean"].number(),
        histogram=np.array(stored["histogram"].wholes(least=0), dtype=np.int64),
        tops=tuple(tops),
        promotes=_weighed(stored["promotes"]),
        suppresses=_weighed(stored["suppresses"]),
        similar=tuple(similar),
    )


def _weighed(stored: Stored) -> tuple[Weighed, ...]:
    read = []
    for one in stored.items():
        name, effect = _pair(one)
        read.append(Weighed(name.text(), effect.number()))
    return tuple(read)


def _pair(stored: Stored) -> tuple[Stored, Stored]:
    items = stored.items()
    if len(items) != 2:
        raise stored.expected("a pair")
    return items[0], items[1]


def _excerpt_from_dict(stored: Stored) -> Excerpt:
    return Excerpt(stored["passage"].whole(), stored["start"].whole(), stored["pieces"].texts())
