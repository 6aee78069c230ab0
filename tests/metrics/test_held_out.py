"""Held-out removals tell a good ranking from a shuffled one."""

from __future__ import annotations

import numpy as np
import pytest

from whence.core.evidence import Verdict
from whence.metrics.held_out import correlation, held_out_evidence, subsets


def test_subsets_are_never_one_and_never_all() -> None:
    removed = subsets(6, 500, np.random.default_rng(0))
    assert set(removed.sum(1).tolist()) == {2, 3, 4, 5}
    # 24 orders: the best is not rare enough for a verdict
    assert len(subsets(4, 10, np.random.default_rng(0))) == 0


def test_an_additive_target_is_told_exactly() -> None:
    rng = np.random.default_rng(1)
    effect = np.array([3.0, 1.0, 0.0, -1.0, 0.5, 2.0])
    removed = subsets(6, 64, rng)
    drops = removed @ effect
    assert float(correlation(effect, removed, drops)) == pytest.approx(1)
    assert float(correlation(-effect, removed, drops)) == pytest.approx(-1)
    evidence = held_out_evidence(effect, np.ones(6), removed, drops, rng)
    assert evidence is not None
    assert evidence.verdict == Verdict.BETTER
    reverse = held_out_evidence(-effect, None, removed, drops, rng)
    assert reverse is not None
    assert reverse.verdict == Verdict.WORSE
    # equal weights say nothing but "the more, the more", which does not count
    assert evidence.trials[0].baseline_statistic == pytest.approx(0, abs=1e-9)


def test_shuffled_rankings_are_mostly_not_separable() -> None:
    rng = np.random.default_rng(2)
    effect = rng.normal(size=12)
    removed = subsets(12, 40, rng)
    separable = 0
    for _ in range(100):
        shuffled = rng.permutation(effect)
        evidence = held_out_evidence(shuffled, None, removed, removed @ effect, rng)
        assert evidence is not None
        separable += evidence.verdict != Verdict.SAME
    assert separable <= 12  # 5 expected; P(> 12) is below 0.2 %
