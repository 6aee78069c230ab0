"""Settings: how an autoencoder is trained. Statistics: how its rows are centred and scaled."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from math import isfinite, sqrt
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.errors import InputError, SettingsError
from whence.core.stored import as_stored


@dataclass(frozen=True)
class Settings:
    """What training needs to know, in one record that can be written as JSON.

    ``sparsity`` is λ, of ``relu``, ``gated`` and ``jump-relu``; ``k`` is the number of active
    features, of ``topk``, and their mean number, of ``batch-topk`` and ``matryoshka``. λ rises from
    0 over the first share ``warm_up`` of the steps; the learning rate falls to 0 over the last
    share ``decay``. A feature is dead when it was not active in ``dead_after`` rows.
    ``auxiliary`` is the weight of the loss that brings dead features back, ``auxiliary_k`` how
    many of them each row gets. ``threshold`` and ``bandwidth`` belong to ``jump-relu``,
    ``prefixes`` to ``matryoshka``: sizes of the nested dictionaries, the last being ``size``.

    >>> Settings("topk", size=96, k=3).k
    3
    >>> Settings("topk", size=96)
    Traceback (most recent call last):
    whence.core.errors.SettingsError: topk needs k, the number of active features.
    """

    variant: str = "relu"
    size: int = 4096
    sparsity: float | None = None
    k: int | None = None
    learning_rate: float = 1e-3
    steps: int = 4000
    batch: int = 4096
    seed: int = 0
    warm_up: float = 0.05
    decay: float = 0.2
    clip: float = 1.0
    dead_after: int = 1_000_000
    auxiliary: float = 1 / 32
    auxiliary_k: int | None = None
    threshold: float = 0.5
    bandwidth: float = 1.0
    prefixes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        from whence.features.variants import variant_named

        wanted = variant_named(self.variant)
        if wanted.needs_k and self.k is None:
            raise SettingsError(f"{self.variant} needs k, the number of active features.")
        if not wanted.needs_k and self.sparsity is None:
            raise SettingsError(f"{self.variant} needs sparsity, the λ of its loss.")
        for name in ("size", "steps", "batch", "dead_after"):
            _check_least(name, getattr(self, name), 1)
        for name in ("learning_rate", "clip", "threshold", "bandwidth"):
            _check_positive(name, getattr(self, name))
        for name in ("warm_up", "decay"):
            if not 0 <= getattr(self, name) <= 1:
                raise SettingsError(f"{name} is a share from 0 to 1, not {getattr(self, name)}.")
        if self.sparsity is not None and not (isfinite(self.sparsity) and self.sparsity >= 0):
            raise SettingsError(f"sparsity is a number of at least 0, not {self.sparsity}.")
        if self.k is not None and not 1 <= self.k <= self.size:
            raise SettingsError(f"k is from 1 to the {self.size} features, not {self.k}.")
        self._check_prefixes()

    def _check_prefixes(self) -> None:
        if self.prefixes is None:
            return
        object.__setattr__(self, "prefixes", tuple(self.prefixes))  # JSON has lists
        rising = all(low < high for low, high in pairwise((0, *self.prefixes)))
        if not self.prefixes or not rising or self.prefixes[-1] != self.size:
            raise SettingsError(
                f"prefixes rise from at least 1 to the size, {self.size}; they are {self.prefixes}."
            )

    @property
    def nested(self) -> tuple[int, ...]:
        """The sizes of the nested dictionaries: ``prefixes``, or 1/8, 1/4, 1/2 and all."""
        if self.prefixes is not None:
            return self.prefixes
        sizes = {max(1, self.size // part) for part in (8, 4, 2, 1)}
        return tuple(sorted(sizes))

    def strength(self, step: int) -> float:
        """λ at a step, from 0: it rises over the first steps."""
        ramp = self.warm_up * self.steps
        return (self.sparsity or 0.0) * min(1.0, (step + 1) / ramp if ramp else 1.0)

    def rate(self, step: int) -> float:
        """The learning rate at a step, from 0: it falls over the last steps."""
        tail = self.decay * self.steps
        left = (self.steps - step) / tail if tail else 1.0
        return self.learning_rate * max(0.0, min(1.0, left))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self) | {"prefixes": list(self.prefixes) if self.prefixes else None}

    @classmethod
    def from_dict(cls, stored: Any) -> Settings:
        """What ``to_dict`` gave."""
        return as_stored(stored, "training's settings").record(cls)


@dataclass(frozen=True, eq=False)
class Statistics:
    """Rows are trained on as ``(h − centre) · scale``, whose mean length is √dim."""

    centre: Float[Tensor, " dim"]
    scale: float

    @classmethod
    def of(cls, rows: Float[Tensor, "row dim"], centred: bool = True) -> Statistics:
        """Those of some rows; without centring the centre is 0.

        >>> some = Statistics.of(torch.tensor([[3.0, 4.0], [-3.0, -4.0]]))
        >>> some.centre, round(some.scale, 6)  # √2 / 5
        (tensor([0., 0.]), 0.282843)
        """
        mean = rows.double().mean(dim=0)
        centre = mean if centred else torch.zeros_like(mean)
        length = float((rows.double() - centre).norm(dim=1).mean())
        if not isfinite(length):
            raise InputError("some activations are not finite: the model gives NaN or infinity.")
        if length == 0:
            raise InputError("all activations are the same: there is nothing to learn from them.")
        return cls(centre.to(rows.dtype), sqrt(rows.shape[1]) / length)


def _check_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise SettingsError(f"{name} is a whole number of at least {least}, not {value}.")


def _check_positive(name: str, value: float) -> None:
    if not (isfinite(value) and value > 0):
        raise SettingsError(f"{name} is a number above 0, not {value}.")
