"""Bootstrap over texts: intervals, families of comparisons, and groups."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whence.core.bootstrap import (
    FEWEST_TEXTS,
    groups,
    means,
    means_together,
    pairs_apart,
    ratio_of_sums,
    told_apart,
)


def drawn(texts: int, columns: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(texts, columns))


def test_the_interval_is_that_of_the_definition() -> None:
    """Slowly, a draw at a time; the enemy: percentiles of the means, which are not studentised."""
    values = np.random.default_rng(1).exponential(size=12)
    (mean,) = means(values[:, None], seed=3, draws=400)
    rng = np.random.default_rng([3, 11, 12])
    counts = rng.multinomial(12, np.full(12, 1 / 12), size=400)
    error = values.std(ddof=1) / np.sqrt(12)
    statistics, of_draws = [], []
    for count in counts:
        draw = np.repeat(values, count)
        of_draws.append(draw.mean())
        statistics.append((draw.mean() - values.mean()) / (draw.std(ddof=1) / np.sqrt(12)))
    low, high = np.quantile(statistics, [0.025, 0.975])
    expected = (values.mean() - high * error, values.mean() - low * error)
    np.testing.assert_allclose(mean.interval, expected, rtol=1e-9)
    percentiles = np.quantile(of_draws, [0.025, 0.975])
    assert abs(percentiles[1] - expected[1]) > 0.05 * error


def test_intervals_of_skewed_values_keep_their_level() -> None:
    """Of 600 samples of an exponential the truth lies in .93 to .97; percentiles hold .90."""
    values = np.random.default_rng(5).exponential(size=(40, 600))
    inside = [m.interval[0] <= 1 <= m.interval[1] for m in means(values) if m.interval]
    assert 0.93 <= np.mean(inside) <= 0.97


def test_intervals_together_hold_all_at_once() -> None:
    """Twelve means of 300 samples each: all twelve are held in about 95 of 100, not in 54."""
    rng = np.random.default_rng(7)
    together, alone = [], []
    for number in range(300):
        values = rng.normal(size=(40, 12))
        for found, intervals in ((together, means_together), (alone, means)):
            every = intervals(values, seed=number, draws=500)
            found.append(all(m.interval[0] <= 0 <= m.interval[1] for m in every if m.interval))
    assert 0.93 <= np.mean(together) <= 0.98
    assert np.mean(alone) < 0.7


def test_few_texts_have_a_mean_and_no_interval() -> None:
    (mean,) = means(np.array([[1.0], [3.0], [np.nan]]))
    assert (mean.mean, mean.interval, mean.texts) == (2.0, None, 2)
    (none,) = means(np.full((3, 1), np.nan))
    assert none.texts == 0
    assert np.isnan(none.mean)


def test_equal_values_have_an_interval_of_no_width() -> None:
    (mean,) = means(np.full((30, 1), 0.1))
    assert mean.interval == pytest.approx((0.1, 0.1), abs=1e-15)


def test_one_text_that_differs_gives_no_interval_of_astronomic_width() -> None:
    """Others equal but for rounding; the enemy: draws without the one divide by that rounding."""
    values = np.array([1.0, 1.0, 1.0, 0.89, 1.0, 1.0, 1.0, 1.0])
    noise = 1e-8 * np.random.default_rng(0).normal(size=8)
    plain, noisy = means(np.stack([values, values + noise], axis=1))
    assert plain.interval
    assert noisy.interval
    assert noisy.interval == pytest.approx(plain.interval, abs=1e-6)
    assert noisy.interval[1] - noisy.interval[0] < 0.5


def test_what_was_not_measured_changes_nothing_of_other_columns() -> None:
    values = drawn(40, 3)
    with_gaps = values.copy()
    with_gaps[:20, 1] = np.nan
    alone, beside = means(values), means(with_gaps)
    assert alone[0] == beside[0]
    assert beside[1].texts == 20
    assert beside[1].mean == pytest.approx(values[20:, 1].mean())


def test_the_whole_family_errs_in_five_of_a_hundred() -> None:
    """Ten equal methods, 300 times; without a correction it would be about .6."""
    false_claims = 0
    for seed in range(300):
        level = drawn(40, 1, seed)
        noise = drawn(40, 10, seed + 1000)
        letters = groups(level + noise, higher_is_better=True, seed=seed, draws=300)
        false_claims += any(letter != "a" for letter in letters)
    assert 3 <= false_claims <= 28  # 15 ± 3.5 standard deviations


def with_a_twin(rng: np.random.Generator, texts: int, methods: int) -> np.ndarray:
    """Equal methods, and one that gives nearly what the first gives, on all texts but one."""
    values = rng.normal(size=(texts, 1)) + 0.5 * rng.normal(size=(texts, methods))
    twin = values[:, :1] + 0.01 * rng.normal(size=(texts, 1))
    twin[rng.integers(texts)] += rng.choice([-1, 1])
    return np.concatenate([values, twin], axis=1)


def test_a_pair_that_is_nearly_equal_hides_no_other_difference() -> None:
    """The enemy: its statistic of 12 is the largest of all, and a t of −8 is not told apart."""
    values = with_a_twin(np.random.default_rng(3), 40, 3)
    noise = np.random.default_rng(4).normal(scale=0.5, size=40)
    bad = values[:, 1] - 0.7 + noise - noise.mean()
    gap = bad - values[:, 1]
    assert -11 < gap.mean() / (gap.std(ddof=1) / np.sqrt(40)) < -7
    letters = groups(np.column_stack([values, bad]), higher_is_better=True)
    assert letters[-1] == "b"
    assert set(letters[:-1]) == {"a"}


def test_a_pair_that_is_nearly_equal_is_not_told_apart_itself() -> None:
    """Nor is any other of equal methods, in more than five of a hundred."""
    false_claims = 0
    for seed in range(300):
        values = with_a_twin(np.random.default_rng([seed, 5]), 40, 4)
        letters = groups(values, higher_is_better=True, seed=seed, draws=300)
        false_claims += any(letter != "a" for letter in letters)
    assert false_claims <= 28  # 15 ± 3.5 standard deviations


def test_what_was_told_apart_makes_room_for_what_is_nearer() -> None:
    """The enemy: one step, in which twenty clear pairs stand in the way of the last one."""
    noise = np.random.default_rng(8).normal(size=(40, 21))
    noise = (noise - noise.mean(0)) / noise.std(0, ddof=1)  # so that t is what it is below
    t = np.array([9.0] * 20 + [2.4])
    differences = noise + t / np.sqrt(40)
    assert told_apart(differences).tolist() == [True] * 20 + [False]
    assert pairs_apart(differences).tolist() == [True] * 21


def test_a_method_is_never_better_than_itself_under_another_seed() -> None:
    """200 texts, whose level differs far more than the method's own noise."""
    rng = np.random.default_rng(0)
    level = rng.normal(scale=5, size=(200, 1))
    runs = level + rng.normal(scale=0.1, size=(200, 2))
    assert groups(runs, higher_is_better=True) == ["a", "a"]
    # and a small true difference is seen, as methods are compared text by text: enemy, unpaired
    better = runs + np.array([0.0, 0.05])
    assert groups(better, higher_is_better=True) == ["b", "a"]
    assert groups(better, higher_is_better=False) == ["a", "b"]
    assert groups(better[:, ::-1], higher_is_better=False) == ["b", "a"]


