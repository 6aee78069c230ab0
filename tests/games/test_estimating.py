"""Estimates from samples: right on average, honest about their error, exact where they can be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.games.synthetic import Formula, additive, bent_attention, sigmoid
from whence.games.estimating import (
    Estimate,
    Sample,
    Stand,
    Strata,
    estimate,
    fold_pairs,
    standard_error,
    stratify,
)
from whence.games.functionals import Functional, banzhaf, beta_shapley, lime, shapley
from whence.games.sampling import all_masks, draw_pairs, even_law, law_for

ALL: dict[str, Callable[[int], Functional]] = {
    "lime": lime,
    "shapley": shapley,
    "banzhaf": banzhaf,
    "beta": beta_shapley,
}


def sampled(game: Formula, samples: int, seed: int) -> Sample:
    law = even_law(game.size)
    return Sample.of(game, draw_pairs(game.size, law, (samples - 2) // 2, seed), law)


def exact(functional: Functional, game: Formula) -> np.ndarray:
    return functional.of_values(all_masks(game.size), game(all_masks(game.size)))


def coverage(estimates: list[Estimate], truth: np.ndarray) -> float:
    return float(
        np.mean([np.abs(one.units - truth) <= 1.96 * one.standard_error for one in estimates])
    )


@pytest.mark.slow
@pytest.mark.parametrize("make", [sigmoid, bent_attention])
@pytest.mark.parametrize(("estimators", "times"), [(("plain",), 400), (("surrogate", "auto"), 200)])
def test_the_interval_of_95_percent_holds_the_truth_as_often_as_it_says(
    make: Callable[[int, int], Formula], estimators: tuple[Stand, ...], times: int
) -> None:
    """The standard error of a coverage is .005. The enemies: no Student's t (.895 to .925 for the
    surrogate and auto); auto by the smaller of two errors, however near (.93 for Shapley values).
    """
    game = make(11, 3)
    by_case: dict[tuple[str, Stand], list[Estimate]] = {}
    for name in ALL:
        for one in estimators:
            by_case[name, one] = []
    for seed in range(times):
        sample = sampled(game, 120, seed)
        for name, one in by_case:  # all share one surrogate
            by_case[name, one].append(estimate(ALL[name](11), sample, one, seed))
    for (name, one), estimates in by_case.items():
        assert 0.93 <= coverage(estimates, exact(ALL[name](11), game)) <= 0.97, (name, one)


@settings(max_examples=15)
@example(
    units=16, seed=1921608542, bandwidth=0.0102
)  # weights that underflow: once wrong by 3, with a standard error of 1e-12
@example(units=8, seed=2123582588, bandwidth=0.0113)
@given(
    units=st.integers(4, 25), seed=st.integers(0, 2**31), bandwidth=st.none() | st.floats(1e-6, 5)
)
def test_an_additive_game_comes_back_with_no_error(
    units: int, seed: int, bandwidth: float | None
) -> None:
    game = additive(units, seed)
    sample = sampled(game, 4 * (units + 3), seed)
    weights = game(np.eye(units, dtype=bool)) - 2.0
    for functional in (lime(units, bandwidth), shapley(units), banzhaf(units)):
        beta = estimate(functional, sample, "plain")
        np.testing.assert_allclose(beta.units, weights, atol=1e-6)
        assert beta.standard_error.max() < 1e-6


@pytest.mark.parametrize("bandwidth", [0.02, 0.05, 0.06, 0.1])
def test_the_interval_holds_at_small_bandwidths_too(bandwidth: float) -> None:
    game = bent_attention(11, 3)
    functional = lime(11, bandwidth)
    law = law_for(functional)
    truth = exact(functional, game)
    samples = [Sample.of(game, draw_pairs(11, law, 59, seed), law) for seed in range(120)]
    estimates = [estimate(functional, sample, "plain") for sample in samples]
    assert 0.90 <= coverage(estimates, truth) <= 0.98


@pytest.mark.parametrize("units", [6, 7])
@pytest.mark.parametrize("estimator", ["plain", "surrogate"])
def test_with_every_pair_drawn_nothing_is_left_to_estimate(estimator: str, units: int) -> None:
    """The strata are complete: a surrogate fitted to some folds must cancel out to the digit.

    Of an even number of units, both halves of a pair may have the middle size. The enemy weighs
    such a pair as one of two sizes, and so twice.
    """
    game = bent_attention(units, 0)
    sample = sampled(game, 2**units, 0)
    for of in ALL.values():
        beta = estimate(of(units), sample, estimator)  # type: ignore[arg-type]
        np.testing.assert_allclose(beta.units, exact(of(units), game), atol=1e-9)
        assert beta.standard_error.max() < 1e-9


def test_every_pair_stands_for_its_part_of_all_pairs() -> None:
    """Of an even number of units: the pairs of a size stand for all of that size, counted by hand.

    With 8 units there are 8, 28 and 56 pairs of the sizes 1, 2 and 3, and 35 of 4, where a mask
    and its complement are of one size.
    """
    law = np.array([0.4, 0.3, 0.2, 0.1])
    sample = Sample.of(sigmoid(8, 0), draw_pairs(8, law, 60, 0), law)
    size = sample.halves.sum(1)
    strata = stratify(sample)
    for k in (1, 2, 3, 4):
        drawn = int((size == k).sum())
        assert drawn >= 4
        of_two_sizes = 0.5 if k == 4 else 1.0
        np.testing.assert_allclose(strata.weight[size == k], of_two_sizes / drawn)


@pytest.mark.parametrize(
    ("estimator", "counts"), [("plain", (44, 60, 200)), ("surrogate", (10, 40, 200))]
)
def test_shapley_is_efficient_however_few_samples(estimator: str, counts: tuple[int, ...]) -> None:
    game = bent_attention(20, 1)
    for samples in counts:
        sample = sampled(game, samples, 5)
        beta = estimate(shapley(20), sample, estimator)  # type: ignore[arg-type]
        assert beta.units.sum() == pytest.approx(sample.ends[1] - sample.ends[0], abs=1e-6)
        assert np.isfinite(beta.units).all()
        assert np.isfinite(beta.standard_error).all()


def test_plain_lime_is_the_weighted_regression_itself() -> None:
    """With the strata's weights it is least squares on the rows: the correction must vanish."""
    game = sigmoid(9, 2)
    sample, functional = sampled(game, 120, 4), lime(9)
    strata = stratify(sample)
    masks, values = sample.masks, sample.all_values
    of_sampling = np.concatenate([[1, 1], strata.weight, strata.weight])
    root = np.sqrt(functional.law[masks.sum(1)] * of_sampling)
    design = np.concatenate([np.ones((len(masks), 1)), masks], 1)
    expected = np.linalg.lstsq(design * root[:, None], values * root, rcond=None)[0][1:]
    np.testing.assert_allclose(estimate(functional, sample, "plain").units, expected, atol=1e-10)


