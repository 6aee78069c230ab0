"""Every way of reading one score per token off attention maps: layer × head × matrix operation (Mylonas et al. 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whence.trace.rows import speaking_kind
from whence.trace.trace import Trace

LayerChoice = Literal["mean", "product"] | int
HeadChoice = Literal["mean"] | int
Matrix = Literal["from", "to", "mean-columns", "max-columns"]
DIGITS = 5
ALIKE = 1e-4  # of the best, within which two configurations are as good: drops are differences in float32
RANKS_AT_ONCE = 2**24  # comparisons held while ranking


@dataclass(frozen=True)
class Configuration:
    """Layers, heads, and what is taken of the matrix: the read-out token's row or column, or each column's mean or largest."""

    layers: LayerChoice
    heads: HeadChoice
    matrix: Matrix

    def __str__(self) -> str:
        layers = (
            f"layer {self.layers}" if isinstance(self.layers, int) else f"{self.layers} of layers"
        )
        heads = f"head {self.heads}" if isinstance(self.heads, int) else f"{self.heads} of heads"
        return f"{layers}, {heads}, {self.matrix}"


BASELINE = Configuration("mean", "mean", "from")


def configurations(trace: Trace) -> list[Configuration]:
    """All that this model has: (layers + 2) × (heads + 1) × 4, fewer where a product or a column would mean nothing.

    Cross attention has no square maps to multiply and no column of the read-out token; a causal read-out token is seen by none but
    itself, so its column is left out too.
    """
    kind = speaking_kind(tuple(trace.attentions))
    maps = trace.attentions[kind]
    square = kind != "cross"
    layers: list[LayerChoice] = ["mean", *(["product"] if square else []), *range(len(maps))]
    heads: list[HeadChoice] = ["mean", *range(maps[0].shape[1])]
    matrices: list[Matrix] = [
        "from",
        *(["to"] if square and not trace.model.is_causal else []),
        "mean-columns",
        "max-columns",
    ]
    return [Configuration(a, h, m) for a in layers for h in heads for m in matrices]


def readings(
    trace: Trace, i: int, wanted: Sequence[Configuration]
) -> Float[np.ndarray, "configuration unit"]:
    """The scores of passage ``i``'s units under each configuration; the pieces of a word are summed."""
    passage = trace.passages[i]
    kind = speaking_kind(tuple(trace.attentions))
    at = trace.model.readout(passage)
    queries = len(passage) if kind != "cross" else (len(passage) if at is None else at + 1)
    maps = [m[i, :, :queries, : len(passage)] for m in trace.attentions[kind]]
    made: dict[LayerChoice, Tensor] = {}
    scores = []
    for c in wanted:
        if c.layers not in made:
            made = {
                c.layers: _of_layers(maps, c.layers)
            }  # configurations come layer by layer: one layer's is held
        matrix = made[c.layers][0 if c.heads == "mean" else 1 + c.heads]
        scores.append(passage.merge(_read(matrix, c.matrix, at).double().cpu().numpy(), "sum"))
    return np.stack(scores)


def _of_layers(
    maps: Sequence[Float[Tensor, "head query key"]], layers: LayerChoice
) -> Float[Tensor, "heads query key"]:
    """The mean over heads, then each head: of one layer, of the mean over layers, or of their product."""
    if isinstance(layers, int):
        return _with_mean(maps[layers])
    out = _with_mean(maps[0]).double()
    for later in maps[1:]:
        out = (
            out + _with_mean(later) if layers == "mean" else _with_mean(later).double() @ out
        )  # later layers on the left, no residual
    return out / len(maps) if layers == "mean" else out


def _with_mean(heads: Float[Tensor, "head query key"]) -> Float[Tensor, "heads query key"]:
    return torch.cat([heads.mean(0, keepdim=True), heads])


def _read(matrix: Float[Tensor, "query key"], how: Matrix, at: int | None) -> Float[Tensor, " key"]:
    if how == "max-columns":
        return matrix.amax(0)
    if how == "mean-columns" or at is None:  # a model that pools by the mean has no one row
        return matrix.mean(1 if how == "to" else 0)
    return matrix[at] if how == "from" else matrix[:, at]


def best_of(faithful: Float[np.ndarray, " configuration"]) -> int:
    """The first configuration that is as faithful as any, up to rounding.

    >>> best_of(np.array([0.3, 0.45, 0.45 + 1e-9]))
    1
    """
    return int(np.argmax(faithful >= faithful.max() - ALIKE * np.abs(faithful).max()))


def ranked_faithful_truthfulness(
    weights: Float[np.ndarray, "configuration unit"], drops: Float[np.ndarray, " unit"]
) -> Float[np.ndarray, " configuration"]:
    """RFT: the drop of the target when a unit is removed, over the unit's rank, summed. Rank 1 is the largest weight; ties share the
    largest of their ranks, so that saying nothing earns nothing.

    >>> ranked_faithful_truthfulness(np.array([[3.0, 1.0], [1.0, 3.0]]), np.array([0.4, 0.1])).round(3).tolist()
    [0.45, 0.3]
    """
    size = np.abs(weights)
    # weights that differ by rounding alone are tied, or a batch-mate could swap two ranks
    size = np.round(size / np.maximum(size.max(-1, keepdims=True), 1e-30), DIGITS)
    at_once = max(1, RANKS_AT_ONCE // max(1, size.shape[1] ** 2))
    parts = []
    for first in range(0, len(size), at_once):
        some = size[first : first + at_once]
        ranks = (some[:, None, :] >= some[:, :, None]).sum(-1)
        parts.append((drops / ranks).sum(-1))
    return np.concatenate(parts)
