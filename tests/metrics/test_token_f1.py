"""Token F1, beside scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score

from whence.metrics.token_f1 import TokenF1


@pytest.mark.parametrize("seed", range(4))
def test_it_is_sklearns_f1_of_the_first_units(seed: int) -> None:
    """The enemy names a fixed number of units instead of as many as are gold."""
    rng = np.random.default_rng(seed)
    gold = rng.permutation(np.arange(20) < 3 + seed)
    rankings = np.array([rng.permutation(20) for _ in range(10)])
    for ranking, value in zip(rankings, TokenF1()(gold, rankings), strict=True):
        named = np.zeros(20, dtype=bool)
        named[ranking[: gold.sum()]] = True
        assert value == pytest.approx(f1_score(gold, named))


def test_without_gold_units_nothing_is_found() -> None:
    assert TokenF1()(np.zeros(3, dtype=bool), np.arange(3)[None]).tolist() == [0.0]
