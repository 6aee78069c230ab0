"""LIME for endlessly many samples, by formula.

The population limit of Mardaoui & Garreau (2021), and approximations for attention. ``m_j`` is
E[f | unit j kept] and ``m0`` E[f], over s ~ U{1 … d} removed units. "The talk" is Garreau's
"Attention meets post-hoc interpretability"; its formulas are taken as stated on the slides, the
paper's own text was not read.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from jaxtyping import Float

from whence.games.ratio import RatioOfSums

NODES = 200  # of Gauss–Legendre on [0, 1]


def alpha(p: int, d: int, bandwidth: int | float | None) -> float:
    """α_p = E[π Z_1 … Z_p] = (1/d) Σ_s π_s Π_{k<p} (d − s − k)/(d − k), s from 1 to d.

    >>> round(alpha(1, 5, None), 12), round(alpha(2, 5, None), 12)
    (0.4, 0.2)
    """
    s = np.arange(1, d + 1)
    weight = _weights(d, bandwidth)
    for k in range(p):
        weight = weight * (d - s - k) / (d - k)
    return float(weight.mean())


@dataclass(frozen=True)
class Sigmas:
    """The constants of the limit: β_j = s1 E[πf] + s2 E[πZ_j f] + s3 Σ_{k≠j} E[πZ_k f].

    The 1/c of the paper is inside them.
    """

    s1: float
    s2: float
    s3: float


def sigmas(d: int, bandwidth: int | float | None) -> Sigmas:
    """The constants for d ≥ 2 units; ``bandwidth=None`` is infinite.

    Below a bandwidth of 0.1 they lose digits, and ``exact_lime`` does not.

    >>> round(sigmas(5, None).s1, 12)           # −6/(d + 1)
    -1.0
    """
    a0, a1, a2 = (alpha(p, d, bandwidth) for p in range(3))
    c = d * a1**2 - a0 * a1 - a0 * a2 * (d - 1)
    own = -a0 * a1 - (d - 2) * a0 * a2 + (d - 1) * a1**2
    other = a0 * a2 - a1**2
    return Sigmas(s1=a1 / c, s2=own / (c * (a1 - a2)), s3=other / (c * (a1 - a2)))


def population_lime(
    average: Float[np.ndarray, " size"],
    kept: Float[np.ndarray, "size unit"],
    bandwidth: int | float | None,
) -> Float[np.ndarray, " unit"]:
    """The limit from averages by size k = 0 … d of kept units: E[f | k] and E[f z_j | k].

    ``games.ratio.size_averages`` gives them.
    """
    d = kept.shape[1]
    weight = _weights(d, bandwidth)[::-1] / d  # s = d … 1 removed is k = 0 … d − 1 kept
    whole = weight @ average[:d]  # E[πf]
    each = weight @ kept[:d]  # (unit,): E[πZ_j f]
    s = sigmas(d, bandwidth)
    return s.s1 * whole + s.s2 * each + s.s3 * (each.sum() - each)


def large_bandwidth(m: Float[np.ndarray, " unit"], m0: float) -> Float[np.ndarray, " unit"]:
    """The exact limit for infinite bandwidth: 3(d−1)/(d+1) (m_j − m̄) + 6/(d+1) (m̄ − m0).

    >>> large_bandwidth(np.array([4 / 15, -1 / 5, 5 / 12]), 1 / 10).round(9)
    array([ 0.25 , -0.45 ,  0.475])
    """
    d = len(m)
    beside_the_mean = 3 * (d - 1) / (d + 1) * (m - m.mean())
    shared = 6 / (d + 1) * (m.mean() - m0)
    return beside_the_mean + shared


def corollary(m: Float[np.ndarray, " unit"]) -> Float[np.ndarray, " unit"]:
    """The talk's corollary, 3 (m_j − m̄): the above to leading order in 1/d."""
    return 3 * (m - m.mean())


def kept_means(
    average: Float[np.ndarray, " size"], kept: Float[np.ndarray, "size unit"]
) -> tuple[Float[np.ndarray, " unit"], float]:
    """m_j and m0 from averages by size.

    s ~ U{1 … d}, and given that j is kept, P(s) = 2(d − s)/(d(d − 1)).
    """
    d = kept.shape[1]
    given_kept = kept[:d].sum(0) / (d * alpha(1, d, None))  # (unit,)
    return given_kept, float(average[:d].mean())


# ---------------------------------------------------------------------- for attention


def talk(ratio: RatioOfSums, factor: float = 1.5) -> Float[np.ndarray, " unit"]:
    """The talk's theorem: (3/2) Σ W_l (α_j v_j − α_{h,j} v_{h,j}).

    α_h is the attention when every word is [UNK].
    """
    full = (ratio.d0 + ratio.g.sum(1))[:, None]  # (head, 1)
    none = (ratio.d0 + ratio.gh.sum(1))[:, None]  # (head, 1)
    return factor * (ratio.n / full - ratio.nh / none).sum(0)


def first_order(ratio: RatioOfSums) -> Float[np.ndarray, " unit"]:
    """The corrected form to first order, (1/D) [(n_j − n̂_j) − f (g_j − ĝ_j)].

    Its factor is 1, and it has a term for what a word's weight does to the average.
    """
    full = (ratio.d0 + ratio.g.sum(1))[:, None]  # (head, 1): D
    f = (ratio.n0 + ratio.n.sum(1))[:, None] / full  # (head, 1)
    change = (ratio.n - ratio.nh) - f * (ratio.g - ratio.gh)  # (head, unit)
    return (change / full).sum(0)


def mean_field(ratio: RatioOfSums) -> Float[np.ndarray, " unit"]:
    """∫₀¹ 6τ(1 − τ) [(n_j − n̂_j)/D(τ) − N(τ)(g_j − ĝ_j)/D(τ)²] dτ.

    N and D are the means when a share τ is removed.
    """
    node, weight = np.polynomial.legendre.leggauss(NODES)  # on [−1, 1]
    tau, weight = (node + 1) / 2, weight / 2  # on [0, 1]

    def along(
        start: np.ndarray, kept: np.ndarray, gone: np.ndarray
    ) -> Float[np.ndarray, "term node"]:
        """A sum's mean at each τ: from all words kept to all words removed."""
        return start[:, None] + np.outer(kept.sum(1), 1 - tau) + np.outer(gone.sum(1), tau)

    above = along(ratio.n0, ratio.n, ratio.nh)  # (head, node): N(τ)
    below = along(ratio.d0, ratio.g, ratio.gh)  # (head, node): D(τ)
    density = weight * 6 * tau * (1 - tau)  # (node,)
    direct = (density / below).sum(1)[:, None]  # (head, 1)
    through = (density * above / below**2).sum(1)[:, None]  # (head, 1)
    return (direct * (ratio.n - ratio.nh) - through * (ratio.g - ratio.gh)).sum(0)


def _weights(d: int, bandwidth: int | float | None) -> Float[np.ndarray, " removed"]:
    """π_s = exp(−δ²/2ν²) for s = 1 … d removed, δ = 1 − √((d − s)/d)."""
    if bandwidth in (None, inf):
        return np.ones(d)
    delta = 1 - np.sqrt((d - np.arange(1, d + 1)) / d)
    return np.exp(-(delta**2) / (2 * bandwidth**2))
