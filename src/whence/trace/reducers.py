"""Reducers run as each layer passes, block of query rows by block, so that layers × heads × T × T is never held.

A reducer maps one block of a layer's attention to what should be kept of it. Blocks are then joined: ``"rows"`` one below the
other, ``"add"`` summed, ``"first"`` the first alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from whence.core.errors import InputError, Unsupported

Join = Literal["rows", "add", "first"]
HeadChoice = Literal["all", "mean", "max"] | tuple[int, ...]


@dataclass(frozen=True)
class Block:
    """Some query rows of one layer's attention, with the values that they weight and the queries and keys that they come from."""

    weights: Float[Tensor, "batch head row key"]
    value: Float[Tensor, "batch kv_head key value_dim"] | None
    first_row: int
    kind: str  # encoder, decoder or cross
    layer: int = 0
    query: Float[Tensor, "batch head row dim"] | None = None
    key: Float[Tensor, "batch kv_head key dim"] | None = None
    scale: float = 1.0


@runtime_checkable
class Reducer(Protocol):
    """What a reducer is: a call on a block, and how the blocks are joined."""

    join: ClassVar[Join]

    def __call__(self, block: Block) -> Tensor: ...


class Joined:
    """One layer's blocks, laid into one tensor as they come: a list of them to be joined at the end would be held twice."""

    def __init__(self, reducer: Reducer, rows: int) -> None:
        self.reducer, self.rows = reducer, rows
        self.whole: Tensor | None = None

    def add(self, block: Block) -> None:
        """What the reducer makes of a block."""
        if self.reducer.join == "first" and self.whole is not None:
            return
        made = self.reducer(block)
        if self.whole is not None and self.reducer.join == "add":
            self.whole += made
        elif self.reducer.join == "rows" and made.shape[-2] < self.rows and made.numel():
            if self.whole is None:
                self.whole = made.new_empty(*made.shape[:-2], self.rows, made.shape[-1])
            self.whole[..., block.first_row : block.first_row + made.shape[-2], :] = made
        else:
            self.whole = made


def chosen_heads(
    weights: Float[Tensor, "batch head row key"], heads: HeadChoice
) -> Float[Tensor, "batch chosen row key"]:
    """All heads, some of them, or their mean or largest as one."""
    if heads == "all":
        return weights
    if heads == "mean":
        return weights.mean(1, keepdim=True)
    if heads == "max":
        return weights.amax(1, keepdim=True)
    assert not isinstance(heads, str)
    outside = [h for h in heads if not 0 <= h < weights.shape[1]]
    if outside:
        raise InputError(
            f"head {outside[0]} is outside the {weights.shape[1]} heads of a layer (0 to {weights.shape[1] - 1})."
        )
    return weights[:, list(heads)]


@dataclass(frozen=True)
class Heads:
    """The chosen heads' whole maps, at the chosen layers (None: at all; elsewhere nothing is kept)."""

    heads: HeadChoice = "all"
    layers: tuple[int, ...] | None = None
    join: ClassVar[Join] = "rows"

    def __call__(self, block: Block) -> Float[Tensor, "batch head row key"]:
        if self.layers is not None and block.layer not in self.layers:
            return block.weights[:, :0, :0]
        return chosen_heads(block.weights, self.heads).clone()


@dataclass(frozen=True)
class Queries:
    """The query vectors of every head, as they meet the keys: position encodings included."""

    join: ClassVar[Join] = "rows"

    def __call__(self, block: Block) -> Float[Tensor, "batch head row dim"]:
        if block.query is None:
            raise Unsupported(
                "this model's queries and keys cannot be seen, so there is no neuron view of it."
            )
        return block.query * block.scale


@dataclass(frozen=True)
class Keys:
    """The key vectors, one for each head also where heads share them."""

    join: ClassVar[Join] = "first"

    def __call__(self, block: Block) -> Float[Tensor, "batch head key dim"]:
        if block.key is None:
            raise Unsupported(
                "this model's queries and keys cannot be seen, so there is no neuron view of it."
            )
        return block.key.repeat_interleave(block.weights.shape[1] // block.key.shape[1], dim=1)


@dataclass(frozen=True)
class HeadMean:
    """The mean over heads."""

    join: ClassVar[Join] = "rows"

    def __call__(self, block: Block) -> Float[Tensor, "batch row key"]:
        return block.weights.mean(1)


@dataclass(frozen=True)
class HeadMax:
    """The largest weight of any head."""

    join: ClassVar[Join] = "rows"

    def __call__(self, block: Block) -> Float[Tensor, "batch row key"]:
        return block.weights.amax(1)


@dataclass(frozen=True, eq=False)
class Row:
    """One query row for each passage of the batch."""

    rows: Int[Tensor, " batch"]
    join: ClassVar[Join] = "add"

    def __call__(self, block: Block) -> Float[Tensor, "batch head key"]:
        batch, _, count, _ = block.weights.shape
        inside = (self.rows >= block.first_row) & (self.rows < block.first_row + count)
        local = (self.rows - block.first_row).clamp(0, count - 1)
        picked = block.weights[torch.arange(batch, device=block.weights.device), :, local]
        return picked * inside[:, None, None].to(picked.dtype)


@dataclass(frozen=True, eq=False)
class ToUnits:
    """Words instead of tokens: attention *to* a split word sums over its pieces, *from* it averages, so rows still sum to one.

    ``source[b, u, t]`` is 1 where token t of the input belongs to unit u; ``reply`` says the same of a decoder's own tokens.
    """

    source: Float[Tensor, "batch unit token"]
    reply: Float[Tensor, "batch reply_unit reply_token"] | None = None
    heads: HeadChoice = "all"
    layers: tuple[int, ...] | None = None
    join: ClassVar[Join] = "add"

    def __call__(self, block: Block) -> Float[Tensor, "batch head from to"]:
        if self.layers is not None and block.layer not in self.layers:
            return block.weights[:, :0, :0]
        weights = chosen_heads(block.weights, self.heads)
        count = weights.shape[2]
        own = self.source if self.reply is None or block.kind == "encoder" else self.reply
        to_member = self.source if block.kind == "cross" else own
        to_units = weights @ to_member.transpose(1, 2)[:, None]
        mean_from = own / own.sum(-1, keepdim=True).clamp(min=1)
        return mean_from[:, None, :, block.first_row : block.first_row + count] @ to_units


@dataclass(frozen=True)
class ValueNorm:
    """Weights scaled by the norm of the value vector that they weight (after Kobayashi et al. 2020), mean over heads."""

    join: ClassVar[Join] = "rows"

    def __call__(self, block: Block) -> Float[Tensor, "batch row key"]:
        if block.value is None:
            raise Unsupported(
                "this model's value vectors cannot be seen, so attention cannot be weighted by their norms."
            )
        norm = block.value.norm(dim=-1).repeat_interleave(
            block.weights.shape[1] // block.value.shape[1], dim=1
        )
        return (block.weights * norm[:, :, None]).mean(1)
