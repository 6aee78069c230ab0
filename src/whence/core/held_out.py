"""Held-out removals: does a ranking, however it was found, tell by how much the target falls when units are removed that it never saw?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

CONTROLS = 500
ENOUGH = 3  # units, below which subsets tell no two rankings apart


def subsets(units: int, samples: int, rng: np.random.Generator) -> Bool[np.ndarray, "sample unit"]:
    """Random sets of two or more units (never one, never all), their sizes uniform: removals that no search over single units has seen."""
    if units < ENOUGH or samples < 1:
        return np.zeros((0, units), dtype=bool)
    sizes = rng.integers(2, units, size=samples)
    order = np.argsort(rng.random((samples, units)), axis=1)
    return np.argsort(order, axis=1) < sizes[:, None]


def correlation(
    weights: Float[np.ndarray, "*ranking unit"], removed: Bool[np.ndarray, "sample unit"], drops: Float[np.ndarray, " sample"]
) -> Float[np.ndarray, "*ranking"]:
    """Pearson's, between the removed share of the weights and the fall of the target, at equal numbers removed: both are centred by the
    number of removed units' regression, so that removing more does not look like being right."""
    sizes = removed.sum(1)
    design = np.stack([np.ones(len(sizes)), sizes], 1).astype(np.float64)
    hat = design @ np.linalg.pinv(design)
    x = np.asarray(weights, dtype=np.float64) @ removed.T
    x, y = x - x @ hat.T, drops - hat @ drops
    size = np.sqrt((x**2).sum(-1) * (y**2).sum())
    return np.where(size > 1e-12, (x @ y) / np.maximum(size, 1e-12), 0.0)


def held_out_evidence(
    weights: Float[np.ndarray, " unit"],
    baseline: Float[np.ndarray, " unit"] | None,
    removed: Bool[np.ndarray, "sample unit"],
    drops: Float[np.ndarray, " sample"],
    rng: np.random.Generator,
) -> Mapping[str, Any] | None:
    """The ranking's correlation with held-out removals, beside shuffled copies of itself; None where there is too little to tell."""
    if len(removed) < ENOUGH:
        return None
    ours = float(correlation(weights, removed, drops))
    shuffled = correlation(rng.permuted(np.tile(weights, (CONTROLS, 1)), axis=1), removed, drops)
    low, high = np.quantile(shuffled, [0.025, 0.975])
    verdict = "better than random" if ours > high else "worse than random" if ours < low else "not separable from random"
    return {
        "measure": "correlation with held-out removals",
        "verdict": verdict,
        "value": ours,
        "random_low": float(low),
        "random_high": float(high),
        "removals": len(removed),
        "baseline_value": None if baseline is None else float(correlation(baseline, removed, drops)),
    }
