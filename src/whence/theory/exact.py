"""Exact LIME, Shapley and Banzhaf values of softmax attention: no sampling, no enumeration.

Also the mean curve of random removal. A head is a ratio of sums (``games/ratio.py``), and
1/D = ∫ e^{−uD} du
makes the average over all subsets of a size a recursion over units, exact up to the rounding of a
quadrature, about 1e-13. Time grows with d² for each node u, of which there are 28 and more, by the
logarithm of how sharp a head is. The derivation is in docs/exact.md.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from whence.games.functionals import banzhaf, lime, shapley
from whence.games.ratio import RatioOfSums, mean_by_size


def exact_lime(
    ratio: RatioOfSums, bandwidth: int | float | None = 0.25, whole: bool = False
) -> Float[np.ndarray, " unit"]:
    """LIME's coefficients for endlessly many samples.

    ``bandwidth=None`` is infinite. With ``whole`` the untouched text is drawn too.

    The example of three units, whose values are rational:

    >>> rational = RatioOfSums(
    ...     n=np.array([[1.0, -2, 2]]),
    ...     nh=np.zeros((1, 3)),
    ...     g=np.array([[1.0, 2, 1]]),
    ...     gh=np.ones((1, 3)),
    ...     n0=np.zeros(1),
    ...     d0=np.ones(1),
    ... )
    >>> exact_lime(rational, None).round(9)
    array([ 0.25 , -0.45 ,  0.475])
    """
    return lime(_units(ratio), bandwidth, whole=whole).of_ratios(ratio)


def exact_shapley(ratio: RatioOfSums) -> Float[np.ndarray, " unit"]:
    """Shapley values: they sum to f(all) − f(none)."""
    return shapley(_units(ratio)).of_ratios(ratio)


def exact_banzhaf(ratio: RatioOfSums) -> Float[np.ndarray, " unit"]:
    """Banzhaf values: the mean contribution over all subsets of the others."""
    return banzhaf(_units(ratio)).of_ratios(ratio)


def deletion_curve(ratio: RatioOfSums) -> Float[np.ndarray, " removed"]:
    """E[f] after 0, 1, … d units were removed in a random order.

    It is the exact control of a deletion curve.
    """
    by_size = mean_by_size(ratio).sum(0)  # (kept,): the mean over all subsets that keep so many
    return by_size[::-1]


def _units(ratio: RatioOfSums) -> int:
    return ratio.n.shape[1]
