"""LIME, against its package, its theory and its own standard error."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.games.synthetic import Formula, additive, bent_attention
from whence.core.errors import SettingsError
from whence.core.registry import find_method, settings_of
from whence.games.functionals import lime
from whence.games.sampling import all_masks
from whence.methods.lime import Lime

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def rational(z: np.ndarray) -> np.ndarray:
    return z @ np.array([1.0, -2.0, 2.0]) / (1 + z @ np.array([1.0, 2.0, 1.0]) + (1 - z).sum(1))


def test_the_rational_example_by_enumeration() -> None:
    wide, narrow = (Lime(bandwidth=bandwidth)(Formula(3, rational)) for bandwidth in (None, 0.25))
    np.testing.assert_allclose(wide.units, [1 / 4, -9 / 20, 19 / 40], atol=1e-12)
    np.testing.assert_allclose(narrow.units, [0.23822471, -0.48790264, 0.45016103], atol=5e-9)
    assert narrow.standard_error is not None
    assert not narrow.standard_error.any()


def test_samples_converge_to_the_rational_example_beside_units_that_do_nothing() -> None:
    """Nine dummies make the three units of the example a game that must be sampled; the truth is by
    enumeration.
    """
    game = Formula(12, lambda z: rational(z[:, :3]))
    truth = lime(12, None).of_values(all_masks(12), game(all_masks(12)))
    errors = [
        np.linalg.norm(
            [
                Lime(bandwidth=None, samples=n, estimator="plain", seed=s)(game).units - truth
                for s in range(10)
            ]
        )
        for n in (60, 240, 960)
    ]
    assert errors[0] > 1.7 * errors[1] > 2.9 * errors[2]  # 1/√n or better: a bias would not fall


@settings(max_examples=10)
@given(
    units=st.integers(1, 30), bandwidth=st.none() | st.floats(1e-3, 1e3), seed=st.integers(0, 2**31)
)
def test_an_additive_game_gives_its_coefficients_for_every_bandwidth(
    units: int, bandwidth: float | None, seed: int
) -> None:
    game = additive(units, seed)
    found = Lime(bandwidth=bandwidth, exact=6, seed=seed)(game)
    np.testing.assert_allclose(found.units, game(np.eye(units, dtype=bool)) - 2.0, atol=1e-6)


def test_agrees_with_the_lime_package_within_the_sampling_error_of_both() -> None:
    lime_text = pytest.importorskip("lime.lime_text")
    game = bent_attention(len(WORDS), 5)
    runs, samples = 12, 1000

    def probabilities(texts: list[str]) -> np.ndarray:
        first = 1 / (
            1
            + np.exp(-game(np.array([[word in text.split() for word in WORDS] for text in texts])))
        )
        return np.stack([1 - first, first], 1)

    def package(seed: int) -> np.ndarray:
        explainer = lime_text.LimeTextExplainer(
            bow=False, mask_string="UNK", feature_selection="none", random_state=seed
        )
        found = explainer.explain_instance(
            " ".join(WORDS), probabilities, num_features=len(WORDS), num_samples=samples
        ).local_exp[1]
        return np.array([weight for _, weight in sorted(found)])

    theirs = np.stack([package(seed) for seed in range(runs)])
    seen = Formula(len(WORDS), lambda z: 1 / (1 + np.exp(-game.value(z))))
    ours = Lime(ridge=1 / samples)(seen)
    assert "exact" in ours.note
    error = theirs.std(0, ddof=1) / np.sqrt(runs)
    # the package adds the whole text to its samples, once with weight 1: a share of 1/1000 and more
    # of the weights
    assert (np.abs(theirs.mean(0) - ours.units) < 4 * error + 2e-3 * np.abs(ours.units).max()).all()
    sampled = Lime(ridge=1 / samples, samples=200, estimator="plain")(seen)
    assert sampled.standard_error is not None
    assert (
        np.abs(theirs.mean(0) - sampled.units) < 4 * np.hypot(error, sampled.standard_error) + 2e-3
    ).all()
    without = Lime(bandwidth=None)(seen)  # another kernel would be found out
    assert not (
        np.abs(theirs.mean(0) - without.units) < 4 * error + 2e-3 * np.abs(ours.units).max()
    ).all()


def test_one_unit_is_the_change_of_the_target() -> None:
    assert Lime()(Formula(1, lambda z: 3 + 4 * z[:, 0])).units.tolist() == [4.0]


@pytest.mark.parametrize(
    "given_",
    [
        {"samples": 0},
        {"samples": -3},
        {"budget": 0},
        {"bandwidth": 0},
        {"bandwidth": -1},
        {"ridge": -1},
    ],
)
def test_impossible_settings_are_named(given_: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match=next(iter(given_))):
        settings_of(find_method("lime"), given_)


@pytest.mark.parametrize("samples", ["auto", "250", 250])
def test_settings_come_from_strings_too(samples: object) -> None:
    assert settings_of(find_method("lime"), {"samples": samples, "bandwidth": None}).samples in (
        "auto",
        250,
    )