def test_equal_columns_are_never_told_apart() -> None:
    column = drawn(50, 1)
    assert groups(np.repeat(column, 4, axis=1), higher_is_better=True) == ["a"] * 4
    # the last digit of numbers near one; the enemy: a difference without spread is always apart
    assert not told_apart(np.full((50, 2), 1e-16), scale=1.0).any()
    off_by_a_digit = np.concatenate([column, column + 1e-15], axis=1)
    assert groups(off_by_a_digit, higher_is_better=True) == ["a", "a"]


def test_too_few_texts_tell_nothing() -> None:
    far = np.array([[0.0, 9.0]] * (FEWEST_TEXTS - 1))
    assert groups(far, higher_is_better=True) == ["", ""]
    assert groups(np.array([[0.0, 9.0]] * FEWEST_TEXTS), higher_is_better=True) == ["b", "a"]


def test_a_method_without_values_has_no_letter() -> None:
    values = drawn(20, 3)
    values[:, 1] = np.nan
    assert groups(values, higher_is_better=True)[1] == ""


@given(st.integers(2, 7), st.data())
def test_letters_are_shared_by_exactly_those_that_are_not_told_apart(
    methods: int, data: st.DataObject
) -> None:
    """Piepho's display: the enemy is one letter for a chain a–b–c whose ends differ."""
    from whence.core.bootstrap import _letters

    pairs = list(combinations(range(methods), 2))
    differ = set(data.draw(st.lists(st.sampled_from(pairs), unique=True)))
    letters = _letters(methods, list(range(methods)), differ)
    for i, j in pairs:
        shares = bool(set(letters[i]) & set(letters[j]))
        assert shares == ((i, j) not in differ)
    assert "a" in letters[0]
    # and no letter says what another one says already
    every = [
        {m for m in range(methods) if letter in letters[m]} for letter in set("".join(letters))
    ]
    assert not any(one <= other for one in every for other in every if one is not other)


def test_draws_of_equal_texts_do_not_blow_up_the_interval() -> None:
    """All texts but one get the same: a third of the draws miss that one, and have no spread.

    A version that takes the rounding errors of such a draw for its spread has intervals of millions
    in some of these, as the mean is not a round number.
    """
    for texts in range(6, 40):
        for other in (0.1, 0.3, 0.7):
            values = np.ones((texts, 1))
            values[0] = other
            interval = means(values)[0].interval
            assert interval is not None
            assert np.abs(interval).max() < 100


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_intervals_are_in_the_units_of_the_values(scale: float) -> None:
    """The enemy: rounding that is told by a size that no value has."""
    values = np.ones((12, 1))
    values[0] = 0.3
    plain, scaled = means(values)[0], means(scale * values)[0]
    assert plain.interval
    assert scaled.interval
    assert np.array(scaled.interval) / scale == pytest.approx(plain.interval, rel=1e-6)
    apart = told_apart(scale * np.stack([drawn(30, 1)[:, 0] + 3, drawn(30, 1, 1)[:, 0]], axis=1))
    assert apart.tolist() == [True, False]


def test_no_texts_have_no_mean_and_tell_nothing() -> None:
    (nothing,) = means(np.zeros((0, 1)))
    assert (nothing.interval, nothing.texts) == (None, 0)
    assert not told_apart(np.zeros((0, 2))).any()


def test_a_ratio_of_sums_with_equal_parts_below_is_a_mean() -> None:
    # would catch: the mean of the ratios, which differs as soon as texts are of unequal length
    values = np.random.default_rng(0).normal(2.0, 1.0, 30)
    ratio = ratio_of_sums(3 * values, np.full(30, 3.0))
    (mean,) = means(values[:, None])
    assert ratio.mean == pytest.approx(mean.mean)
    assert ratio.interval == pytest.approx(mean.interval)
    unequal = ratio_of_sums(np.array([1.0, 1.0, 8.0]), np.array([1.0, 1.0, 2.0]))
    assert unequal.mean == 2.5
    assert ratio_of_sums(np.zeros(3), np.zeros(3)).interval is None
