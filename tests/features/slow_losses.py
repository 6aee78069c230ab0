"""The losses of all variants once more: dense, straight from their papers, for autograd.

No kernel of whence is used, no block, no entry: all ``row × feature`` numbers are there.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from whence.features.settings import Settings

P = Mapping[str, Tensor]


def slow_loss(x: Tensor, p: P, settings: Settings, dead: Tensor) -> Tensor:
    """The loss of a batch: the mean over its rows."""
    total = {
        "relu": _relu,
        "topk": _topk,
        "batch-topk": _batch_topk,
        "gated": _gated,
        "jump-relu": _jump_relu,
        "matryoshka": _matryoshka,
    }[settings.variant]
    return total(x, p, settings, dead) / len(x)


def _strength(settings: Settings) -> float:
    assert settings.sparsity is not None
    return settings.sparsity


def _pre(x: Tensor, p: P) -> Tensor:
    return x @ p["encoder"].T + p["encoder_bias"]


def _missed(x: Tensor, a: Tensor, p: P) -> Tensor:
    return x - a @ p["decoder"] - p["decoder_bias"]


def _relu(x: Tensor, p: P, settings: Settings, _: Tensor) -> Tensor:
    a = _pre(x, p).relu()
    penalty = (a * p["decoder"].norm(dim=1)).sum()
    return (_missed(x, a, p) ** 2).sum() + _strength(settings) * penalty


def _topk(x: Tensor, p: P, settings: Settings, dead: Tensor) -> Tensor:
    z = _pre(x, p)
    kept = torch.zeros_like(z)
    for row, numbers in enumerate(z):
        for feature in numbers.argsort(descending=True)[: settings.k]:
            kept[row, feature] = 1
    e = _missed(x, (z * kept).relu(), p)
    return (e**2).sum() + _auxiliary(z, e, p, settings, dead)


def _auxiliary(z: Tensor, e: Tensor, p: P, settings: Settings, dead: Tensor) -> Tensor:
    if not dead.any():
        return torch.zeros(())
    count = settings.auxiliary_k or z.new_zeros(p["decoder"].shape[1]).numel() // 2
    count = min(count, int(dead.sum()))
    hidden = torch.where(dead, z, -torch.inf)
    kept = hidden >= hidden.sort(dim=1, descending=True).values[:, count - 1 : count]
    rebuilt = torch.where(kept, z, 0).relu() @ p["decoder"]
    return settings.auxiliary * ((e.detach() - rebuilt) ** 2).sum()


def _largest_of_batch(z: Tensor, k: int) -> Tensor:
    least = z.flatten().sort(descending=True).values[len(z) * k - 1]
    return torch.where(z >= least, z, 0).relu()


def _batch_topk(x: Tensor, p: P, settings: Settings, dead: Tensor) -> Tensor:
    z = _pre(x, p)
    assert settings.k is not None
    e = _missed(x, _largest_of_batch(z, settings.k), p)
    return (e**2).sum() + _auxiliary(z, e, p, settings, dead)


def _matryoshka(x: Tensor, p: P, settings: Settings, dead: Tensor) -> Tensor:
    z = _pre(x, p)
    assert settings.k is not None
    a = _largest_of_batch(z, settings.k)
    total = torch.zeros(())
    e = x
    for size in settings.nested:
        first = (torch.arange(z.shape[1]) < size).to(z)
        e = _missed(x, a * first, p)
        total = total + (e**2).sum()
    return total + _auxiliary(z, e, p, settings, dead)


def _gated(x: Tensor, p: P, settings: Settings, _: Tensor) -> Tensor:
    """With the paper's own names: W_gate, b_gate, r_mag, b_mag."""
    gate = _pre(x, p)
    r_mag, b_gate = p["log_scale"], p["encoder_bias"]
    b_mag = p["shift"] + r_mag.exp() * b_gate
    magnitude = r_mag.exp() * (x @ p["encoder"].T) + b_mag
    a = (gate > 0) * magnitude.relu()
    frozen = {name: value.detach() for name, value in p.items()}
    return (
        (_missed(x, a, p) ** 2).sum()
        + _strength(settings) * gate.relu().sum()
        + (_missed(x, gate.relu(), frozen) ** 2).sum()
    )


def _jump_relu(x: Tensor, p: P, settings: Settings, _: Tensor) -> Tensor:
    """Its value; the thresholds' gradient has a test of its own, as autograd has none."""
    z = _pre(x, p)
    active = (z > p["log_threshold"].exp()).to(z)
    return (_missed(x, z * active, p) ** 2).sum() + _strength(settings) * active.sum()
