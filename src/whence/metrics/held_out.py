"""Held-out removals: does a ranking tell by how much the target falls without units together?

The removals are ones that the search for the ranking never saw.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from whence.core.evidence import HELD_OUT, Evidence, Trial, Verdict

CONTROLS = 500
# units: of fewer there are so few orders that the best is not rare enough for a verdict at 95 %
ENOUGH = 5
# removals, below which a line through two columns leaves nothing to correlate
FEWEST = 3
ROUNDING = 1e-9


def subsets(units: int, samples: int, rng: np.random.Generator) -> Bool[np.ndarray, "sample unit"]:
    """Random sets of two or more units, never of one and never of all, their sizes uniform.

    No search over single units has seen such removals.
    """
    if units < ENOUGH or samples < 1:
        return np.zeros((0, units), dtype=bool)
    sizes = rng.integers(2, units, size=samples)
    order = np.argsort(rng.random((samples, units)), axis=1)
    place = np.argsort(order, axis=1)
    return place < sizes[:, None]


def correlation(
    weights: Float[np.ndarray, "*ranking unit"],
    removed: Bool[np.ndarray, "sample unit"],
    drops: Float[np.ndarray, " sample"],
) -> Float[np.ndarray, "*ranking"]:
    """Pearson's, between the removed weights and the fall of the target.

    Both are centred by a regression on the number of removed units, so that removing more does not
    look like being right.
    """
    sizes = removed.sum(1)
    design = np.stack([np.ones(len(sizes)), sizes], 1).astype(np.float64)
    hat = design @ np.linalg.pinv(design)
    x = np.asarray(weights, dtype=np.float64) @ removed.T
    x = _clean(x - x @ hat.T, np.abs(weights).sum(-1))
    y = _clean(drops - hat @ drops, np.abs(drops).max(initial=0.0))
    size = np.sqrt((x**2).sum(-1) * (y**2).sum())
    return np.where(size > 0, (x @ y) / np.where(size > 0, size, 1.0), 0.0)


def held_out_evidence(
    weights: Float[np.ndarray, " unit"],
    baseline: Float[np.ndarray, " unit"] | None,
    removed: Bool[np.ndarray, "sample unit"],
    drops: Float[np.ndarray, " sample"],
    rng: np.random.Generator,
) -> Evidence | None:
    """The ranking's correlation with held-out removals, beside shuffled copies of itself.

    None where there is too little to tell.
    """
    if len(removed) < FEWEST or len(weights) < ENOUGH:
        return None
    ours = float(correlation(weights, removed, drops))
    copies = rng.permuted(np.tile(weights, (CONTROLS, 1)), axis=1)
    low, high = np.quantile(correlation(copies, removed, drops), [0.025, 0.975])

    verdict = Verdict.SAME
    if ours > high + ROUNDING:
        verdict = Verdict.BETTER
    if ours < low - ROUNDING:
        verdict = Verdict.WORSE

    plain = None
    if baseline is not None:
        plain = float(correlation(baseline, removed, drops))
    trial = Trial(
        removal="embedding",
        verdict=verdict,
        statistic=ours,
        random_low=float(low),
        random_high=float(high),
        samples=len(removed),
        baseline_statistic=plain,
    )
    return Evidence(HELD_OUT, verdict, value=ours, trials=(trial,))


def _clean(
    left: Float[np.ndarray, "*ranking sample"], whole: Any
) -> Float[np.ndarray, "*ranking sample"]:
    """What is left of a regression, zero where it is nothing but rounding beside the ``whole``."""
    is_rounding = np.abs(left).max(-1, initial=0.0) <= ROUNDING * np.asarray(whole)
    return np.where(np.asarray(is_rounding)[..., None], 0.0, left)
