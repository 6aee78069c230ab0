"""Exact averages of a ratio of sums over all subsets of a size.

This is what a softmax-attention head is on average when units are removed. The ratio is

    f(z) = N(z) / D(z)
    N(z) = n0 + Σ_i [n_i z_i + n̂_i (1 − z_i)]
    D(z) = d0 + Σ_i [g_i z_i + ĝ_i (1 − z_i)]

with z_i = 1 if unit i is kept, and all of d0, g_i, ĝ_i positive. Two steps make 2^d terms into d²
of them. 1/D = ∫ e^{−uD} du turns the quotient into products over units, and the average of a
product over all subsets of size k obeys a recursion over units. The averages of f·z_j, for all j
at once, are its derivatives: one pass back through it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, log

import numpy as np
from jaxtyping import Bool, Float

# The step of the trapezoid in ln u: its error is |Γ(1 + 2πi/STEP)| ≈ 1e-13.
STEP = 0.3

# u·D of the first node at the largest D.
FIRST = 0.01

# ln(u·D) of the last node at the smallest D: e^{−uD} < 3e-14 beyond.
LAST = 3.45

# The first nodes, whose weights stand for the whole tail u → 0.
CLOSED = 5

# Bytes of remembered recursion at a time.
BYTES = 2**25


@dataclass(frozen=True, eq=False)
class RatioOfSums:
    """Several ratios of sums over the same units, e.g. the heads of a layer.

    Hats are written as a second letter h.
    """

    n: Float[np.ndarray, "term unit"]
    nh: Float[np.ndarray, "term unit"]
    g: Float[np.ndarray, "term unit"]
    gh: Float[np.ndarray, "term unit"]
    n0: Float[np.ndarray, " term"]
    d0: Float[np.ndarray, " term"]

    def __call__(self, masks: Bool[np.ndarray, "mask unit"]) -> Float[np.ndarray, "mask term"]:
        """The value of each term at each mask."""
        # kept @ (n − n̂) would be shorter, and lose all digits of a sharp head.
        kept = masks.astype(np.float64)
        gone = 1 - kept
        numerator = self.n0 + kept @ self.n.T + gone @ self.nh.T
        denominator = self.d0 + kept @ self.g.T + gone @ self.gh.T
        return numerator / denominator


def exponential_sum(spread: float) -> tuple[Float[np.ndarray, " node"], Float[np.ndarray, " node"]]:
    """Nodes u and weights w with 1/x = Σ w e^{−u x} for 1 ≤ x ≤ ``spread``, to 2e-13 of it.

    >>> u, w = exponential_sum(10.0)
    >>> round(float(w @ np.exp(-u * 4.0)), 12)
    0.25
    """
    start = log(FIRST / spread)
    u = np.exp(start + STEP * np.arange(ceil((LAST - start) / STEP) + 1))
    w = STEP * u

    # Below the first nodes u·e^{−ux} is a short power series in u. Weights that sum each power as
    # the endless row of nodes would (a geometric series) replace that row, about a hundred nodes.
    power = np.arange(1, CLOSED + 1)
    shape = (u[:CLOSED] / u[CLOSED - 1]) ** power[:, None]
    w[:CLOSED] = np.linalg.solve(shape, STEP / (1 - np.exp(-power * STEP))) * u[:CLOSED]
    return u, w


def size_averages(
    ratio: RatioOfSums,
) -> tuple[Float[np.ndarray, "term size"], Float[np.ndarray, "term size unit"]]:
    """E[f | k kept] and E[f z_j | k kept] for k = 0 … d and every unit j, in time d³.

    >>> one = np.ones((1, 2))
    >>> ratio = RatioOfSums(one, 0 * one, one, 0.5 * one, np.zeros(1), np.ones(1))
    >>> average, kept = size_averages(ratio)
    >>> average.round(6), kept[0, 1].round(6)
    (array([[0.      , 0.4     , 0.666667]]), array([0.2, 0.2]))
    """
    units = ratio.n.shape[1]
    return mean_by_size(ratio), kept_averages(ratio, np.eye(units + 1))


def mean_by_size(ratio: RatioOfSums) -> Float[np.ndarray, "term size"]:
    """E[f | k kept] for k = 0 … d: the expected curve of a random order of removal.

    >>> one = np.ones((1, 2))
    >>> ratio = RatioOfSums(one, 0 * one, one, one, np.zeros(1), np.ones(1))
    >>> mean_by_size(ratio).round(6)
    array([[0.      , 0.333333, 0.666667]])
    """
    terms, units = ratio.n.shape
    means = np.zeros((terms, units + 1))
    for lanes in _lanes(ratio, width=4 * units):
        *_, (_, q) = _forward(lanes)
        for size in range(units + 1):
            means[:, size] += np.bincount(lanes.term, q[size] * lanes.weight, terms)
    return means


def kept_averages(
    ratio: RatioOfSums, weights: Float[np.ndarray, "functional size"]
) -> Float[np.ndarray, "term functional unit"]:
    """Σ_k weight_k E[f z_j | k kept] for every unit j, in time d² for each row of weights.

    >>> one = np.ones((1, 2))
    >>> ratio = RatioOfSums(one, 0 * one, one, one, np.zeros(1), np.ones(1))
    >>> kept_averages(ratio, np.array([[0.0, 0.0, 1.0]])).round(6)
    array([[[0.666667, 0.666667]]])
    """
    terms, units = ratio.n.shape
    averages = np.zeros((terms, len(weights), units))
    width = units * units // 2 + 4 * units * len(weights)
    for lanes in _lanes(ratio, width):
        history = list(_forward(lanes))[:-1]
        through = _backward(lanes, history, weights) * lanes.weight
        for functional in range(len(weights)):
            for j in range(units):
                sums = np.bincount(lanes.term, through[j, functional], terms)
                averages[:, functional, j] += sums
    return averages


# P and Q of the recursion, both "size lane".
_Averages = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class _Lanes:
    """All that the recursion needs at each pair of a term and a node u, side by side."""

    # e^{−u g} and e^{−u ĝ}, the smaller of g and ĝ taken out.
    keep: Float[np.ndarray, "unit lane"]
    drop: Float[np.ndarray, "unit lane"]
    n: Float[np.ndarray, "unit lane"]
    nh: Float[np.ndarray, "unit lane"]
    n0: Float[np.ndarray, " lane"]
    weight: Float[np.ndarray, " lane"]
    term: np.ndarray


def _lanes(ratio: RatioOfSums, width: int) -> Iterator[_Lanes]:
    """The lanes, a bounded number at a time; ``width`` numbers are remembered for each."""
    # The smallest that a denominator can be, and by how much the largest is larger.
    floor = np.minimum(ratio.g, ratio.gh)
    least = ratio.d0 + floor.sum(1)
    most = ratio.d0 + np.maximum(ratio.g, ratio.gh).sum(1)
    u, w = exponential_sum(float((most / least).max()))

    term, node = (index.ravel() for index in np.indices((len(least), len(u))))
    rate = u[node] / least[term]
    weight = w[node] * np.exp(-u[node]) / least[term]
    at_once = max(16, BYTES // (16 * max(width, 1)))
    for first in range(0, len(term), at_once):
        part = slice(first, first + at_once)
        t = term[part]
        yield _Lanes(
            keep=np.exp(-rate[part] * (ratio.g - floor).T[:, t]),
            drop=np.exp(-rate[part] * (ratio.gh - floor).T[:, t]),
            n=ratio.n.T[:, t],
            nh=ratio.nh.T[:, t],
            n0=ratio.n0[t],
            weight=weight[part],
            term=t,
        )


def _forward(lanes: _Lanes) -> Iterator[_Averages]:
    """P and Q: averages of e^{−uD} and of N e^{−uD} over subsets of the first m units, by size.

    There is one pair for each m = 0 … d. With k of m kept, the m-th is kept in a share k/m of the
    subsets:

        P_k ← (k/m) e^{−ug} P_{k−1} + ((m−k)/m) e^{−uĝ} P_k
    """
    p = np.ones((1, len(lanes.n0)))
    q = lanes.n0[None].copy()
    yield p, q
    for m in range(1, len(lanes.keep) + 1):
        keep, drop = lanes.keep[m - 1], lanes.drop[m - 1]
        up = p * keep
        stay = p * drop
        up_q = q * keep + up * lanes.n[m - 1]
        stay_q = q * drop + stay * lanes.nh[m - 1]

        share = (np.arange(1, m + 1) / m)[:, None]
        p, q = np.zeros((2, m + 1, len(keep)))
        np.multiply(share, up, out=p[1:])
        np.multiply(share, up_q, out=q[1:])
        p[:m] += share[::-1] * stay
        q[:m] += share[::-1] * stay_q
        yield p, q


def _backward(
    lanes: _Lanes, history: list[_Averages], weights: Float[np.ndarray, "functional size"]
) -> Float[np.ndarray, "unit functional lane"]:
    """The derivative of Σ_k weight_k Q_k by a factor on each unit's "kept" branch.

    This is Σ_k weight_k E[N e^{−uD} z_j | k]. A name with ``_bar`` is a derivative by that name.
    """
    units, lane = lanes.keep.shape
    q_bar = np.broadcast_to(weights.T[:, :, None], (units + 1, len(weights), lane))
    p_bar = np.zeros(q_bar.shape)
    through = np.zeros((units, len(weights), lane))
    for m in range(units, 0, -1):
        p, q = history[m - 1]
        keep, drop = lanes.keep[m - 1], lanes.drop[m - 1]
        share = (np.arange(1, m + 1) / m)[:, None, None]

        up_q_bar = q_bar[1:] * share
        stay_q_bar = q_bar[:m] * share[::-1]
        up_bar = p_bar[1:] * share + up_q_bar * lanes.n[m - 1]
        stay_bar = p_bar[:m] * share[::-1] + stay_q_bar * lanes.nh[m - 1]

        from_p = np.einsum("kfl,kl->fl", up_bar, p)
        from_q = np.einsum("kfl,kl->fl", up_q_bar, q)
        through[m - 1] = keep * (from_p + from_q)
        p_bar = up_bar * keep + stay_bar * drop
        q_bar = up_q_bar * keep + stay_q_bar * drop
    return through
