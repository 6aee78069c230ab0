"""Average precision, beside scikit-learn's and by its closed form for random rankings."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics import auc, average_precision_score, precision_recall_curve

from whence.metrics.auprc import Auprc


@pytest.mark.parametrize("seed", range(5))
def test_it_is_sklearns_average_precision(seed: int) -> None:
    """Enemies: the trapezoid of ERASER's code; the reverse order; precision averaged over all."""
    rng = np.random.default_rng(seed)
    gold = rng.permutation(np.arange(23) < 6)
    scores = rng.normal(size=23)
    ranking = np.argsort(-scores)[None]
    (value,) = Auprc()(gold, ranking)
    assert value == pytest.approx(average_precision_score(gold, scores), abs=1e-12)
    precision, recall, _ = precision_recall_curve(gold, scores)
    assert abs(value - auc(recall, precision)) > 1e-3
    assert abs(value - Auprc()(gold, ranking[:, ::-1])[0]) > 1e-3


@pytest.mark.parametrize(("units", "golden"), [(6, 2), (7, 3), (8, 7)])
def test_the_closed_form_of_chance(units: int, golden: int) -> None:
    """The mean over every placement of the gold units, one by one."""
    of_all = []
    for places in combinations(range(units), golden):
        gold = np.isin(np.arange(units), places)
        of_all.append(Auprc()(gold, np.arange(units)[None])[0])
    assert np.mean(of_all) == pytest.approx(by_chance(units, golden), abs=1e-12)


def test_the_declared_chance_is_the_closed_form() -> None:
    assert Auprc.chance == pytest.approx(by_chance(100, 50), abs=1e-5)


def by_chance(units: int, golden: int) -> float:
    harmonic = sum(1 / i for i in range(1, units + 1))
    return ((golden - 1) / (units - 1) * (units - harmonic) + harmonic) / units
