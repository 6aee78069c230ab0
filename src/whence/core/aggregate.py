"""Bringing heads and layers of attention together, as matrices.

Entry by entry (mean, largest, sum, product of the entries), or layers as a product of matrices,
with or without the residual connection. The names follow the literature: a product multiplies
later layers from the left, and ``rollout`` is the product with the residual connection mixed in
(Abnar & Zuidema 2020).

This is the one home of that mathematics. What is annotated with ``Any`` takes numpy arrays and
torch tensors alike, without importing torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from whence.core.errors import SettingsError

Together = Literal["mean", "max", "sum", "product"]


def across_heads(
    weights: Float[np.ndarray, "layer head from to"], heads: Together | int | str
) -> Float[np.ndarray, "layer from to"]:
    """One map a layer: entry by entry over heads, or one head's own.

    >>> across_heads(np.array([[[[0.2, 0.8]], [[0.6, 0.4]]]]), "max").tolist()
    [[[0.6, 0.8]]]
    """
    if isinstance(heads, str):
        return _entrywise(weights, heads, 1, "heads")
    return weights[:, _index(heads, weights.shape[1], "head")]


def across_layers(
    maps: Float[np.ndarray, "layer from to"], layers: Together | int | str
) -> Float[np.ndarray, "from to"]:
    """One map: entry by entry over layers, one layer's own, or their product as matrices.

    >>> a1, a2 = [[0.8, 0.2], [0.3, 0.7]], [[0.6, 0.4], [0.1, 0.9]]
    >>> across_layers(np.array([a1, a2]), "product").round(3).tolist()
    [[0.6, 0.4], [0.35, 0.65]]
    """
    if layers == "product":
        _, rows, columns = maps.shape
        if rows != columns:
            raise SettingsError(
                f"a product needs square maps; these go from {rows} places to {columns}."
            )
        return product(list(maps))
    if isinstance(layers, str):
        return _entrywise(maps, layers, 0, "layers")
    return maps[_index(layers, len(maps), "layer")]


def entrywise(values: Any, how: Together, axis: int) -> Any:
    """The mean, largest, sum or product along an axis, of an array or a tensor.

    >>> entrywise(np.array([[1.0, 5.0], [3.0, 4.0]]), "max", 0).tolist()
    [3.0, 5.0]
    """
    if how == "mean":
        return values.mean(axis)
    if how == "sum":
        return values.sum(axis)
    if how == "product":
        return values.prod(axis)
    # a tensor's own max returns the places beside the values
    largest = values.amax if hasattr(values, "amax") else values.max
    return largest(axis)


def with_residual(maps: Float[np.ndarray, "*layer from to"]) -> Float[np.ndarray, "*layer from to"]:
    """Half of each place stays where it is: A + I, its rows brought back to one.

    >>> with_residual(np.array([[0.6, 0.4], [0.1, 0.9]])).tolist()
    [[0.8, 0.2], [0.05, 0.95]]
    """
    if maps.shape[-1] != maps.shape[-2]:
        raise SettingsError(
            "the residual stays in its place, so it needs square maps; cross attention has none."
        )
    mixed = maps + np.eye(maps.shape[-1], dtype=maps.dtype)
    return mixed / mixed.sum(-1, keepdims=True)


def product(layers: Sequence[Float[np.ndarray, "place place"]]) -> Float[np.ndarray, "place place"]:
    """A_N … A_1, first layer first in the list."""
    out = layers[0]
    for later in layers[1:]:
        out = later @ out
    return out


def product_row(layers: Sequence[Any], row: Any, residual: bool = False) -> Any:
    """One row of the product, without the product: O(L·T²) instead of O(L·T³).

    ``row`` holds the weights of the product's rows: a one and zeros for one of them, or 1/T
    everywhere for their mean. With ``residual`` the product is of A + I, with its rows brought to
    one, as ``with_residual`` makes it; neither A + I nor its normalised copy is ever held.

    >>> a1, a2 = np.array([[0.8, 0.2], [0.3, 0.7]]), np.array([[0.6, 0.4], [0.1, 0.9]])
    >>> second = np.array([0.0, 1.0])
    >>> bool(np.allclose(product_row([a1, a2], second), product([a1, a2])[1]))
    True
    """
    for layer in reversed(layers):
        if residual:
            share = row / (layer.sum(-1) + 1)
            row = share @ layer + share
        else:
            row = row @ layer
    return row


def _entrywise(
    values: Float[np.ndarray, "*any"], how: str, axis: int, what: str
) -> Float[np.ndarray, "*rest"]:
    if how not in ("mean", "max", "sum", "product"):
        raise SettingsError(
            f"{what} are brought together by mean, max, sum, product "
            f"or one is chosen by its number, not {how!r}."
        )
    return entrywise(values, how, axis)


def _index(wanted: int, count: int, what: str) -> int:
    if not -count <= wanted < count:
        raise SettingsError(f"{what} {wanted} is outside the {count} {what}s (0 to {count - 1}).")
    return wanted % count
