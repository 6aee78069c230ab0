"""Consistency over seeds: ranks, variances, and the two indices of Visani et al."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import spearmanr

from tests.metrics.made_again import explanation
from whence.metrics.again import Again, Missing, NotMeasured
from whence.metrics.consistency import Consistency, csi, relative_variance, vsi


def several(count: int = 4, units: int = 12, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=units) + 0.5 * rng.normal(size=(count, units))


def test_ranks_are_compared_in_all_pairs() -> None:
    """The enemy compares the others with the first alone."""
    scores = several()
    first, *others = [explanation(row) for row in scores]
    value = Consistency(seeds=3)(first, others)
    pairs = [spearmanr(one, other).statistic for one, other in combinations(scores, 2)]
    assert value == pytest.approx(np.mean(pairs), abs=1e-12)
    assert abs(value - np.mean(pairs[:3])) > 1e-3


def test_the_variance_is_a_share_of_the_mean_square() -> None:
    """Slowly, unit by unit. It has no unit: scores a thousand times as large have the same."""
    scores = several()
    variances, squares = [], []
    for unit in range(scores.shape[1]):
        column = scores[:, unit]
        variances.append(sum((x - column.mean()) ** 2 for x in column) / (len(column) - 1))
        squares.append(sum(x**2 for x in column) / len(column))
    share = sum(variances) / sum(squares)
    assert relative_variance([explanation(row) for row in scores]) == pytest.approx(share)
    assert relative_variance([explanation(1000 * row) for row in scores]) == pytest.approx(share)


def test_csi_counts_overlapping_intervals() -> None:
    """Two runs, four units: the intervals meet, overlap, touch at an end, and are apart."""
    errors = [1.0, 1.0, 1.0, 1.0]
    one = explanation([0.0, 0.0, 0.0, 0.0], error=errors)
    other = explanation([0.0, 3.0, 3.92, 3.93], error=errors)
    assert csi([one, other]) == pytest.approx(0.75)
    assert csi([one, one]) == 1.0


def test_vsi_counts_units_in_common() -> None:
    """The enemy ranks by the signed score, and misses what speaks against."""
    one = explanation([5.0, -4.0, 0.1, 0.2, 0.0])
    disjoint = explanation([0.0, 0.1, 0.2, -4.0, 5.0])
    half = explanation([5.0, 0.1, 0.2, -4.0, 0.0])
    assert vsi([one, one], 2) == 1.0
    assert vsi([one, disjoint], 2) == 0.0
    assert vsi([one, half], 2) == 0.5
    # pairs: (one, disjoint) 0, (one, half) 1/2, (disjoint, half) 1/2
    assert vsi([one, disjoint, half], 2) == pytest.approx(1 / 3)


def test_where_nothing_can_be_said_there_is_a_reason() -> None:
    first, other = explanation([1.0, 2.0, 3.0]), explanation([2.0, 1.0, 3.0])
    with pytest.raises(NotMeasured, match="no standard errors"):
        Consistency(by="csi")(first, [other])
    with pytest.raises(NotMeasured, match="all of them are among the top 5"):
        Consistency(by="vsi")(first, [other])
    with pytest.raises(NotMeasured, match="out of memory"):
        Consistency()(first, [Missing("out of memory")])
    with pytest.raises(NotMeasured, match="the text has 1 of the 2 units"):
        Consistency()(explanation([1.0]), [explanation([2.0])])


def test_each_time_has_a_seed_of_its_own() -> None:
    assert Consistency(seeds=3).again() == (Again(seed=1), Again(seed=2), Again(seed=3))