def test_auto_takes_the_surrogate_on_attention_and_the_plain_one_on_a_sum() -> None:
    values = (np.arange(16) - 6.0) ** 3
    weights = np.exp(np.arange(16) / 4)
    attention = Formula(16, lambda z: z @ values / (1 + z @ weights))
    assert estimate(lime(16), sampled(attention, 400, 0)).estimator == "surrogate"
    assert estimate(lime(16), sampled(additive(16, 0), 400, 0)).estimator == "plain"


def test_auto_looks_at_the_errors_of_all_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum of their squares decides, if it is clear. The enemies: the smallest of them, and the
    largest; a choice by chance between two that are about as good.
    """
    from whence.games import estimating

    def answer(name: str, errors: list[float]) -> Callable[..., Estimate]:
        return lambda *_: Estimate(np.zeros(3), np.array(errors), name, None)

    sample = sampled(sigmoid(3, 0), 2**3, 0)
    monkeypatch.setattr(estimating, "may_fit_by_chance", lambda _: False)
    for plain, surrogate, better in (
        ([0.5, 0.5, 0.5], [0.1, 0.6, 0.9], "plain"),
        ([0.1, 0.6, 0.9], [0.5, 0.5, 0.5], "surrogate"),
        ([0.0, 0.0, 0.8], [0.7, 0.7, 0.7], "plain"),
        ([0.7, 0.7, 0.7], [0.0, 0.0, 0.8], "surrogate"),
        ([0.5, 0.5, 0.5], [0.53, 0.53, 0.53], "surrogate"),
        ([0.5, 0.5, 0.5], [0.57, 0.57, 0.57], "plain"),
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], "plain"),
    ):
        monkeypatch.setattr(estimating, "plain", answer("plain", plain))
        monkeypatch.setattr(estimating, "with_surrogate", answer("surrogate", surrogate))
        assert estimate(shapley(3), sample).estimator == better


def test_a_standard_error_is_the_textbooks_of_strata_widened_by_students_t() -> None:
    """By hand: two strata of 3 and 5 parts, a quarter and nothing of which was drawn.

    n² (1 − f) s²/n of each; t at Satterthwaite's degrees of freedom. The enemies: the normal
    quantile; no correction for what was drawn; all parts in one stratum.
    """
    rng = np.random.default_rng(0)
    few, more = rng.normal(size=(3, 2)), 4 + rng.normal(size=(5, 2))
    strata = Strata(np.array([0, 0, 0, 1, 1, 1, 1, 1]), np.ones(8), np.array([0.25, 0.0]))
    variances = [9 * 0.75 * few.var(0, ddof=1) / 3, 25 * more.var(0, ddof=1) / 5]
    total = variances[0] + variances[1]
    freedom = total**2 / (variances[0] ** 2 / 2 + variances[1] ** 2 / 4)
    widening = stats.t.ppf(0.975, freedom) / stats.norm.ppf(0.975)
    found = standard_error(strata, np.concatenate([few, more]))
    np.testing.assert_allclose(found, np.sqrt(total) * widening, rtol=1e-9)
    assert (widening > 1.1).all()


def test_a_surrogate_that_knows_nothing_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unbiased whatever the surrogate: here it is noise, far larger than the game."""
    from whence.games import estimating
    from whence.games.surrogate import Surrogate

    def noise(masks: np.ndarray, values: np.ndarray, folds: np.ndarray) -> list[Surrogate]:
        rng = np.random.default_rng(int(masks.sum()) * 7919 + int(1e6 * values.sum()) % 7919)
        units = masks.shape[1]

        def surrogate() -> Surrogate:
            return Surrogate(
                constant=1.0,
                linear=rng.normal(size=units),
                n=rng.normal(size=(1, units)),
                nh=rng.normal(size=(1, units)),
                g=np.ones((1, units)),
                gh=np.ones((1, units)),
                n0=np.ones(1),
                d0=np.ones(1),
            )

        return [surrogate() for _ in range(5)]

    monkeypatch.setattr(estimating, "fit", noise)
    estimating._fitted.cache_clear()
    game = sigmoid(10, 1)
    truth = exact(lime(10), game)
    estimates = [
        estimate(lime(10), sampled(game, 102, seed), "surrogate", seed) for seed in range(120)
    ]
    estimating._fitted.cache_clear()
    errors = np.stack([one.units - truth for one in estimates])
    assert np.abs(errors.mean(0) / (errors.std(0) / np.sqrt(200))).max() < 4
    assert 0.90 <= coverage(estimates, truth) <= 0.98


