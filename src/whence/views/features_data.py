"""The features of an autoencoder inside their page: texts once, a byte for each activation.

A token is the number of its piece of text in one table, and an activation a whole number of steps
of its feature's largest one, so it is off by at most half a step (1/510 of that). All of it is
deflated; the page unpacks columns, and makes nothing of a feature before it is looked at.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8

from whence.core.dashboard import Dashboard, FeatureCard, Weighed
from whence.views import wording
from whence.views.features import unit_of_effects
from whence.views.markup import element
from whence.views.packing import blob

STEPS = 255
EFFECT_STEPS = 127
NOBODY = 2**32 - 1  # in place of a token or feature where there are fewer than a row has room for
# the types of columns by the names that the script knows
TYPES = {"u1": np.uint8, "u2": "<u2", "u4": "<u4", "f4": "<f4", "i1": np.int8}


class Pieces:
    """Pieces of text by number; a new one gets the next."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def number(self, piece: str) -> int:
        """The number of a piece, as it is shown."""
        shown = wording.visible(piece, keep="\n\t")
        return self.numbers.setdefault(shown, len(self.numbers))


def packed(board: Dashboard) -> str:
    """Inert elements: what is told of all features together, and a column for each kind of number.

    Every text in them is deflated and in letters that mean nothing to HTML.
    """
    pieces = Pieces()
    ids = [pieces.number(piece) for excerpt in board.excerpts for piece in excerpt.pieces]
    cards = board.features
    tops = [top for card in cards for top in card.tops]
    width = max((len(card.promotes) for card in cards), default=0)
    width = max(width, max((len(card.suppresses) for card in cards), default=0))
    neighbours = max((len(card.similar) for card in cards), default=0)
    promotes = _weighed([card.promotes for card in cards], width, pieces)
    suppresses = _weighed([card.suppresses for card in cards], width, pieces)
    columns: dict[str, tuple[str, Any]] = {
        "lengths": ("u2", [len(excerpt.pieces) for excerpt in board.excerpts]),
        "ids": ("u4" if len(pieces.numbers) > 2**16 else "u2", ids),
        "number": ("u4", [card.number for card in cards]),
        "frequency": ("f4", [card.frequency for card in cards]),
        "peak": ("f4", [card.peak for card in cards]),
        "mean": ("f4", [card.mean for card in cards]),
        "histogram": ("u4", [count for card in cards for count in card.histogram]),
        "counts": ("u2", [len(card.tops) for card in cards]),
        "excerpt": ("u4", [top.excerpt for top in tops]),
        "start": ("u2", [top.start for top in tops]),
        "length": ("u2", [len(top.values) for top in tops]),
        "place": ("u2", [top.place for top in tops]),
        "values": ("u1", _levels(cards)),
        "promotes": ("u4", promotes[0]),
        "promotes_by": ("f4", promotes[1]),
        "suppresses": ("u4", suppresses[0]),
        "suppresses_by": ("f4", suppresses[1]),
        "similar": ("u4", _neighbours(cards, neighbours)),
        "cosine": ("i1", _cosines(cards, neighbours)),
    }
    about = {
        "steps": STEPS,
        "effects": board.effects,
        "unit": unit_of_effects(board),
        "left_out": board.left_out,
        "edges": [_short(edge) for edge in board.edges],
        "width": width,
        "neighbours": neighbours,
        "nobody": NOBODY,
        "cosine_steps": EFFECT_STEPS,
        "pieces": list(pieces.numbers),
    }
    # ASCII, so that a lone surrogate cannot stop it
    written = json.dumps(about, allow_nan=False, separators=(",", ":")).encode()
    parts = [_blob("about", "json", written)]
    for name, (kind, values) in columns.items():
        parts.append(_blob(name, kind, np.asarray(values).astype(TYPES[kind]).tobytes()))
    return "".join(parts)


def _blob(name: str, kind: str, content: bytes) -> str:
    return element("script", blob(content), type="text/plain", data_blob=name, data_type=kind)


def levels_of(values: Float[np.ndarray, " token"], peak: float) -> UInt8[np.ndarray, " token"]:
    """Activations as whole steps of the largest one of their feature.

    An activation that is not zero is never shown as one.

    >>> levels_of(np.array([0.0, 0.001, 1.0, 2.0]), 2.0).tolist()
    [0, 1, 128, 255]
    """
    if peak <= 0:
        return np.zeros(len(values), dtype=np.uint8)
    steps = np.clip(np.round(np.asarray(values) / peak * STEPS), 0, STEPS)
    return np.where((steps == 0) & (np.asarray(values) > 0), 1, steps).astype(np.uint8)


def _levels(cards: Sequence[FeatureCard]) -> UInt8[np.ndarray, " value"]:
    rows = [levels_of(top.values, card.peak) for card in cards for top in card.tops]
    if not rows:
        return np.zeros(0, dtype=np.uint8)
    return np.concatenate(rows)


def _weighed(
    rows: Sequence[tuple[Weighed, ...]], width: int, pieces: Pieces
) -> tuple[list[int], list[float]]:
    numbers, effects = [], []
    for row in rows:
        missing = width - len(row)
        numbers += [pieces.number(one.name) for one in row] + [NOBODY] * missing
        effects += [one.effect for one in row] + [0.0] * missing
    return numbers, [_short(effect) for effect in effects]


def _neighbours(cards: Sequence[FeatureCard], width: int) -> list[int]:
    numbers = []
    for card in cards:
        numbers += [one.number for one in card.similar]
        numbers += [NOBODY] * (width - len(card.similar))
    return numbers


def _cosines(cards: Sequence[FeatureCard], width: int) -> list[int]:
    steps = []
    for card in cards:
        steps += [round(one.cosine * EFFECT_STEPS) for one in card.similar]
        steps += [0] * (width - len(card.similar))
    return steps


def _short(number: float) -> float:
    """Three digits, which deflate well and are all that is shown."""
    return float(f"{float(number):.3g}")
