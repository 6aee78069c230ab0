"""What training must do, whatever the variant: identities, closed forms, going on after a stop."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.features.planted import DIM, batches, fit
from tests.tolerance import rounding
from whence.core.errors import InputError, LoadError, SettingsError
from whence.features.fitting import (
    Settings,
    State,
    Statistics,
    begin,
    finished,
    state_from,
    state_tensors,
    step,
)
from whence.features.quality_of_weights import use_of
from whence.features.rules import Threshold
from whence.features.variants import NAMES, variant_named


def settings_of(name: str, **more: object) -> Settings:
    wanted: dict[str, object] = {"k": 3} if variant_named(name).needs_k else {"sparsity": 2.0}
    wanted |= {"size": 40, "steps": 30, "batch": 64, "learning_rate": 3e-3, "dead_after": 256}
    return Settings(name, **(wanted | more))  # type: ignore[arg-type]


def loss_of(state: State, settings: Settings, rows: Tensor) -> float:
    """The loss as a step reports it; the step is taken on a copy."""
    copy = state_from(state_tensors(state), settings)
    return step(copy, settings, rows).loss


# ---------------------------------------------------------------------- the maths


def test_the_loss_of_relu_does_not_depend_on_the_scale_of_a_feature() -> None:
    """E_j, b_j times c and D_j through c: the weighted loss is the same."""
    # a wrong version: the plain L1 norm, which changes
    settings = settings_of("relu", warm_up=0.0)
    state = begin(settings, DIM)
    state.parameters["encoder_bias"] += 0.1
    rows = next(batches(200))
    before = step(state_from(state_tensors(state), settings), settings, rows)
    factors = torch.linspace(0.5, 3, settings.size)
    state.parameters["encoder"] *= factors[:, None]
    state.parameters["encoder_bias"] *= factors
    plain = loss_of(state, settings, rows)  # only half of the change
    state.parameters["decoder"] /= factors[:, None]
    after = step(state, settings, rows)

    most = rounding(settings.size * DIM, before.loss)
    assert after.loss == pytest.approx(before.loss, abs=most)
    assert after.sparsity == pytest.approx(before.sparsity, abs=most)
    assert abs(plain - before.loss) > 10 * most


def test_both_signs_of_every_axis_reconstruct_exactly() -> None:
    """E = D = [I; −I]: no error, and the penalty is λ ‖x‖₁."""
    # a wrong version: a penalty that is a mean over features
    settings = settings_of("relu", size=2 * DIM, warm_up=0.0, sparsity=0.5)
    state = begin(settings, DIM)
    both = torch.cat([torch.eye(DIM), -torch.eye(DIM)])
    for name in ("encoder", "decoder"):
        state.parameters[name].copy_(both)
    rows = next(batches(100))
    report = step(state, settings, rows)
    assert report.reconstruction == pytest.approx(0, abs=1e-9)
    assert report.sparsity == pytest.approx(0.5 * float(rows.abs().sum()) / 100, rel=1e-5)
    assert report.variance_explained == pytest.approx(1, abs=1e-6)
    assert report.l0 == pytest.approx(float((rows != 0).sum()) / 100)


def test_a_huge_penalty_leaves_the_mean() -> None:
    # a wrong version: a decoder bias that is not trained, or not moved back by the centre
    settings = settings_of("relu", sparsity=1e4, steps=300, size=24, learning_rate=0.05)
    rows = next(batches(256)) + torch.linspace(-1, 2, DIM)
    statistics = Statistics(torch.full((DIM,), 0.3), 2.0)  # not the mean: it must be learnt
    state = begin(settings, DIM, statistics)
    report = [step(state, settings, rows) for _ in range(settings.steps)][-1]
    assert report.l0 == 0
    trained = finished(state, settings)
    assert (trained.encode(rows) == 0).all()
    mean = rows.mean(dim=0)
    assert (trained.decode(trained.encode(rows))[0] - mean).abs().max() < 0.02
    assert (torch.full((DIM,), 0.3) - mean).abs().max() > 0.5  # where it began
    assert report.variance_explained == pytest.approx(0, abs=1e-3)


def test_fewer_features_are_active_under_a_larger_penalty() -> None:
    # a wrong version: λ that the step never sees
    active = []
    for sparsity in (0.5, 2.0, 8.0):
        _, reports = fit(settings_of("relu", sparsity=sparsity, steps=120, batch=256))
        active.append(reports[-1].l0)
    assert active[0] > 1.3 * active[1] > 1.3**2 * active[2]


@pytest.mark.parametrize("name", ["topk", "batch-topk", "matryoshka"])
def test_k_features_are_active(name: str) -> None:
    # a wrong version: the largest in size, of which some are negative
    _, reports = fit(settings_of(name))
    assert [report.l0 for report in reports] == [3.0] * 30


def test_topk_has_exactly_k_in_every_row_after_training() -> None:
    settings = settings_of("topk")
    state, _ = fit(settings)
    active = (finished(state, settings).encode(next(batches(500, seed=8))) > 0).sum(dim=1)
    assert active.unique().tolist() == [3]


def test_thresholds_of_jump_relu_move_and_more_under_a_larger_penalty() -> None:
    # a wrong version: a step without a pseudo-derivative, whose thresholds stay
    moved = []
    for sparsity in (0.0, 3.0):
        settings = settings_of("jump-relu", sparsity=sparsity)
        state, _ = fit(settings)
        thresholds = state.parameters["log_threshold"].exp()
        assert (thresholds - settings.threshold).abs().min() > 1e-4
        moved.append(thresholds.mean())
    assert moved[1] > moved[0] + 0.01


def test_variance_explained_is_the_share_of_the_axes_that_are_kept() -> None:
    """Rows with variances 4, 1, 1 on three axes, of which two are rebuilt: 5/6."""
    # a wrong version: squares of the rows themselves below the fraction, mean and all (0.99)
    signs = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * 3)
    rows = signs * torch.tensor([2.0, 1.0, 1.0]) + 10.0
    settings = Settings("relu", size=4, sparsity=0.0)
    state = begin(settings, 3, Statistics(torch.full((3,), 10.0), 1.0))
    first_two = torch.eye(3)[:2]
    for name in ("encoder", "decoder"):
        state.parameters[name].copy_(torch.cat([first_two, -first_two]))
    trained = finished(state, settings)
    report = step(state, settings, rows)
    assert report.variance_explained == pytest.approx(5 / 6, abs=1e-6)
    use = use_of(trained, rows.split(3))
    assert use.variance_explained == pytest.approx(5 / 6, abs=1e-6)
    assert use.l0 == 2
    assert use.frequency.tolist() == [0.5] * 4
    assert use.peak.tolist() == pytest.approx([2.0, 1.0, 2.0, 1.0])


@pytest.mark.parametrize("name", NAMES)
def test_what_was_scaled_and_centred_is_folded_into_the_weights(name: str) -> None:
    # a wrong version: the centre not taken through the encoder
    settings = settings_of(name)
    shift = torch.linspace(-3, 3, DIM)
    statistics = Statistics(shift, 1.7)
    state = begin(settings, DIM, statistics)
    for rows, _ in zip(batches(64), range(5), strict=False):
        step(state, settings, rows / 1.7 + shift)
    folded = finished(state, settings)
    plain = finished(
        State(**{**vars(state), "statistics": Statistics(torch.zeros(DIM), 1.0)}), settings
    )
    x = next(batches(50, seed=7))
    h = x / 1.7 + shift
    most = rounding(4 * DIM, [10.0])
    torch.testing.assert_close(folded.encode(h), plain.encode(x), rtol=0, atol=most)
    back = (folded.decode(folded.encode(h)) - shift) * 1.7
    torch.testing.assert_close(back, plain.decode(plain.encode(x)), rtol=0, atol=most)


def test_the_threshold_of_batch_topk_is_the_mean_of_the_least_activations() -> None:
    # a wrong version: a running mean that begins at 0 and is drawn there
    settings = settings_of("batch-topk", steps=5, learning_rate=1e-9)
    state = begin(settings, DIM)
    least = []
    for rows, _ in zip(batches(64), range(5), strict=False):
        pre = rows @ state.parameters["encoder"].T
        least.append(float(pre.flatten().sort(descending=True).values[3 * 64 - 1]))
        step(state, settings, rows)
    rule = finished(state, settings).rule
    assert isinstance(rule, Threshold)
    weights = torch.tensor([0.99 ** (4 - i) for i in range(5)])
    expected = float((weights * torch.tensor(least)).sum() / weights.sum())
    assert float(rule.thresholds[0]) == pytest.approx(expected, rel=1e-4)


# ---------------------------------------------------------------------- the course of training


def test_the_penalty_rises_and_the_learning_rate_falls() -> None:
    settings = Settings("relu", size=8, sparsity=4.0, steps=100, learning_rate=0.1)
    assert [settings.strength(i) for i in (0, 1, 4, 50)] == pytest.approx([0.8, 1.6, 4.0, 4.0])
    assert [settings.rate(i) for i in (0, 80, 90, 99)] == pytest.approx([0.1, 0.1, 0.05, 0.005])


@pytest.mark.parametrize("name", NAMES)
def test_a_run_that_is_continued_ends_in_the_same_bits(name: str) -> None:
    # a wrong version: moments, counters of idle features or the threshold left out of the file
    settings = settings_of(name, dead_after=128)
    rows = [next(batches(64, seed=seed)) for seed in range(12)]
    whole = begin(settings, DIM)
    for batch in rows:
        step(whole, settings, batch)
    part = begin(settings, DIM)
    for batch in rows[:7]:
        step(part, settings, batch)
    part = state_from({name: t.clone() for name, t in state_tensors(part).items()}, settings)
    for batch in rows[7:]:
        step(part, settings, batch)
    tensors = state_tensors(part)
    for name_of, tensor in state_tensors(whole).items():
        assert torch.equal(tensor, tensors[name_of]), name_of


def test_features_are_dead_after_so_many_rows_and_come_back_with_the_auxiliary_loss() -> None:
    # a wrong version: counters in steps, or an auxiliary loss that is never reached
    settings = settings_of("topk", size=16, dead_after=128, steps=60, learning_rate=1e-2)
    state = begin(settings, DIM)
    begun = state.parameters["encoder_bias"][3] = -0.4
    dead, idle = [], []
    for rows, _ in zip(batches(64), range(60), strict=False):
        dead.append(step(state, settings, rows).dead)
        idle.append(int(state.idle[3]))
    assert idle[:2] == [64, 128]
    assert dead[0] == dead[1] == 0
    assert dead[2] >= 1
    assert float(state.parameters["encoder_bias"][3]) > begun + 1e-3


# ---------------------------------------------------------------------- what is refused


def test_wrong_settings_rows_and_checkpoints_are_refused() -> None:
    with pytest.raises(SettingsError, match="relu needs sparsity"):
        Settings("relu")
    with pytest.raises(SettingsError, match="k is from 1 to the 8 features, not 9"):
        Settings("topk", size=8, k=9)
    with pytest.raises(SettingsError, match="prefixes rise"):
        Settings("matryoshka", size=8, k=2, prefixes=(4, 4, 8))
    with pytest.raises(SettingsError, match="decay is a share"):
        Settings("relu", sparsity=1.0, decay=1.5)

    settings = settings_of("relu")
    state = begin(settings, DIM)
    with pytest.raises(InputError, match="rows of 24 numbers"):
        step(state, settings, torch.zeros(4, 5))
    before = {name: value.clone() for name, value in state_tensors(state).items()}
    broken = next(batches(64))
    broken[5, 2] = torch.nan
    with pytest.raises(InputError, match="not finite at step 0"):
        step(state, settings, broken)
    for name, value in state_tensors(state).items():
        assert torch.equal(value, before[name])

    with pytest.raises(LoadError, match=r"'first\.decoder' is missing"):
        state_from({n: t for n, t in before.items() if n != "first.decoder"}, settings)
    with pytest.raises(LoadError, match="other settings"):
        state_from(before, settings_of("relu", size=41))
    with pytest.raises(InputError, match="all activations are the same"):
        Statistics.of(torch.ones(5, 3))


def test_settings_go_to_json_and_back() -> None:
    settings = Settings("matryoshka", size=8, k=2, prefixes=(4, 8), seed=3)
    assert Settings.from_dict(settings.to_dict()) == settings
