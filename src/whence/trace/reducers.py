"""Reducers keep a part of each layer's attention as the layer passes.

They see blocks of query rows, so that layers × heads × T × T numbers are never held. A reducer maps
one block of a layer's attention to what should be kept of it. Blocks are then joined: ``"rows"``
one below the other, ``"add"`` summed, ``"first"`` the first alone.
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
    """Some query rows of one layer's attention.

    With them come the values that they weight, and the queries and keys that they come from.
    """

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
    """One layer's blocks, laid into one tensor as they come.

    A list of them that is joined at the end would be held twice.
    """

    def __init__(self, reducer: Reducer, rows: int) -> None:
        self.reducer = reducer
        self.rows = rows
        self.whole: Tensor | None = None

    def add(self, block: Block) -> None:
        """Take in what the reducer makes of a block."""
        join = self.reducer.join
        if join == "first" and self.whole is not None:
            return
        part = self.reducer(block)
        if join == "add" and self.whole is not None:
            self.whole += part
        elif join == "rows" and part.shape[-2] < self.rows and part.numel():
            if self.whole is None:
                self.whole = part.new_empty(*part.shape[:-2], self.rows, part.shape[-1])
            end = block.first_row + part.shape[-2]
            self.whole[..., block.first_row : end, :] = part
        else:
            self.whole = part


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
    count = weights.shape[1]
    for head in heads:
        if not 0 <= head < count:
            raise InputError(
                f"head {head} is outside the {count} heads of a layer (0 to {count - 1})."
            )
    return weights[:, list(heads)]


@dataclass(frozen=True)
class Heads:
    """The chosen heads' whole maps, at the chosen layers (None: at all)."""

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
        return _for_each_head(block.key, block)


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
    """Words instead of tokens, so that rows still sum to one.

    Attention *to* a split word sums over its pieces, attention *from* it averages over them.
    ``source[b, u, t]`` is 1 where token t of the input belongs to unit u; ``reply`` says the same
    of a decoder's own tokens.
    """

    source: Float[Tensor, "batch unit token"]
    reply: Float[Tensor, "batch reply_unit reply_token"] | None = None
    heads: HeadChoice = "all"
    layers: tuple[int, ...] | None = None
    join: ClassVar[Join] = "add"

    def __call__(self, block: Block) -> Float[Tensor, "batch head from to"]:
        if self.layers is not None and block.layer not in self.layers:
            return block.weights[:, :0, :0]
        looks = self.source
        if self.reply is not None and block.kind != "encoder":
            looks = self.reply
        seen = self.source if block.kind == "cross" else looks

        weights = chosen_heads(block.weights, self.heads)
        end = block.first_row + weights.shape[2]
        to_units = weights @ seen.transpose(1, 2)[:, None]
        mean_from = looks / looks.sum(-1, keepdim=True).clamp(min=1)
        return mean_from[:, None, :, block.first_row : end] @ to_units


@dataclass(frozen=True)
class ValueNorm:
    """Weights times the norm of the value vector that they weight, averaged over heads.

    After Kobayashi et al. (2020).
    """

    join: ClassVar[Join] = "rows"

    def __call__(self, block: Block) -> Float[Tensor, "batch row key"]:
        if block.value is None:
            raise Unsupported(
                "this model's value vectors cannot be seen, "
                "so attention cannot be weighted by their norms."
            )
        norm = _for_each_head(block.value.norm(dim=-1), block)
        return (block.weights * norm[:, :, None]).mean(1)


def _for_each_head(shared: Tensor, block: Block) -> Tensor:
    """What several heads share, once for each of them."""
    heads = block.weights.shape[1]
    return shared.repeat_interleave(heads // shared.shape[1], dim=1)
