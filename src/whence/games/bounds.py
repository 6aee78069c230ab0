"""Intervals for a share that is estimated from draws that keep coming.

They are Kullback–Leibler bounds, and hold at every number of draws at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Int, Shaped
from scipy.special import gammaln, rel_entr

# Halvings of an interval no longer than one: to 1e-12.
HALVINGS = 40


def bernoulli_kl(p: Any, q: Any) -> Float[np.ndarray, "*shape"]:
    """How far a coin of share q is from showing p: p log(p/q) + (1 − p) log((1 − p)/(1 − q)).

    >>> bernoulli_kl([0.5, 1.0, 0.5], [0.5, 0.5, 1.0]).round(3)
    array([0.   , 0.693,   inf])
    """
    p = np.asarray(p, dtype=np.float64)
    q = np.asarray(q, dtype=np.float64)
    return np.asarray(rel_entr(p, q) + rel_entr(1 - p, 1 - q))


def anytime_rate(
    draws: Shaped[np.ndarray, " arm"], delta: float, log_arms: float = 0.0
) -> Float[np.ndarray, " arm"]:
    """The rate β for which n·d(p̂ₙ, p) < β at *every* n, with probability at least 1 − ``delta``.

    It holds for exp(``log_arms``) arms at once.

    >>> anytime_rate(np.array([1, 100]), 0.1).round(2)
    array([3. , 5.3])
    """
    # Of n tosses the Krichevsky–Trofimov mixture has at least 1/(2√n) of the likelihood of their
    # own share (Willems, Shtarkov, Tjalkens 1995). Over the likelihood of the true share it is a
    # martingale, which reaches 1/δ with probability at most δ (Ville).
    #
    # The rate of Kaufmann and Kalyanakrishnan (2013), e.g. log(405.5 K t^1.1/δ) + log log(…), is
    # larger, and its t is a clock common to all arms. Here each arm has its own n, so that one
    # draw may count for several arms.
    return log_arms + np.log(2 / delta) + 0.5 * np.log(np.maximum(draws, 1))


def kl_interval(
    hits: Int[np.ndarray, " arm"], draws: Int[np.ndarray, " arm"], rate: Float[np.ndarray, " arm"]
) -> tuple[Float[np.ndarray, " arm"], Float[np.ndarray, " arm"]]:
    """The smallest and the largest q with n·d(p̂, q) ≤ ``rate``; 0 to 1 without draws.

    Kaufmann and Kalyanakrishnan (2013).

    >>> low, high = kl_interval(np.array([0, 50, 0]), np.array([0, 100, 100]), np.full(3, 3.0))
    >>> low.round(3), high.round(3)
    (array([0.   , 0.379, 0.   ]), array([1.   , 0.621, 0.03 ]))
    """
    n = np.maximum(draws, 1)
    mean = np.where(draws > 0, hits / n, 0.5)
    inside = np.stack([mean, mean])
    outside = np.stack([np.zeros_like(mean), np.ones_like(mean)])
    for _ in range(HALVINGS):
        middle = (inside + outside) / 2
        fits = bernoulli_kl(mean, middle) <= rate / n
        inside, outside = np.where(fits, middle, inside), np.where(fits, outside, middle)
    # The outer ones: an interval may be 1e-12 too wide, never too narrow.
    low, high = outside
    return np.where(draws > 0, low, 0.0), np.where(draws > 0, high, 1.0)


def log_choose(n: int, k: int) -> float:
    """log of the number of ways to choose k of n.

    >>> round(log_choose(5, 2), 6) == round(float(np.log(10)), 6)
    True
    """
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
