"""jump-relu: each feature learns the threshold above which it is active.

    z = E x + b,  a = z · H(z − θ)          L = ‖x − s‖² + λ Σ_j H(z_j − θ_j)

The step H has no gradient to learn θ from. In its place stands that of the expected loss, estimated
from entries near the threshold, within a bandwidth ε (a straight-through estimator):

    ∂/∂θ z·H(z − θ) = −(θ/ε) [|z − θ| < ε/2]       ∂/∂θ H(z − θ) = −(1/ε) [|z − θ| < ε/2]
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from typing import Any

import torch
from torch import Tensor

from whence.features.choosing import Part, above
from whence.features.loss import (
    Moment,
    Terms,
    Trained,
    Variant,
    encoder_of,
    missed,
)
from whence.features.rules import Rule, Threshold
from whence.features.settings import Settings


def parts(rows: Tensor, moment: Moment) -> Iterator[Part]:
    """What is above the threshold, and what is so near that it moves the threshold."""
    bound = moment.parameters["log_threshold"].detach().exp() - moment.settings.bandwidth / 2
    yield from above(rows, encoder_of(moment), bound)


def loss(part: Part, moment: Moment) -> Terms:
    """Reconstruction, and λ times the number of active features."""
    thresholds = part.at.of(moment.parameters["log_threshold"].exp())
    bandwidth = moment.settings.bandwidth
    a = _Jump.apply(part.pre, thresholds, bandwidth)
    active = _Step.apply(part.pre, thresholds, bandwidth)

    reconstruction, error = missed(part, a, moment.parameters)
    return Terms(
        reconstruction=reconstruction,
        sparsity=moment.strength * active.sum(),
        auxiliary=0.0,
        activations=a,
        error=error,
    )


def more(settings: Settings) -> dict[str, Tensor]:
    """The thresholds, as logarithms, so that they stay above zero."""
    return {"log_threshold": torch.full((settings.size,), log(settings.threshold))}


def rule(trained: Trained) -> Rule:
    """The same as in training."""
    return Threshold(trained.parameters["log_threshold"].exp())


class _Jump(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pre: Tensor, thresholds: Tensor, bandwidth: float) -> Tensor:
        ctx.save_for_backward(pre, thresholds)
        ctx.bandwidth = bandwidth
        return torch.where(pre > thresholds, pre, 0)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        pre, thresholds = ctx.saved_tensors
        near = _near(pre, thresholds, ctx.bandwidth)
        of_thresholds = -gradient * near * thresholds / ctx.bandwidth
        return gradient * (pre > thresholds), of_thresholds.sum_to_size(thresholds.shape), None


class _Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pre: Tensor, thresholds: Tensor, bandwidth: float) -> Tensor:
        ctx.save_for_backward(pre, thresholds)
        ctx.bandwidth = bandwidth
        return (pre > thresholds).to(pre.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        pre, thresholds = ctx.saved_tensors
        of_thresholds = -gradient * _near(pre, thresholds, ctx.bandwidth) / ctx.bandwidth
        return None, of_thresholds.sum_to_size(thresholds.shape), None


def _near(pre: Tensor, thresholds: Tensor, bandwidth: float) -> Tensor:
    return ((pre - thresholds).abs() < bandwidth / 2).to(pre.dtype)


VARIANT = Variant(
    name="jump-relu",
    paper="Rajamanoharan et al. 2024, Jumping Ahead: JumpReLU Sparse Autoencoders",
    unit=True,
    needs_k=False,
    parts=parts,
    loss=loss,
    rule=rule,
    more=more,
)
