"""Bringing heads and layers of attention together, as matrices: mean, largest, sum, product; with or without the residual; rollout.

The names follow the literature: a product multiplies later layers from the left, and ``rollout`` is the product with the residual
connection mixed in (Abnar & Zuidema 2020).
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
    """One map: entry by entry over layers, one layer's own, or the matrix product with later layers on the left.

    >>> a1, a2 = [[0.8, 0.2], [0.3, 0.7]], [[0.6, 0.4], [0.1, 0.9]]
    >>> across_layers(np.array([a1, a2]), "product").round(3).tolist()
    [[0.6, 0.4], [0.35, 0.65]]
    """
    if layers == "product":
        if maps.shape[1] != maps.shape[2]:
            raise SettingsError(
                f"a product needs square maps; these go from {maps.shape[1]} places to {maps.shape[2]}."
            )
        return product(list(maps))
    if isinstance(layers, str):
        return _entrywise(maps, layers, 0, "layers")
    return maps[_index(layers, len(maps), "layer")]


def with_residual(maps: Float[np.ndarray, "*layer from to"]) -> Float[np.ndarray, "*layer from to"]:
    """Half of each place stays where it is: (A + I), its rows brought back to one.

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


def product_row(layers: Sequence[Any], row: Any) -> Any:
    """One row of the product, without the product: O(L·T²) instead of O(L·T³).

    >>> a1, a2 = np.array([[0.8, 0.2], [0.3, 0.7]]), np.array([[0.6, 0.4], [0.1, 0.9]])
    >>> bool(np.allclose(product_row([a1, a2], np.array([0.0, 1.0])), product([a1, a2])[1]))
    True
    """
    for layer in reversed(layers):
        row = row @ layer
    return row


def _entrywise(
    values: Float[np.ndarray, "*any"], how: str, axis: int, what: str
) -> Float[np.ndarray, "*rest"]:
    known = {"mean": np.mean, "max": np.max, "sum": np.sum, "product": np.prod}
    if how not in known:
        raise SettingsError(
            f"{what} are brought together by {', '.join(known)} or one is chosen by its number, not {how!r}."
        )
    return known[how](values, axis=axis)


def _index(wanted: int, count: int, what: str) -> int:
    if not -count <= wanted < count:
        raise SettingsError(f"{what} {wanted} is outside the {count} {what}s (0 to {count - 1}).")
    return wanted % count
