"""Edits: change a head's attention or output, or the embeddings, while the model runs.

Counterfactual tests and steering are edits. An edit names its place (layer, head, kind; None means
every one) and holds the change itself. ``allowed`` marks the keys that the mask leaves visible, so
that no edit lets a model see padding or the future.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from whence.core.errors import InputError

Where = Literal["attention", "output", "embeddings"]


@dataclass(frozen=True)
class Edit:
    """A change at a place.

    Make one with ``uniform``, ``permute``, ``scale``, ``zero``, ``replace``, ``ablate`` or
    ``swap_embeddings``.
    """

    name: str
    where: Where
    change: Callable[..., Tensor]
    layer: int | None = None
    head: int | None = None
    kind: str | None = None

    def applies(self, layer: int, kind: str) -> bool:
        """Whether this layer is the edit's place."""
        return self.layer in (None, layer) and self.kind in (None, kind)

    def on_heads(self, tensor: Tensor, dim: int, *more: Tensor) -> Tensor:
        """Apply the change to the chosen head, or to all, and return a new tensor."""
        if self.head is None:
            return self.change(tensor, *more)
        if not 0 <= self.head < tensor.shape[dim]:
            raise InputError(
                f"edit {self.name!r}: head {self.head} is outside "
                f"the {tensor.shape[dim]} heads of the layer."
            )
        changed = tensor.clone()
        before = tensor.narrow(dim, self.head, 1)
        after = changed.narrow(dim, self.head, 1)
        after.copy_(self.change(before, *more))
        return changed


def uniform(layer: int | None = None, head: int | None = None, kind: str | None = None) -> Edit:
    """Attend equally to every visible key (Kovaleva et al. 2019 disable a head so).

    >>> uniform(layer=0, head=1).name
    'uniform'
    """

    def change(
        weights: Float[Tensor, "b h q k"], allowed: Bool[Tensor, "#b #h #q k"]
    ) -> Float[Tensor, "b h q k"]:
        flat = allowed.to(weights.dtype)
        visible = flat.sum(-1, keepdim=True).clamp(min=1)
        return (flat / visible).expand_as(weights)

    return Edit("uniform", "attention", change, layer, head, kind)


def permute(
    layer: int | None = None, head: int | None = None, kind: str | None = None, *, seed: int = 0
) -> Edit:
    """Shuffle each row's weights among its visible keys (Jain & Wallace 2019).

    The shuffle is the same for each row, as far as the mask allows.
    """

    def change(
        weights: Float[Tensor, "b h q k"], allowed: Bool[Tensor, "#b #h #q k"]
    ) -> Float[Tensor, "b h q k"]:
        batch, keys = weights.shape[0], weights.shape[-1]
        generator = torch.Generator("cpu").manual_seed(seed)
        noise = torch.rand(keys, generator=generator, dtype=torch.float32, device="cpu")
        noise = noise.to(weights.device)
        places = torch.arange(keys, device=weights.device, dtype=noise.dtype)
        visible = allowed.expand(batch, *allowed.shape[1:])
        hidden_last = torch.full_like(noise, torch.inf)

        shuffled = torch.where(visible, noise, hidden_last).argsort(dim=-1, stable=True)
        in_order = torch.where(visible, places, hidden_last).argsort(dim=-1, stable=True)
        moved = weights.gather(-1, shuffled.expand_as(weights))
        return torch.zeros_like(weights).scatter(-1, in_order.expand_as(weights), moved)

    return Edit("permute", "attention", change, layer, head, kind)


def scale(
    factor: float, layer: int | None = None, head: int | None = None, kind: str | None = None
) -> Edit:
    """Multiply the attention weights; rows then sum to ``factor``."""

    def change(weights: Float[Tensor, "b h q k"], _allowed: Tensor) -> Float[Tensor, "b h q k"]:
        return weights * factor

    return Edit("scale", "attention", change, layer, head, kind)


def zero(layer: int | None = None, head: int | None = None, kind: str | None = None) -> Edit:
    """Attend to nothing: the head adds nothing."""

    def change(weights: Float[Tensor, "b h q k"], _allowed: Tensor) -> Float[Tensor, "b h q k"]:
        return torch.zeros_like(weights)

    return Edit("zero", "attention", change, layer, head, kind)


def replace(
    weights: Float[Tensor, "*any q k"],
    layer: int | None = None,
    head: int | None = None,
    kind: str | None = None,
) -> Edit:
    """Use these weights instead; they broadcast over batch and heads."""

    def change(old: Float[Tensor, "b h q k"], _allowed: Tensor) -> Float[Tensor, "b h q k"]:
        if weights.shape[-2:] != old.shape[-2:]:
            given, wanted = tuple(weights.shape[-2:]), tuple(old.shape[-2:])
            raise InputError(
                f"edit 'replace': weights of {given} for a map of {wanted} (queries, keys)."
            )
        return weights.to(old).expand_as(old)

    return Edit("replace", "attention", change, layer, head, kind)


def ablate(layer: int | None = None, head: int | None = None, kind: str | None = None) -> Edit:
    """Set the head's output to zero, behind the attention: the weights stay as they are."""
    return Edit("ablate", "output", torch.zeros_like, layer, head, kind)


def swap_embeddings(embeddings: Float[Tensor, "*batch token dim"]) -> Edit:
    """Run on these embeddings instead of the tokens' own."""

    def change(old: Float[Tensor, "batch token dim"]) -> Float[Tensor, "batch token dim"]:
        if embeddings.shape[-2:] != old.shape[-2:]:
            given, wanted = tuple(embeddings.shape), tuple(old.shape)
            raise InputError(f"edit 'swap_embeddings': {given} for embeddings of {wanted}.")
        return embeddings.to(old).expand_as(old)

    return Edit("swap_embeddings", "embeddings", change)
