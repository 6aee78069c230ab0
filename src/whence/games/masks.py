"""Masks of a game: True keeps a player, False takes it away."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Bool

from whence.core.errors import InputError


def checked_masks(masks: Any, size: int, player: str) -> Bool[np.ndarray, "mask player"]:
    """Masks as booleans; anything else than a table of 0 and 1 is refused.

    >>> checked_masks([[1, 0]], 2, "unit")
    array([[ True, False]])
    """
    masks = np.asarray(masks)
    if masks.ndim != 2 or masks.shape[1] != size:
        raise InputError(
            f"masks have the shape (masks, {size}), one column per {player}, not {masks.shape}."
        )
    if masks.dtype == bool:
        return masks
    if not np.isin(masks, (0, 1)).all():
        raise InputError(
            f"a mask says True (or 1) for a {player} that is kept "
            "and False (or 0) for one that is removed."
        )
    return masks.astype(bool)


def keys_of(masks: Bool[np.ndarray, "mask player"]) -> list[bytes]:
    """The bits of each mask, by which it is remembered.

    >>> keys_of(np.array([[True, False]]))
    [b'\\x80']
    """
    packed = np.packbits(masks, axis=1)
    content, width = packed.tobytes(), packed.shape[1]
    return [content[start : start + width] for start in range(0, len(content), width)]
