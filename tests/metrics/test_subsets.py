"""Infidelity, sensitivity-n and faithfulness-correlation: random subsets, which they share."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from captum.metrics import infidelity as captum_infidelity
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import pearsonr

from tests.games.made_up import FeatureGame, additive
from whence.core.registry import metrics, settings_of
from whence.metrics.control import Subject, beside_control
from whence.metrics.curves import first_units, steps_of
from whence.metrics.faithfulness_correlation import FaithfulnessCorrelation
from whence.metrics.infidelity import Infidelity
from whence.metrics.sensitivity_n import SensitivityN
from whence.metrics.walks import removals, usual_sizes, walks

FAST = 20  # subsets of each size
ALL = (
    Infidelity(samples=FAST),
    Infidelity(normalise=False, samples=FAST),
    SensitivityN(FAST),
    FaithfulnessCorrelation(samples=FAST),
)
WEIGHTS = np.array([1.0, -2.0, 0.0, 0.5, 4.0])
scores_of_five = arrays(float, 5, elements=st.floats(-1e6, 1e6))


def bent(units: int, seed: int) -> FeatureGame:
    weights, pairs = np.random.default_rng(seed).normal(size=(2, units))
    return FeatureGame(units, lambda z: np.tanh(z @ weights) + (z @ pairs) ** 2 / units)


def subsets_of(game: FeatureGame, sizes: np.ndarray, samples: int = FAST) -> np.ndarray:
    """What is removed, one row each."""
    return first_units(walks(game, samples), sizes).reshape(-1, game.size)


# ---------------------------------------------------------------------- infidelity


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_infidelity_is_captums_on_the_same_perturbations(normalise: bool, seed: int) -> None:
    """The enemies: a scale for each subset, a scale with a constant, half of the square.

    Captum's scale may be negative, which ours may not: of s and -s, it is that with a fit.
    """
    game = bent(7, seed)
    scores = np.random.default_rng([seed, 1]).normal(size=7)
    removed = subsets_of(game, steps_of(7)[1:])
    falls = game.full - game(~removed)
    if normalise:
        scores *= np.sign(removed @ scores @ falls)

    def forward(masks: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(game(masks.numpy() > 0.5))

    def perturb(inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        perturbations = torch.from_numpy(removed.astype(float))
        return perturbations, inputs - perturbations

    peer = captum_infidelity(
        forward,
        perturb,
        torch.ones(1, 7, dtype=torch.float64),
        torch.from_numpy(scores)[None],
        n_perturb_samples=len(removed),
        normalize=normalise,
    )
    ours, of_the_reverse = Infidelity(normalise, FAST)(game, np.array([scores, -scores]))
    assert ours == pytest.approx(float(peer), rel=1e-9)
    if normalise:
        assert of_the_reverse == pytest.approx((falls**2).mean(), rel=1e-9)


def test_infidelity_of_the_truth_is_zero_on_any_scale_but_only_if_normalised() -> None:
    game = additive(WEIGHTS, start=3.0)
    rows = np.array([WEIGHTS, 1000 * WEIGHTS, -WEIGHTS])
    assert Infidelity()(game, rows[:2]) == pytest.approx([0, 0], abs=1e-12)
    plain = Infidelity(normalise=False)(game, rows)
    assert plain[0] == pytest.approx(0, abs=1e-12)
    assert (plain[1:] > 1).all()


def test_scores_of_zero_explain_nothing() -> None:
    """What is left is the mean square of the falls; the enemy: 0/0."""
    game = additive(WEIGHTS)
    falls = game.full - game(~subsets_of(game, steps_of(5)[1:]))
    assert Infidelity(samples=FAST)(game, np.zeros((1, 5))) == pytest.approx([(falls**2).mean()])


def test_the_reverse_of_the_truth_is_worse_than_random_scores() -> None:
    """The enemy: a negative scale, by which it was as good as the truth."""
    game = additive(WEIGHTS)
    random = np.random.default_rng(0).normal(size=(200, 5))
    truth, reverse, nothing, *others = Infidelity()(
        game, np.concatenate([[WEIGHTS, -WEIGHTS, np.zeros(5)], random])
    )
    assert truth < np.mean(others) < reverse
    assert reverse == nothing


@given(scores_of_five)
@settings(max_examples=30)
def test_the_best_scale_is_the_best(scores: np.ndarray) -> None:
    """Brute force beside it: no other factor from 0 has a smaller error."""
    game = bent(5, 2)
    (best,) = Infidelity(samples=FAST)(game, scores[None])
    largest = max(np.abs(scores).max(), 1e-9)
    factors = np.linspace(0, 3, 21)[:, None] / largest
    others = Infidelity(normalise=False, samples=FAST)(game, factors * scores)
    assert best <= others.min() + 1e-12


# ---------------------------------------------------------------------- correlations


def test_correlations_beside_scipy_subset_by_subset() -> None:
    """The enemies: one correlation over subsets of all sizes, which their sizes would lift; and
    the sum of the scores that are kept."""
    game = bent(9, 5)
    scores = np.random.default_rng(8).normal(size=9)
    by_size = []
    for size in range(1, 9):
        removed = subsets_of(game, np.array([size]))
        falls = [game.full - float(game([~row])[0]) for row in removed]
        sums = [sum(scores[row]) for row in removed]
        by_size.append(pearsonr(sums, falls).statistic)
    assert SensitivityN(FAST)(game, scores[None]) == pytest.approx([np.mean(by_size)])
    for share, size in ((0.2, 2), (0.5, 4), (0.01, 1)):
        metric = FaithfulnessCorrelation(share, FAST)
        assert metric(game, scores[None]) == pytest.approx([by_size[size - 1]])


def test_the_truth_of_an_additive_game_is_one_and_its_negative_minus_one() -> None:
    game = additive(WEIGHTS)
    rows = np.array([WEIGHTS, 7 * WEIGHTS + 2, -WEIGHTS])
    # equal sizes: a constant that is added to every score does not matter
    for metric in (SensitivityN(), FaithfulnessCorrelation()):
        assert metric(game, rows) == pytest.approx([1, 1, -1])


@pytest.mark.parametrize("share", [0.0, 1.0, -0.2])
def test_the_share_is_checked(share: float) -> None:
    with pytest.raises(ValueError, match="share is between 0 and 1"):
        FaithfulnessCorrelation(share)


@pytest.mark.parametrize("kind", [Infidelity, SensitivityN, FaithfulnessCorrelation])
def test_samples_are_checked(kind: type) -> None:
    with pytest.raises(ValueError, match="samples is at least 2, not 1"):
        kind(samples=1)


# ---------------------------------------------------------------------- all of them


@given(scores_of_five)
@settings(max_examples=30)
def test_always_a_number(scores: np.ndarray) -> None:
    for metric in ALL:
        for game in (additive(np.zeros(5)), bent(5, 0)):
            assert np.isfinite(metric(game, np.array([scores, np.zeros(5), np.ones(5)]))).all()


@given(scores_of_five, st.sampled_from([0.001, 0.5, 1024.0]))
@settings(max_examples=30)
def test_the_scale_of_the_scores_does_not_matter_where_that_is_said(
    scores: np.ndarray, factor: float
) -> None:
    game = bent(5, 0)
    for metric in (Infidelity(samples=FAST), SensitivityN(FAST), FaithfulnessCorrelation()):
        (value,) = metric(game, scores[None])
        (scaled,) = metric(game, factor * scores[None])
        assert value == pytest.approx(scaled, rel=1e-6, abs=1e-9)


def test_where_the_units_stand_does_not_matter() -> None:
    """On average over walks: the subsets themselves are drawn anew for no order of the units."""
    shuffled = [3, 0, 4, 1, 2]
    scores = np.array([[0.3, -1.0, 0.4, 0.1, 2.0]])
    for kind in (Infidelity, SensitivityN, FaithfulnessCorrelation):
        (value,) = kind(samples=4000)(additive(WEIGHTS), scores)
        (moved,) = kind(samples=4000)(additive(WEIGHTS[shuffled]), scores[:, shuffled])
        assert value == pytest.approx(moved, rel=0.05)


def test_every_subset_of_a_size_is_as_likely() -> None:
    """Ten subsets of two of five units; the enemy: units that stand first leave first."""
    game = additive(WEIGHTS)
    removed = removals(game, 5000, np.array([2])).subsets[:, 0]
    _, counts = np.unique(removed, axis=0, return_counts=True)
    assert len(counts) == 10
    # a count is binomial: 500 ± 21
    assert np.abs(counts - 500).max() < 5 * np.sqrt(5000 * 0.1 * 0.9)


def test_another_text_has_other_walks() -> None:
    one, other = additive(WEIGHTS), additive(WEIGHTS)
    other.digest = b"another"
    assert (walks(one) != walks(other)).any()
    assert (walks(one) == walks(additive(-WEIGHTS))).all()


# ---------------------------------------------------------------------- shared passes


def test_the_three_ask_for_the_same_masks() -> None:
    game, asked = counting(30)
    Infidelity()(game, np.ones((1, 30)))
    of_infidelity = set(asked)
    for metric in (SensitivityN(), FaithfulnessCorrelation()):
        metric(game, np.arange(30.0)[None])
    assert asked == of_infidelity
    assert len(usual_sizes(30)) == 9


def counting(units: int) -> tuple[FeatureGame, set[bytes]]:
    asked: set[bytes] = set()

    def remembered(masks: np.ndarray) -> np.ndarray:
        asked.update(mask.tobytes() for mask in masks)
        return masks.sum(1)

    return FeatureGame(units, remembered), asked


@pytest.mark.parametrize("units", [8, 16, 40])
def test_together_they_cost_a_third_of_what_they_cost_alone(units: int) -> None:
    """Masks that are asked for once, with the control, over those of each metric by itself."""
    scores = np.random.default_rng(0).normal(size=units)
    together, asked_together = counting(units)
    alone = 0
    for name in SHARING:
        metric = settings_of(metrics()[name], {})
        beside_control(metric, name, Subject(together), scores, signed=True)
        by_itself, asked = counting(units)
        beside_control(metric, name, Subject(by_itself), scores, signed=True)
        alone += len(asked)
    assert len(asked_together) / alone <= 0.35


SHARING = (
    "deletion",
    "insertion",
    "support",
    "matter",
    "aopc",
    "comprehensiveness",
    "sufficiency",
    "effective-complexity",
    "monotonicity",
    "sensitivity",
    "non-sensitivity",
    "dummy",
    "infidelity",
    "sensitivity-n",
    "faithfulness-correlation",
    "normalised-comprehensiveness",
    "normalised-sufficiency",
)
