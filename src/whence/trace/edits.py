"""Edits: change attention, a head's output, embeddings or hidden states while the model runs.

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

Where = Literal["attention", "output", "embeddings", "hidden"]
# these are made where attention is computed, and need it to be seen
IN_ATTENTION = ("attention", "output")


@dataclass(frozen=True)
class Edit:
    """A change at a place.

    Make one with ``uniform``, ``permute``, ``scale``, ``zero``, ``replace``, ``ablate``,
    ``swap_embeddings`` or ``hidden``.
    """

    name: str
    where: Where
    change: Callable[..., Tensor]
    layer: int | None = None
    head: int | None = None
    kind: str | None = None

    @property
    def is_in_attention(self) -> bool:
        """Whether it is made where attention is computed."""
        return self.where in IN_ATTENTION

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
    return Edit("uniform", "attention", flattened, layer, head, kind)


def flattened(
    weights: Float[Tensor, "*any k"], allowed: Bool[Tensor, "*#any k"]
) -> Float[Tensor, "*any k"]:
    """One over the number of visible keys, for each of them."""
    flat = allowed.to(weights.dtype)
    visible = flat.sum(-1, keepdim=True).clamp(min=1)
    return (flat / visible).expand_as(weights)


def permute(
    layer: int | None = None, head: int | None = None, kind: str | None = None, *, seed: int = 0
) -> Edit:
    """Shuffle each row's weights among its visible keys (Jain & Wallace 2019).

    The shuffle is the same for each row, as far as the mask allows.
    """

    def change(
        weights: Float[Tensor, "b h q k"], allowed: Bool[Tensor, "#b #h #q k"]
    ) -> Float[Tensor, "b h q k"]:
        keys = weights.shape[-1]
        generator = torch.Generator("cpu").manual_seed(seed)
        noise = torch.rand(keys, generator=generator, dtype=torch.float32, device="cpu")
        return in_order_of(noise.to(weights.device), weights, allowed)

    return Edit("permute", "attention", change, layer, head, kind)


def in_order_of(
    noise: Float[Tensor, "*#any k"],
    weights: Float[Tensor, "*any k"],
    allowed: Bool[Tensor, "*#any k"],
) -> Float[Tensor, "*any k"]:
    """The weights of visible keys, moved to each other's places as sorting ``noise`` says.

    Noise that rises leaves them where they are; hidden keys get nothing.

    >>> weights, visible = torch.tensor([0.7, 0.3, 0.0]), torch.tensor([True, True, False])
    >>> in_order_of(torch.tensor([2.0, 1.0, 0.0]), weights, visible)
    tensor([0.3000, 0.7000, 0.0000])
    """
    source = torch.where(allowed, noise, torch.inf).argsort(dim=-1, stable=True)
    number = allowed.long().cumsum(-1).sub(1).clamp(min=0)  # of a key among the visible ones
    source, number = torch.broadcast_tensors(source, number)
    moved = weights.gather(-1, source.gather(-1, number).expand_as(weights))
    return moved * allowed


def at_heads(
    name: str,
    change: Callable[[Tensor, Tensor], Tensor],
    chosen: Bool[Tensor, "row head"],
    layer: int | None = None,
    kind: str | None = None,
) -> Edit:
    """A change of the attention of some heads, which may be others in each row of a batch.

    ``change`` is given the maps of the chosen heads, "map query key", and which keys each query
    sees: row after row, in the order of the heads.
    """

    def change_chosen(
        weights: Float[Tensor, "b h q k"], allowed: Bool[Tensor, "#b #h #q k"]
    ) -> Float[Tensor, "b h q k"]:
        here = chosen.to(weights.device)
        visible = allowed.expand_as(weights)
        if here.all():
            of_all = change(weights.flatten(0, 1), visible.flatten(0, 1))
            return of_all.view_as(weights)
        changed = weights.clone()
        changed[here] = change(weights[here], visible[here])
        return changed

    return Edit(name, "attention", change_chosen, layer, None, kind)


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


def hidden(
    change: Callable[[Tensor], Tensor], layer: int, name: str = "hidden", kind: str | None = None
) -> Edit:
    """Change the residual stream after a block.

    ``change`` is given the hidden states of all tokens, "batch token dim", padding included, and
    gives back as many. ``kind`` is the side of an encoder-decoder; the encoder unless it is said.

    >>> hidden(lambda states: states + 1, layer=3).where
    'hidden'
    """
    return Edit(name, "hidden", change, layer, None, kind)
