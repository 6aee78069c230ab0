"""Means with intervals, and how often a classifier is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Mean:
    """A mean with Student's 95 % interval, which is NaN of fewer than two values."""

    mean: float
    low: float
    high: float
    sd: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} ({self.low:.3f} to {self.high:.3f})"

    def includes(self, value: float, widened: float = 1.0) -> bool:
        """Whether a value lies in the interval, or in one that is ``widened`` times as wide."""
        return bool(abs(value - self.mean) <= widened * (self.high - self.mean))


def mean_of(values: Sequence[float] | Float[np.ndarray, " value"]) -> Mean:
    """The mean of values, of which those that are NaN were not measured.

    >>> print(mean_of([1.0, 2.0, 3.0, float("nan")]))
    2.000 (-0.484 to 4.484)
    """
    from scipy.stats import t

    measured = np.asarray(values, dtype=float)
    measured = measured[np.isfinite(measured)]
    number = len(measured)
    mean = float(measured.mean()) if number else float("nan")
    if number < 2:
        return Mean(mean, float("nan"), float("nan"), float("nan"))
    sd = float(measured.std(ddof=1))
    half = float(t.ppf(0.975, number - 1)) * sd / np.sqrt(number)
    return Mean(mean, mean - half, mean + half, sd)


def accuracy(logit: Float[Tensor, " text"], labels: Float[Tensor, " text"]) -> float:
    """The share of texts whose more probable label is the one that they were given."""
    return float(((logit > 0) == (labels == 1)).float().mean())


def f1(logit: Float[Tensor, " text"], labels: Float[Tensor, " text"]) -> float:
    """F1 of the label 1: 2 · both / (said + labelled).

    >>> import torch
    >>> f1(torch.tensor([1.0, 1.0, -1.0]), torch.tensor([1.0, 0.0, 1.0]))
    0.5
    """
    said, labelled = logit > 0, labels == 1
    total = int(said.sum()) + int(labelled.sum())
    return 2 * int((said & labelled).sum()) / max(1, total)
