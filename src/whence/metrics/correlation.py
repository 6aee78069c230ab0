"""Correlations of many rows at once; where a side does not vary, there is none, and it is zero."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from whence.metrics.standing import ROUNDING


def pearson(
    left: Float[np.ndarray, "*rows sample"], right: Float[np.ndarray, "*#rows sample"]
) -> Float[np.ndarray, "*rows"]:
    """The correlation of each row of ``left`` with that of ``right``; rows are broadcast.

    >>> rows = np.array([[1.0, 2.0, 4.0], [3.0, 3.0, 3.0]])
    >>> pearson(rows, np.array([[2.0, 4.0, 8.0]])).round(9).tolist()
    [1.0, 0.0]
    """
    product = (_unit_vectors(left) * _unit_vectors(right)).sum(-1)
    return np.clip(product, -1.0, 1.0)


def spearman(
    left: Float[np.ndarray, "*rows sample"], right: Float[np.ndarray, "*#rows sample"]
) -> Float[np.ndarray, "*rows"]:
    """The correlation of the ranks; equal values share the mean of their ranks.

    >>> spearman(np.array([[1.0, 2.0, 40.0]]), np.array([[1.0, 3.0, 2.0]])).round(9).tolist()
    [0.5]
    """
    from scipy.stats import rankdata  # heavy

    return pearson(rankdata(left, axis=-1), rankdata(right, axis=-1))


def _unit_vectors(values: Float[np.ndarray, "*rows sample"]) -> Float[np.ndarray, "*rows sample"]:
    """Centred and of length one; zero where the values differ by rounding errors alone."""
    largest = np.abs(values).max(-1, keepdims=True)
    scaled = values / np.where(largest > 0, largest, 1.0)  # so that no square vanishes
    centred = scaled - scaled.mean(-1, keepdims=True)
    varies = np.abs(centred).max(-1, keepdims=True) > ROUNDING
    lengths = np.sqrt((centred**2).sum(-1, keepdims=True))
    return np.where(varies, centred / np.where(varies, lengths, 1.0), 0.0)
