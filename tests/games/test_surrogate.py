"""The ratio-of-sums surrogate: its formula, its gradients, what it must recover.

And what the surrogate of a fold must not know.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import Float
from scipy.stats import multivariate_normal

from whence.core.errors import InputError
from whence.games import surrogate
from whence.games.surrogate import (
    Scratch,
    Surrogate,
    error_gradient,
    evidence_gradient,
    fit,
    with_one,
)

FIELDS = ("constant", "linear", "n", "nh", "g", "gh", "n0", "d0")


def masks_of(count: int, units: int, seed: int = 0) -> np.ndarray:
    """Sizes uniform, as LIME draws them."""
    rng = np.random.default_rng(seed)
    rank = rng.random((count, units)).argsort(1).argsort(1)
    return rank < rng.integers(0, units + 1, size=(count, 1))


def attention(units: int, heads: int, seed: int) -> Surrogate:
    """A game inside the class: heads of one attention layer.

    Removed units are seen as a mask token of weight 0.3.
    """
    rng = np.random.default_rng(seed)
    g = np.exp(1.5 * rng.normal(size=(heads, units)))
    n = g * rng.normal(size=(heads, units))
    return Surrogate(
        constant=0.3,
        linear=np.zeros(units),
        n=n,
        nh=0 * n,
        g=g,
        gh=np.full_like(g, 0.3),
        n0=np.zeros(heads),
        d0=np.ones(heads),
    )


def out_of_fold(
    fitted: list[Surrogate], masks: np.ndarray, folds: np.ndarray
) -> Float[np.ndarray, " mask"]:
    return np.stack([h(masks) for h in fitted])[folds, np.arange(len(masks))]


def r2(values: np.ndarray, fitted: np.ndarray) -> float:
    return float(1 - np.square(values - fitted).mean() / values.var())


def same_bits(one: Surrogate, other: Surrogate) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in FIELDS)


def slope_by_differences(function, theta: np.ndarray, step: float = 1e-6) -> np.ndarray:
    slopes = []
    for move in step * np.eye(len(theta)):
        change = function(theta + move) - function(theta - move)
        slopes.append(change / (2 * step))
    return np.array(slopes)


# ---------------------------------------------------------------------- the formula


def test_a_value_is_the_formula_written_out() -> None:
    rng = np.random.default_rng(1)
    n, nh = rng.normal(size=(2, 3, 4))
    g, gh = np.exp(rng.normal(size=(2, 3, 4)))
    linear = rng.normal(size=4)
    n0 = rng.normal(size=3)
    d0 = np.exp(rng.normal(size=3))
    h = Surrogate(0.7, linear, n, nh, g, gh, n0, d0)
    masks = masks_of(20, 4)
    for mask, value in zip(masks, h(masks), strict=True):
        total = h.constant
        for i in range(4):
            if mask[i]:
                total += linear[i]
        for t in range(3):
            numerator, denominator = n0[t], d0[t]
            for i in range(4):
                if mask[i]:
                    numerator += n[t, i]
                    denominator += g[t, i]
                else:
                    numerator += nh[t, i]
                    denominator += gh[t, i]
            total += numerator / denominator
        # Kept and removed exchanged would fail.
        assert value == pytest.approx(total, rel=1e-12)


# ---------------------------------------------------------------------- the gradients


def test_the_slope_of_the_error_is_that_of_finite_differences() -> None:
    rng = np.random.default_rng(2)
    terms, units, folds = 2, 3, 2
    z = with_one(np.where(masks_of(11, units), 1.0, -1.0))
    y = rng.normal(size=(folds, 11))
    share = rng.random((folds, 11))
    theta = rng.normal(size=(folds, 2 * terms * units + terms + units + 1))
    scratch = Scratch()
    _, slope = error_gradient(theta, terms, z, y, share, scratch)

    def error(flat: np.ndarray) -> float:
        return error_gradient(flat.reshape(theta.shape), terms, z, y, share, scratch)[0].sum()

    by_differences = slope_by_differences(error, theta.ravel())
    assert slope.ravel() == pytest.approx(by_differences, rel=1e-6, abs=1e-8)


def test_the_error_is_that_of_the_surrogate_written_out() -> None:
    rng = np.random.default_rng(6)
    terms, units = 2, 3
    masks = masks_of(11, units)
    y = rng.normal(size=(1, 11))
    share = rng.random((1, 11))
    a, n = rng.normal(size=(2, terms, units))
    n0, linear, constant = rng.normal(size=terms), rng.normal(size=units), rng.normal(size=1)
    theta = np.concatenate([a.ravel(), n.ravel(), n0, linear, constant])[None]

    # A denominator is divided by 1 + units there, and z is ±1 where a mask is 1 and 0.
    h = Surrogate(
        constant=float(constant[0] - linear.sum()),
        linear=2 * linear,
        n=(1 + units) * n,
        nh=-(1 + units) * n,
        g=np.exp(a),
        gh=np.exp(-a),
        n0=(1 + units) * n0,
        d0=np.ones(terms),
    )
    expected = (share[0] * (h(masks) - y[0]) ** 2).sum() / 2
    z = with_one(np.where(masks, 1.0, -1.0))
    loss, _ = error_gradient(theta, terms, z, y, share, Scratch())
    # A constant of the numerators or of the line in the wrong column would fail.
    assert loss[0] == pytest.approx(expected, rel=1e-12)


def evidence_case(
    terms: int = 2, units: int = 3, rows: int = 9
) -> tuple[np.ndarray, np.ndarray, int, np.ndarray, np.ndarray, Scratch]:
    rng = np.random.default_rng(3)
    z = with_one(np.where(masks_of(rows, units), 1.0, -1.0))
    start, theta = rng.normal(size=(2, terms * units + 2 * units + terms + 2))
    return theta, start, terms, z, rng.normal(size=rows), Scratch()


# The triangle of 9 rows is inverted by LAPACK, that of 150 by halves, and by odd halves.
@pytest.mark.parametrize("rows", [9, 150])
def test_the_slope_of_the_evidence_is_that_of_finite_differences(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surrogate, "JITTER", 0.0)  # whose slope is left out on purpose
    theta, *rest = evidence_case(rows=rows)
    by_differences = slope_by_differences(lambda x: evidence_gradient(x, *rest)[0], theta)
    _, slope = evidence_gradient(theta, *rest)
    assert slope == pytest.approx(by_differences, rel=1e-5, abs=1e-7)


def test_the_evidence_is_the_normal_density_of_the_features_written_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(surrogate, "JITTER", 0.0)
    theta, start, terms, z_and_one, y, scratch = evidence_case()
    z = z_and_one[:, :-1]
    rows, units = z.shape
    a = theta[: terms * units].reshape(terms, units)
    logs = np.split(theta[terms * units :], np.cumsum([3, 3, 2, 1]))
    numerator, linear, term, constant, noise = (np.exp(log) for log in logs)

    covariance = np.ones((rows, rows)) + noise * np.eye(rows)
    for i in range(units):
        covariance += linear[i] * np.outer(z[:, i], z[:, i])
    for t in range(terms):
        weight = np.where(z > 0, np.exp(a[t]), np.exp(-a[t]))
        d = (1 + weight.sum(1)) / (1 + units)
        covariance += term[t] * constant / np.outer(d, d)
        for i in range(units):
            covariance += term[t] * numerator[i] * np.outer(z[:, i] / d, z[:, i] / d)

    normal = multivariate_normal(np.zeros(rows), covariance)
    density = -normal.logpdf(y) - rows * np.log(2 * np.pi) / 2
    away = (theta - start)[terms * units :]
    prior = (a**2).sum() / 2 + surrogate.HYPER * (away**2).sum() / 2
    loss, _ = evidence_gradient(theta, start, terms, z_and_one, y, scratch)
    assert loss == pytest.approx(density + prior)


@pytest.mark.parametrize("rows", [1, 64, 65, 131, 240])
def test_an_inverse_by_halves_is_the_inverse(rows: int) -> None:
    scratch = Scratch()
    # Twice, as the second time meets what the first has left in the scratch arrays.
    for seed in range(2):
        features = np.random.default_rng(seed).normal(size=(rows, rows + 5))
        k = features @ features.T + np.eye(rows)
        inverse, half_log_determinant = surrogate._inverse(k.copy(), scratch) or (k, np.nan)
        # Each entry is of rounding size times the condition of K: a few thousand.
        assert inverse @ k == pytest.approx(np.eye(rows), abs=1e-9)
        assert half_log_determinant == pytest.approx(np.linalg.slogdet(k)[1] / 2)
        assert np.array_equal(inverse, inverse.T)


# ---------------------------------------------------------------------- what it recovers


@pytest.mark.parametrize(("heads", "units"), [(1, 10), (2, 12)])
def test_a_game_of_the_class_is_recovered(heads: int, units: int) -> None:
    game = attention(units, heads, seed=1)
    masks = masks_of(400, units)
    folds = np.arange(400) % 4
    values = game(masks)
    line = out_of_fold(fit(masks, values, folds, terms=0), masks, folds)
    ratios = out_of_fold(fit(masks, values, folds), masks, folds)
    assert r2(values, line) < 0.92  # a line would not do
    assert r2(values, ratios) > 0.9995


@given(
    st.integers(1, 12),
    st.integers(0, 10**6),
    st.sampled_from([1e-6, 1.0, 1e6]),
    st.sampled_from([0.0, -3.0, 1e3]),
)
@settings(max_examples=10, deadline=None)
def test_an_additive_game_is_recovered(units: int, seed: int, scale: float, shift: float) -> None:
    slope = scale * np.random.default_rng(seed).normal(size=units)
    masks = masks_of(6 * units + 12, units, seed)
    values = masks @ slope + scale * shift
    folds = np.arange(len(masks)) % 3
    fitted = out_of_fold(fit(masks, values, folds), masks, folds)
    assert fitted == pytest.approx(values, rel=0, abs=1e-5 * np.abs(slope).max())


def test_of_noise_next_to_nothing_is_learnt() -> None:
    masks, folds = masks_of(200, 10), np.arange(200) % 4
    values = np.random.default_rng(0).normal(size=200)
    fitted = out_of_fold(fit(masks, values, folds), masks, folds)
    # Ratios fitted to it whatever comes: below −0.3.
    assert r2(values, fitted) > -0.15


# ---------------------------------------------------------------------- what it does not know


@given(st.integers(0, 3), st.sampled_from([-1.0, 0.0, 7.5, 1e12, -1e200]))
@settings(max_examples=5, deadline=None)
def test_no_bit_of_a_surrogate_comes_from_its_own_fold(fold: int, other: float) -> None:
    masks, folds = masks_of(40, 5), np.random.default_rng(4).integers(0, 4, 40)
    values = attention(5, 2, 5)(masks)
    changed = np.where(folds == fold, other, values)
    before = fit(masks, values, folds)
    after = fit(masks, changed, folds)
    assert same_bits(before[fold], after[fold])
    assert not same_bits(before[fold - 1], after[fold - 1])  # the change was seen where it may be


def test_the_same_input_gives_the_same_surrogates_and_leaves_the_global_generator_alone() -> None:
    masks, folds = masks_of(50, 6), np.arange(50) % 5
    values = attention(6, 2, 1)(masks)
    np.random.seed(1)
    first = fit(masks, values, folds)
    state = np.random.get_state()[1]
    assert np.random.RandomState(1).get_state()[1].tolist() == state.tolist()
    np.random.seed(2)
    second = fit(masks, values, folds)
    for one, other in zip(first, second, strict=True):
        assert same_bits(one, other)


@pytest.mark.parametrize("scale", [2.0**-20, 2.0**20, 2.0**600])
def test_the_scale_of_the_values_is_nothing_but_a_scale(scale: float) -> None:
    masks, folds = masks_of(60, 6), np.arange(60) % 3
    values = attention(6, 2, 1)(masks)
    fitted = fit(masks, values, folds)
    scaled = fit(masks, scale * values, folds)
    for one, other in zip(fitted, scaled, strict=True):
        for name in FIELDS:
            factor = 1.0 if name in ("g", "gh", "d0") else scale
            assert np.array_equal(factor * getattr(one, name), getattr(other, name)), name


def test_a_shift_of_the_values_only_shifts_the_surrogate() -> None:
    masks, folds = masks_of(150, 8), np.arange(150) % 3
    values = attention(8, 2, 1)(masks)
    plain = out_of_fold(fit(masks, values, folds), masks, folds)
    shifted = out_of_fold(fit(masks, 1000 * values + 50, folds), masks, folds)
    assert shifted - 50 == pytest.approx(1000 * plain, rel=0, abs=1e-3 * 1000 * values.std())


# ---------------------------------------------------------------------- the edges


@given(st.integers(1, 12), st.integers(1, 5), st.integers(1, 4), st.integers(0, 8), st.data())
@settings(max_examples=25, deadline=None)
def test_few_masks_repeated_masks_and_any_values_give_numbers(
    count: int, units: int, folds: int, terms: int, data: st.DataObject
) -> None:
    def drawn(one: st.SearchStrategy) -> np.ndarray:
        return np.array(data.draw(st.lists(one, min_size=count, max_size=count)))

    masks = drawn(st.lists(st.booleans(), min_size=units, max_size=units))
    values = drawn(st.floats(-1e200, 1e200))
    fold_of = drawn(st.integers(0, folds - 1))
    for h in fit(masks, values, fold_of, terms):
        assert np.isfinite(h(masks)).all()
        assert min(h.g.min(initial=1), h.gh.min(initial=1), h.d0.min(initial=1)) > 0


@pytest.mark.parametrize("value", [0.0, 7.3, -1e9, 1e-9])
def test_values_that_do_not_vary_give_their_mean(value: float) -> None:
    masks = masks_of(20, 4)
    for h in fit(masks, np.full(20, value), np.arange(20) % 5):
        assert h(masks) == pytest.approx(np.full(20, value), rel=1e-12)
        assert not h.linear.any()


def test_values_of_one_repeated_mask_give_their_mean() -> None:
    values = np.random.default_rng(0).normal(size=40)
    masks, folds = np.tile([True, False, True], (40, 1)), np.arange(40) % 2
    first, _ = fit(masks, values, folds)
    assert first(masks)[0] == pytest.approx(values[folds != 0].mean(), abs=1e-9)


def test_a_fold_that_holds_everything_has_nothing_to_learn_from() -> None:
    (h,) = fit(masks_of(5, 3), np.arange(5.0), np.zeros(5, dtype=int))
    assert not h(masks_of(5, 3)).any()


def test_long_texts_get_fewer_terms() -> None:
    masks = masks_of(40, 300)
    fitted = fit(masks, masks[:, :5].sum(1) / 5.0, np.arange(40) % 2)
    assert [h.n.shape for h in fitted] == [(3, 300)] * 2


@pytest.mark.parametrize(
    ("masks", "values", "folds", "terms", "says"),
    [
        (3, [1.0, np.nan, 2.0], [0, 1, 0], 8, "1 of 3 values are not finite"),
        (3, [1.0, np.inf, np.inf], [0, 1, 0], 8, "2 of 3 values are not finite"),
        (0, [], [], 8, "got 0 masks"),
        (3, [1.0, 2.0, 3.0], [0, -1, 0], 8, "not a fold -1"),
        (3, [1.0, 2.0, 3.0], [0, 1, 0], -1, "-1 terms"),
    ],
)
def test_what_cannot_be_fitted_is_said(
    masks: int, values: list[float], folds: list[int], terms: int, says: str
) -> None:
    kept = np.ones((masks, 2), dtype=bool)
    with pytest.raises(InputError, match=says):
        fit(kept, np.array(values, dtype=float), np.array(folds, dtype=int), terms)
