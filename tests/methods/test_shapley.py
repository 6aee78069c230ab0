"""Shapley values and their siblings on games: exact, efficient, and the same as other people's."""

from __future__ import annotations

import numpy as np
import pytest

from tests.games.synthetic import Formula, bent_attention
from whence.core.errors import SettingsError
from whence.core.registry import find_method, settings_of
from whence.games.functionals import banzhaf, beta_shapley, shapley
from whence.games.sampling import all_masks
from whence.methods.banzhaf import Banzhaf
from whence.methods.beta_shapley import BetaShapley
from whence.methods.shapley import Shapley


@pytest.mark.parametrize(
    ("make", "of"), [(Shapley, shapley), (Banzhaf, banzhaf), (BetaShapley, beta_shapley)]
)
def test_up_to_twelve_units_are_exact(make: type, of: object) -> None:
    game = bent_attention(12, 0)
    found = make()(game)
    np.testing.assert_allclose(
        found.units, of(12).of_values(all_masks(12), game(all_masks(12))), atol=1e-12
    )  # type: ignore[operator]
    assert not found.standard_error.any()
    assert len(set(game.asked)) == 2**12


@pytest.mark.parametrize("estimator", ["auto", "surrogate", "kernel", "permutation"])
def test_the_sum_is_the_change_of_the_target(estimator: str) -> None:
    game = bent_attention(17, 1)
    found = Shapley(estimator=estimator, samples=150)(game)  # type: ignore[arg-type]
    full, empty = game(np.array([[True] * 17, [False] * 17]))
    assert found.change == pytest.approx(full - empty)
    assert found.units.sum() == pytest.approx(full - empty, abs=1e-6)
    assert found.detail is not None
    assert found.detail["distinct"] <= 150


@pytest.mark.parametrize("estimator", ["auto", "kernel", "permutation"])
def test_one_and_two_units(estimator: str) -> None:
    assert Shapley(estimator=estimator)(Formula(1, lambda z: 3 + 4 * z[:, 0])).units.tolist() == [
        4.0
    ]  # type: ignore[arg-type]
    assert Shapley(estimator=estimator)(Formula(2, lambda z: z.prod(1))).units.tolist() == [
        0.5,
        0.5,
    ]  # type: ignore[arg-type]


def test_the_estimators_agree_within_their_errors() -> None:
    game = bent_attention(13, 3)
    truth = shapley(13).of_values(all_masks(13), game(all_masks(13)))
    for estimator in ("surrogate", "kernel", "permutation"):
        found = Shapley(estimator=estimator, samples=700, seed=1)(game)  # type: ignore[arg-type]
        assert found.standard_error is not None
        assert (np.abs(found.units - truth) < 4.5 * found.standard_error).all(), estimator
        assert np.linalg.norm(found.units - truth) < (
            0.2 if estimator == "permutation" else 0.07
        ) * np.linalg.norm(truth), estimator


def test_beta_of_one_and_one_is_shapley_and_a_wrong_order_of_the_two_would_show() -> None:
    game = bent_attention(8, 4)
    np.testing.assert_allclose(BetaShapley(alpha=1.0, beta=1.0)(game).units, Shapley()(game).units)
    few = BetaShapley(alpha=1e6, beta=1.0)(game).units  # no other unit is present
    alone = game(np.eye(8, dtype=bool)) - game(np.zeros((1, 8), dtype=bool))
    np.testing.assert_allclose(few, alone, atol=1e-4)


@pytest.mark.parametrize("name", ["shapley", "banzhaf", "beta-shapley"])
@pytest.mark.parametrize("given_", [{"samples": 0}, {"budget": -1}, {"top": 0}, {"exact": 50}])
def test_impossible_settings_are_named(name: str, given_: dict[str, int]) -> None:
    with pytest.raises(SettingsError, match=next(iter(given_))):
        settings_of(find_method(name), given_)
    with pytest.raises(SettingsError, match="positive"):
        settings_of(find_method("beta-shapley"), {"alpha": 0})


def test_too_few_samples_for_orders_are_refused() -> None:
    with pytest.raises(SettingsError, match="samples"):
        Shapley(estimator="permutation", samples=20)(bent_attention(20, 0))
