"""Every way of reading one score per token off attention maps: layer × head × matrix operation.

After Mylonas et al. (2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.errors import Unsupported
from whence.trace.rows import speaking_kind, text_length
from whence.trace.trace import Trace

LayerChoice = Literal["mean", "product"] | int
HeadChoice = Literal["mean"] | int
Matrix = Literal["from", "to", "mean-columns", "max-columns"]
DIGITS = 5  # of a weight, relative to the largest, beyond which two weights are tied
# of the best, within which two configurations are as good: drops are differences in float32
ALIKE = 1e-4
RANKS_AT_ONCE = 2**24  # comparisons held while ranking


@dataclass(frozen=True)
class Configuration:
    """Layers, heads, and what is taken of the matrix.

    Of the matrix it takes the read-out token's row ("from") or column ("to"), or of each column the
    mean or the largest entry.
    """

    layers: LayerChoice
    heads: HeadChoice
    matrix: Matrix

    def __str__(self) -> str:
        layers, heads = f"{self.layers} of layers", f"{self.heads} of heads"
        if isinstance(self.layers, int):
            layers = f"layer {self.layers}"
        if isinstance(self.heads, int):
            heads = f"head {self.heads}"
        return f"{layers}, {heads}, {self.matrix}"


BASELINE = Configuration("mean", "mean", "from")


def configurations(trace: Trace) -> list[Configuration]:
    """All that this model has: (layers + 2) × (heads + 1) × 4.

    They are fewer where a product or a column would mean nothing. Cross attention has no square
    maps to multiply and no column of the read-out token; a causal read-out token is seen by none
    but itself, so its column is left out too.
    """
    kind = speaking_kind(tuple(trace.attentions))
    maps = trace.attentions[kind]
    is_square = kind != "cross"

    layers: list[LayerChoice] = ["mean"]
    if is_square:
        layers.append("product")
    layers += range(len(maps))

    heads: list[HeadChoice] = ["mean", *range(maps[0].shape[1])]

    matrices: list[Matrix] = ["from", "mean-columns", "max-columns"]
    if is_square and not trace.model.is_causal:
        matrices.insert(1, "to")

    choices = product(layers, heads, matrices)
    return [Configuration(layer, head, matrix) for layer, head, matrix in choices]


def readings(
    trace: Trace, i: int, wanted: Sequence[Configuration]
) -> Float[np.ndarray, "configuration unit"]:
    """The scores of passage ``i``'s units under each configuration; pieces of a word are summed."""
    passage = trace.passages[i]
    if text_length(trace, i) < len(passage):
        raise Unsupported(
            "the readings of an encoder-decoder are of its cross attention, which does not reach "
            "what it wrote before; use attention-mean or rollout."
        )
    kind = speaking_kind(tuple(trace.attentions))
    at = trace.model.readout(passage)
    length = queries = len(passage)
    if kind == "cross" and at is not None:
        queries = at + 1
    maps = [m[i, :, :queries, :length] for m in trace.attentions[kind]]

    # configurations come layer by layer, so that only the matrices of one choice are held
    held: LayerChoice | None = None
    matrices = maps[0]
    scores = []
    for wish in wanted:
        if wish.layers != held:
            held = wish.layers
            matrices = _of_layers(maps, held)
        matrix = matrices[0 if wish.heads == "mean" else 1 + wish.heads]
        by_token = _read(matrix, wish.matrix, at).double().cpu().numpy()
        scores.append(passage.merge(by_token, "sum"))
    return np.stack(scores)


def _of_layers(
    maps: Sequence[Float[Tensor, "head query key"]], layers: LayerChoice
) -> Float[Tensor, "heads query key"]:
    """The mean over heads, then each head.

    Of one layer, of the mean over layers, or of their product, later layers on the left and without
    the residual.
    """
    if isinstance(layers, int):
        return _with_mean(maps[layers])
    out = _with_mean(maps[0]).double()
    if layers == "mean":
        for later in maps[1:]:
            out = out + _with_mean(later)
        return out / len(maps)
    for later in maps[1:]:
        out = _with_mean(later).double() @ out
    return out


def _with_mean(heads: Float[Tensor, "head query key"]) -> Float[Tensor, "heads query key"]:
    return torch.cat([heads.mean(0, keepdim=True), heads])


def _read(matrix: Float[Tensor, "query key"], how: Matrix, at: int | None) -> Float[Tensor, " key"]:
    if how == "max-columns":
        return matrix.amax(0)
    if how == "mean-columns":
        return matrix.mean(0)
    # a model that pools by the mean has no one row or column
    if how == "to":
        return matrix.mean(1) if at is None else matrix[:, at]
    return matrix.mean(0) if at is None else matrix[at]


def best_of(faithful: Float[np.ndarray, " configuration"]) -> int:
    """The first configuration that is as faithful as any, up to rounding.

    >>> best_of(np.array([0.3, 0.45, 0.45 + 1e-9]))
    1
    """
    margin = ALIKE * np.abs(faithful).max()
    return int(np.argmax(faithful >= faithful.max() - margin))


def ranked_faithful_truthfulness(
    weights: Float[np.ndarray, "configuration unit"], drops: Float[np.ndarray, " unit"]
) -> Float[np.ndarray, " configuration"]:
    """RFT: the drop of the target when a unit is removed, over the unit's rank, summed.

    Rank 1 is the largest weight. Ties share the largest of their ranks, so that saying nothing
    earns nothing.

    >>> weights = np.array([[3.0, 1.0], [1.0, 3.0]])
    >>> ranked_faithful_truthfulness(weights, np.array([0.4, 0.1])).round(3).tolist()
    [0.45, 0.3]
    """
    sizes = np.abs(weights)
    largest = np.maximum(sizes.max(-1, keepdims=True), 1e-30)
    # weights that differ by rounding alone are tied, or a batch-mate could swap two ranks
    sizes = np.round(sizes / largest, DIGITS)

    units = sizes.shape[1]
    at_once = max(1, RANKS_AT_ONCE // max(1, units**2))
    parts = []
    for first in range(0, len(sizes), at_once):
        part = sizes[first : first + at_once]
        ranks = (part[:, None, :] >= part[:, :, None]).sum(-1)
        parts.append((drops / ranks).sum(-1))
    return np.concatenate(parts)
