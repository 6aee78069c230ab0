"""Robustness: the Lipschitz constant of functions for which it is known."""

from __future__ import annotations

import numpy as np
import pytest

from tests.metrics.made_again import explanation
from whence.metrics.again import Again, Missing, NotMeasured, distance
from whence.metrics.robustness import Robustness, largest_ratio
from whence.models.exchanged import OneWordOther


def around(x: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    return x + 0.1 * np.random.default_rng(seed).normal(size=(count, len(x)))


def ratio(phi: object, x: np.ndarray, neighbours: np.ndarray) -> float:
    moves = np.array([np.linalg.norm(phi(z) - phi(x)) for z in neighbours])  # type: ignore[operator]
    return largest_ratio(moves, np.linalg.norm(neighbours - x, axis=1))


def test_the_gradient_of_a_quadratic_form_has_the_norm_of_its_matrix() -> None:
    """From samples never more than ‖H‖₂, and attained along its first eigenvector.

    The enemies: the norm of Frobenius as the bound, and the mean over neighbours.
    """
    rng = np.random.default_rng(1)
    half = rng.normal(size=(5, 5))
    matrix = half + half.T
    x = rng.normal(size=5)
    norm = np.linalg.norm(matrix, 2)
    assert ratio(lambda z: matrix @ z, x, around(x, 500)) <= norm * (1 + 1e-12)
    values, vectors = np.linalg.eigh(matrix)
    steepest = vectors[:, np.abs(values).argmax()]
    with_steepest = np.vstack([around(x, 5), x + 0.1 * steepest])
    assert ratio(lambda z: matrix @ z, x, with_steepest) == pytest.approx(norm)
    assert norm < 0.9 * np.linalg.norm(matrix)


def test_the_gradient_of_a_linear_function_never_moves() -> None:
    weights, x = np.array([1.0, -3.0, 2.0]), np.ones(3)
    assert ratio(lambda z: weights + 0 * z, x, around(x, 10)) == 0.0


def test_gradient_times_input_of_a_linear_function_has_its_largest_weight() -> None:
    """φ(x) = w * x, which integrated gradients from zero give, too: max |w_i| is attained."""
    weights, x = np.array([1.0, -3.0, 2.0]), np.ones(3)
    neighbours = np.vstack([around(x, 200), x + 0.1 * np.eye(3)])
    assert ratio(lambda z: weights * z, x, neighbours) == pytest.approx(3.0)


def test_both_moves_are_shares_of_their_length() -> None:
    """The enemy compares raw scores: a method in other units would seem more robust."""
    metric = Robustness()
    first = explanation([3.0, 4.0])
    others = [explanation([3.0, 4.5], moved=0.05), explanation([3.0, 4.1], moved=0.005)]
    assert metric(first, others) == pytest.approx(max(0.1 / 0.05, 0.02 / 0.005))
    larger = [explanation(100 * other.scores, moved=other.moved) for other in others]
    assert metric(explanation([300.0, 400.0]), larger) == pytest.approx(4.0)


def test_of_an_edit_only_the_unchanged_words_count() -> None:
    metric = Robustness(by="edits")
    first = explanation([3.0, 4.0, 9.0])
    others = [explanation([3.0, 4.5, -9.0], changed=[2]), Missing("changed the prediction")]
    assert metric(first, others) == pytest.approx(0.1)
    assert metric.again()[1] == Again(text=OneWordOther(1))


def test_an_explainer_that_always_says_the_same_is_perfectly_robust() -> None:
    constant = explanation(np.ones(4), moved=0.05)
    assert Robustness()(constant, [constant]) == 0.0
    zero = explanation(np.zeros(4), moved=0.05)
    assert Robustness()(zero, [zero]) == 0.0


def test_where_nothing_can_be_said_there_is_a_reason() -> None:
    first = explanation([1.0, 2.0])
    with pytest.raises(NotMeasured, match="every word that was exchanged changed the prediction"):
        Robustness(by="edits")(
            first, [Missing("every word that was exchanged changed the prediction.")]
        )
    with pytest.raises(NotMeasured, match="no neighbour differs"):
        Robustness()(first, [explanation([1.0, 2.0], moved=0.0)])
    with pytest.raises(NotMeasured, match="all scores are zero"):
        distance(np.zeros(2), np.ones(2))
