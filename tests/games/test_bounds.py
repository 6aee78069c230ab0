"""Kullback–Leibler bounds: against a fine grid and against scipy's root finder.

And in tosses of a coin that are looked at all the time.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from whence.games.bounds import anytime_rate, bernoulli_kl, kl_interval, log_choose


@given(st.floats(0, 1), st.floats(0.001, 0.999))
def test_the_divergence_is_its_formula(p: float, q: float) -> None:
    expected = 0.0
    for a, b in ((p, q), (1 - p, 1 - q)):
        if a > 0:
            expected += a * math.log(a / b)
    assert bernoulli_kl(p, q) == pytest.approx(expected, abs=1e-12)


@given(st.integers(1, 5000), st.data(), st.floats(0.01, 30))
def test_the_ends_are_where_the_divergence_passes_the_rate(
    n: int, data: st.DataObject, rate: float
) -> None:
    hits = data.draw(st.integers(0, n))
    (low,), (high,) = kl_interval(np.array([hits]), np.array([n]), np.array([rate]))
    mean = hits / n

    def beyond(q: float) -> float:
        return n * float(bernoulli_kl(mean, q)) - rate

    # One step of bisection, as the reference does it, would stop far from the root.
    lowest, highest = 0.0, 1.0
    if hits > 0:
        lowest = brentq(beyond, 1e-300, mean, xtol=1e-14)
    if hits < n:
        highest = brentq(beyond, mean, 1 - 1e-16, xtol=1e-14)
    assert 0 <= low <= mean <= high <= 1
    # Of no hits, and of nothing but hits, the end is exact.
    assert low == pytest.approx(lowest, abs=1e-10 if hits > 0 else 0)
    assert high == pytest.approx(highest, abs=1e-10 if hits < n else 0)


def test_without_draws_everything_is_possible() -> None:
    low, high = kl_interval(np.array([0]), np.array([0]), np.array([0.5]))
    assert (low[0], high[0]) == (0, 1)


def test_of_all_heads_the_lower_end_is_known() -> None:
    low, high = kl_interval(np.array([100]), np.array([100]), np.array([5.0]))
    assert low[0] == pytest.approx(math.exp(-5 / 100), abs=1e-11)
    assert high[0] == 1


@pytest.mark.parametrize("p", [0.05, 0.5, 0.95])
def test_the_interval_is_right_at_every_look_at_once(p: float) -> None:
    runs, tosses, delta = 1000, 1000, 0.1
    rng = np.random.default_rng(0)
    hits = (rng.random((runs, tosses)) < p).cumsum(1)
    n = np.arange(1, tosses + 1)
    too_far = n * bernoulli_kl(hits / n, p) > anytime_rate(n, delta)
    missed = too_far.any(1).mean()
    assert missed <= delta
    # the rate of a single look, log(1/δ), is not enough: this test would see it
    assert (n * bernoulli_kl(hits / n, p) > np.log(1 / delta)).any(1).mean() > 2 * delta


def test_the_rate_follows_from_the_mixture() -> None:
    # of n tosses with k heads, Krichevsky and Trofimov's mixture is
    # B(k + 1/2, n − k + 1/2) / B(1/2, 1/2); its loss is at most log(2√n)
    for n in (1, 2, 7, 50, 400):
        for k in range(n + 1):
            mixture = -math.lgamma(n + 1)
            best = 0.0
            for count in (k, n - k):
                mixture += math.lgamma(count + 0.5) - math.lgamma(0.5)
                if count:
                    best += count * math.log(count / n)
            assert best - mixture <= math.log(2) + 0.5 * math.log(n) + 1e-9


def test_more_arms_and_more_draws_need_a_higher_rate() -> None:
    draws = np.array([1, 10, 100])
    assert (np.diff(anytime_rate(draws, 0.1)) > 0).all()
    np.testing.assert_allclose(
        anytime_rate(draws, 0.1, math.log(20)), anytime_rate(draws, 0.1 / 20)
    )


@given(st.integers(0, 60), st.data())
def test_the_number_of_choices(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n))
    assert log_choose(n, k) == pytest.approx(math.log(math.comb(n, k)), abs=1e-9)