def test_a_pair_is_held_against_the_surrogate_that_has_not_seen_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The surrogate of each fold is a number of its own, so that each residual tells whose it is.

    The enemy takes that of another fold, which was fitted to the pair: its residuals are too small.
    """
    from whence.games import estimating
    from whence.games.surrogate import Surrogate

    none, one = np.zeros((1, 9)), np.ones((1, 9))
    by_fold = [
        Surrogate(10.0 * fold, none[0], none, none, one, one, np.zeros(1), np.ones(1))
        for fold in range(5)
    ]
    residuals: list[np.ndarray] = []
    whole = estimating.contributions

    def noted(functional: Functional, sample: Sample, strata: Strata, of: np.ndarray) -> np.ndarray:
        residuals.append(of)
        return whole(functional, sample, strata, of)

    monkeypatch.setattr(estimating, "fit", lambda *_: by_fold)
    monkeypatch.setattr(estimating, "contributions", noted)
    estimating._fitted.cache_clear()
    sample = sampled(sigmoid(9, 0), 102, 0)
    estimate(shapley(9), sample, "surrogate", seed=3)
    estimating._fitted.cache_clear()
    expected = sample.values - 10.0 * fold_pairs(sample, 3)
    np.testing.assert_allclose(residuals[0], expected, atol=1e-9)


def test_folds_keep_pairs_together_and_sizes_apart() -> None:
    sample = sampled(sigmoid(12, 0), 202, 0)
    folds, size = fold_pairs(sample, 0), sample.halves.sum(1)
    assert folds.shape == size.shape
    for k in np.unique(size):
        counts = np.bincount(folds[size == k], minlength=5)
        assert counts.max() - counts.min() <= 1
