"""Held-out removals tell a good ranking from a shuffled one."""

from __future__ import annotations

import numpy as np
import pytest

from whence.metrics.held_out import correlation, held_out_evidence, subsets


def test_subsets_are_never_one_and_never_all() -> None:
    removed = subsets(6, 500, np.random.default_rng(0))
    assert set(removed.sum(1).tolist()) == {2, 3, 4, 5}
    assert (
        len(subsets(4, 10, np.random.default_rng(0))) == 0
    )  # 24 orders: the best is not rare enough for a verdict


def test_an_additive_target_is_told_exactly() -> None:
    rng = np.random.default_rng(1)
    effect = np.array([3.0, 1.0, 0.0, -1.0, 0.5, 2.0])
    removed = subsets(6, 64, rng)
    drops = removed @ effect
    assert float(correlation(effect, removed, drops)) == pytest.approx(1)
    assert float(correlation(-effect, removed, drops)) == pytest.approx(-1)
    evidence = held_out_evidence(effect, np.ones(6), removed, drops, rng)
    assert evidence is not None
    assert evidence["verdict"] == "better than random"
    assert held_out_evidence(-effect, None, removed, drops, rng)["verdict"] == "worse than random"  # type: ignore[index]
    # equal weights say nothing but "the more, the more", which does not count
    assert evidence["baseline_value"] == pytest.approx(0, abs=1e-9)


def test_shuffled_rankings_are_mostly_not_separable() -> None:
    rng = np.random.default_rng(2)
    effect = rng.normal(size=12)
    removed = subsets(12, 40, rng)
    verdicts = [
        held_out_evidence(rng.permutation(effect), None, removed, removed @ effect, rng)["verdict"]
        for _ in range(100)
    ]  # type: ignore[index]
    assert (
        sum(v != "not separable from random" for v in verdicts) <= 12
    )  # 5 expected; P(> 12) is below 0.2 %
