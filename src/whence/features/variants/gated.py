"""gated: one path decides whether a feature is active, another how much; λ presses on the first.

    π = E x + b,   a = H(π) · max(exp(r) π + t, 0)
    L = ‖x − s(a)‖² + λ Σ_j max(π_j, 0) + ‖x − s*(max(π, 0))‖²

So the penalty does not shrink the activations. In ``s*`` the decoder is held fixed: that term only
teaches the gate. The paper writes the magnitude as ``exp(r) (E x) + b_mag``; here
``t = b_mag − exp(r) b``, which is the same with other names.
"""

from __future__ import annotations

from collections.abc import Iterator

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
from whence.features.rules import Gated, Rule
from whence.features.settings import Settings


def parts(rows: Tensor, moment: Moment) -> Iterator[Part]:
    """All entries whose gate is open."""
    yield from above(rows, encoder_of(moment), 0.0)


def loss(part: Part, moment: Moment) -> Terms:
    """Reconstruction by magnitudes, the penalty on gates, and reconstruction by gates."""
    parameters = moment.parameters
    gate = part.pre.relu()
    scale, shift = part.at.of(parameters["log_scale"].exp()), part.at.of(parameters["shift"])
    a = torch.where(part.pre > 0, (scale * part.pre + shift).relu(), 0)
    fixed = {name: value.detach() for name, value in parameters.items()}

    reconstruction, error = missed(part, a, parameters)
    of_gates, _ = missed(part, gate, fixed)
    return Terms(
        reconstruction=reconstruction,
        sparsity=moment.strength * gate.sum(),
        auxiliary=of_gates,
        activations=a,
        error=error,
    )


def more(settings: Settings) -> dict[str, Tensor]:
    """Magnitudes that begin as the gate's own."""
    return {"log_scale": torch.zeros(settings.size), "shift": torch.zeros(settings.size)}


def rule(trained: Trained) -> Rule:
    """The same as in training."""
    return Gated(trained.parameters["log_scale"].exp(), trained.parameters["shift"])


VARIANT = Variant(
    name="gated",
    paper="Rajamanoharan et al. 2024, Improving Dictionary Learning with Gated SAEs",
    unit=True,
    needs_k=False,
    parts=parts,
    loss=loss,
    rule=rule,
    more=more,
)
