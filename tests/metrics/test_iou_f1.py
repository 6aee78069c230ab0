"""IoU F1, with sets of positions as in ERASER's own code, and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from whence.metrics.iou_f1 import IouF1, iou, spans_of


@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_f1_of_spans_as_sets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gold = rng.random(25) < 0.4
    rankings = np.array([rng.permutation(25) for _ in range(20)])
    for ranking, value in zip(rankings, IouF1()(gold, rankings), strict=True):
        named = np.isin(np.arange(25), ranking[: gold.sum()])
        assert value == pytest.approx(slowly(runs(named), runs(gold)))


def runs(marked: np.ndarray) -> list[set[int]]:
    """Sets of neighbouring positions."""
    found: list[set[int]] = []
    for place in np.flatnonzero(marked).tolist():
        if found and place - 1 in found[-1]:
            found[-1].add(place)
        else:
            found.append({place})
    return found


def slowly(named: list[set[int]], golden: list[set[int]]) -> float:
    hits = 0
    for one in named:
        hits += any(len(one & other) / len(one | other) >= 0.5 for other in golden)
    precision, recall = hits / len(named), hits / len(golden)
    return 0.0 if not hits else 2 * precision * recall / (precision + recall)


def test_half_of_a_span_is_enough_and_less_is_not() -> None:
    """An enemy asks for more than a half; another takes the share of the gold span alone."""
    gold = np.array([1, 1, 0, 0, 0, 0, 0, 0], dtype=bool)
    half, less = [[0, 7]], [[2, 3]]
    assert IouF1()(gold, completed(half)).tolist() == [pytest.approx(2 / 3)]
    assert IouF1()(gold, completed(less)).tolist() == [0.0]
    assert iou((0, 2), (0, 4)) == 0.5
    assert iou((0, 2), (0, 5)) == 0.4


def completed(first: list[list[int]]) -> np.ndarray:
    rows = [row + [unit for unit in range(8) if unit not in row] for row in first]
    return np.array(rows)


def test_spans_at_both_ends() -> None:
    assert spans_of(np.array([1, 0, 0, 1, 1], dtype=bool)) == [(0, 1), (3, 5)]
    assert spans_of(np.zeros(3, dtype=bool)) == []
