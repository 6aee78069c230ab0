"""Explanations that no model made, for the tests of metrics that compare them."""

from __future__ import annotations

import numpy as np

from whence.metrics.again import Explanation


def explanation(
    scores: np.ndarray | list[float],
    *,
    error: np.ndarray | list[float] | None = None,
    moved: float | None = None,
    changed: list[int] | None = None,
    signed: bool = True,
) -> Explanation:
    scores = np.asarray(scores, dtype=np.float64)
    return Explanation(
        scores=scores,
        signed=signed,
        value=1.0,
        label="good",
        changed=np.isin(np.arange(len(scores)), changed or []),
        standard_error=None if error is None else np.asarray(error, dtype=np.float64),
        moved=moved,
    )
