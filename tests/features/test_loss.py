"""Losses and their gradients are those of autograd on the papers' formulas, dense and sparse."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.features.slow_losses import slow_loss
from whence.features import choosing
from whence.features.fitting import State, begin
from whence.features.groups import Group
from whence.features.loss import Moment
from whence.features.settings import Settings
from whence.features.variants import NAMES, variant_named

ROWS, DIM, SIZE = 40, 6, 20
TIGHT: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-10}


def settings_of(name: str, **more: object) -> Settings:
    wanted = {"k": 3} if variant_named(name).needs_k else {"sparsity": 0.7}
    return Settings(name, size=SIZE, warm_up=0.0, auxiliary_k=2, **wanted, **more)  # type: ignore[arg-type]


def state_of(settings: Settings) -> State:
    """Parameters in float64, of which none has the value that it begins with."""
    state = begin(settings, DIM, dtype=torch.float64)
    generator = torch.Generator().manual_seed(3)
    for value in state.parameters.values():
        value += 0.3 * torch.randn(value.shape, generator=generator, dtype=torch.float64)
    return state


def rows_of() -> Tensor:
    generator = torch.Generator().manual_seed(4)
    return torch.randn(ROWS, DIM, generator=generator, dtype=torch.float64)


def gradients(settings: Settings, dead: Tensor) -> tuple[float, dict[str, Tensor]]:
    """The loss by whence, and the gradient of every parameter."""
    state, variant = state_of(settings), variant_named(settings.variant)
    leaves = {name: value.requires_grad_() for name, value in state.parameters.items()}
    moment = Moment(settings, leaves, state.kept, settings.strength(10), dead, Group())
    value = 0.0
    for part in variant.parts(rows_of(), moment):
        total = variant.loss(part, moment).total / ROWS
        total.backward()
        value += float(total.detach())
    found = {}
    for name, leaf in leaves.items():
        found[name] = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
    return value, found


def slow_gradients(settings: Settings, dead: Tensor) -> tuple[float, dict[str, Tensor]]:
    leaves = {n: value.requires_grad_() for n, value in state_of(settings).parameters.items()}
    total = slow_loss(rows_of(), leaves, settings, dead)
    wanted = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    found = {}
    for name, gradient in zip(leaves, wanted, strict=True):
        found[name] = torch.zeros_like(leaves[name]) if gradient is None else gradient
    return float(total.detach()), found


def none_dead() -> Tensor:
    return torch.zeros(SIZE, dtype=torch.bool)


@pytest.mark.parametrize("dense_from", [0.0, 1.1], ids=["dense", "sparse"])
@pytest.mark.parametrize("block", [2**23, 7 * SIZE], ids=["one block", "blocks of seven rows"])
@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_those_of_autograd(
    name: str, block: int, dense_from: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a wrong version: the gradient of a direction's length left out of relu's penalty;
    # the gates' reconstruction of gated teaching its decoder too
    monkeypatch.setattr(choosing, "DENSE_FROM", dense_from)
    monkeypatch.setattr(choosing, "BLOCK", block)
    monkeypatch.setattr(choosing, "FEWEST_ROWS", 1)
    monkeypatch.setattr(choosing, "MOST_ENTRIES", 150)  # of about 400: several parts of blocks
    settings = settings_of(name)
    value, ours = gradients(settings, none_dead())
    wanted, theirs = slow_gradients(settings, none_dead())

    assert value == pytest.approx(wanted, rel=1e-12)
    for parameter, gradient in ours.items():
        if parameter == "log_threshold":  # autograd has none of a step
            continue
        torch.testing.assert_close(gradient, theirs[parameter], **TIGHT, msg=parameter)
        assert gradient.abs().max() > 1e-3, parameter


@pytest.mark.parametrize("name", ["topk", "batch-topk", "matryoshka"])
def test_the_auxiliary_loss_gives_dead_features_an_encoder_gradient(name: str) -> None:
    # a wrong version: a published trainer, whose auxiliary loss leaves the encoder without any
    settings = settings_of(name)
    dead = none_dead()
    dead[[2, 5, 11]] = True
    value, ours = gradients(settings, dead)
    wanted, theirs = slow_gradients(settings, dead)
    assert value == pytest.approx(wanted, rel=1e-12)
    for parameter, gradient in ours.items():
        torch.testing.assert_close(gradient, theirs[parameter], **TIGHT, msg=parameter)

    _, without = gradients(settings, none_dead())
    for parameter in ("encoder", "encoder_bias", "decoder"):
        change = (ours[parameter] - without[parameter]).reshape(SIZE, -1).norm(dim=1)
        assert (change[dead] > 1e-4).all(), parameter
        assert (change[~dead] < 1e-12).all(), parameter  # the error is a target, and no more


def test_thresholds_move_by_the_formula_of_the_paper() -> None:
    # a wrong version: the reconstruction's part without θ/ε, or entries beyond the bandwidth
    settings = settings_of("jump-relu", bandwidth=0.4, threshold=0.5)
    _, ours = gradients(settings, none_dead())

    p, x = state_of(settings).parameters, rows_of()
    theta = p["log_threshold"].exp()
    z = x @ p["encoder"].T + p["encoder_bias"]
    a = torch.where(z > theta, z, 0)
    e = x - a @ p["decoder"] - p["decoder_bias"]
    expected = torch.zeros(SIZE, dtype=torch.float64)
    near = 0
    for i in range(ROWS):
        for j in range(SIZE):
            if abs(z[i, j] - theta[j]) < settings.bandwidth / 2:
                of_activation = -2 * e[i] @ p["decoder"][j]
                expected[j] -= theta[j] / settings.bandwidth * of_activation
                expected[j] -= settings.sparsity / settings.bandwidth  # type: ignore[operator]
                near += 1
    assert near > 20
    expected *= theta / ROWS  # of the logarithm
    torch.testing.assert_close(ours["log_threshold"], expected, **TIGHT)


def test_the_straight_through_gradient_is_that_of_the_expected_loss() -> None:
    """Rows spread evenly, and a narrow window: it is the slope of the mean loss in θ."""
    # a wrong version: the opposite sign, which drives thresholds the wrong way
    settings = Settings(
        "jump-relu", size=1, sparsity=0.3, warm_up=0.0, bandwidth=0.01, threshold=0.5
    )
    variant = variant_named("jump-relu")
    x = torch.linspace(-2, 2, 400_001, dtype=torch.float64)[:, None]

    def mean_loss(threshold: float) -> Tensor:
        parameters = {
            "encoder": torch.ones(1, 1, dtype=torch.float64),
            "encoder_bias": torch.zeros(1, dtype=torch.float64),
            "decoder": torch.full((1, 1), 0.8, dtype=torch.float64),
            "decoder_bias": torch.zeros(1, dtype=torch.float64),
            "log_threshold": torch.tensor([threshold], dtype=torch.float64).log(),
        }
        leaf = parameters["log_threshold"].requires_grad_()
        dead = torch.zeros(1, dtype=torch.bool)
        moment = Moment(settings, parameters, {}, 0.3, dead, Group())
        total = torch.zeros((), dtype=torch.float64)
        for part in variant.parts(x, moment):
            total = total + variant.loss(part, moment).total / len(x)
        total.backward()
        assert leaf.grad is not None
        return torch.stack([total.detach(), leaf.grad[0]])

    low, middle, high = mean_loss(0.49), mean_loss(0.5), mean_loss(0.51)
    slope = (high[0] - low[0]) / 0.02  # 0.3 · (−1/4) + (0.5² − 0.1²)/4 = −0.015
    assert float(slope) == pytest.approx(-0.015, rel=1e-2)
    # of the logarithm; the window is as wide as 2 % of the threshold
    assert float(middle[1]) == pytest.approx(0.5 * float(slope), rel=0.03)
