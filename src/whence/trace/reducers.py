"""Reducers run as each layer passes, block of query rows by block, so that layers × heads × T × T is never held.

A reducer maps one block of a layer's attention to what should be kept of it. Blocks are then joined: ``"rows"`` one below the
other, ``"add"`` summed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from whence.core.errors import Unsupported


@dataclass(frozen=True)
class Block:
    """Some query rows of one layer's attention, with the values that they weight."""

    weights: Float[Tensor, "batch head row key"]
    value: Float[Tensor, "batch kv_head key dim"] | None
    first_row: int
    kind: str  # encoder, decoder or cross


@runtime_checkable
class Reducer(Protocol):
    """What a reducer is: a call on a block, and how the blocks are joined."""

    join: ClassVar[Literal["rows", "add"]]

    def __call__(self, block: Block) -> Tensor: ...


@dataclass(frozen=True)
class HeadMean:
    """The mean over heads."""

    join: ClassVar[Literal["rows", "add"]] = "rows"

    def __call__(self, block: Block) -> Float[Tensor, "batch row key"]:
        return block.weights.mean(1)


@dataclass(frozen=True)
class HeadMax:
    """The largest weight of any head."""

    join: ClassVar[Literal["rows", "add"]] = "rows"

    def __call__(self, block: Block) -> Float[Tensor, "batch row key"]:
        return block.weights.amax(1)


@dataclass(frozen=True, eq=False)
class Row:
    """One query row for each passage of the batch."""

    rows: Int[Tensor, " batch"]
    join: ClassVar[Literal["rows", "add"]] = "add"

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
    join: ClassVar[Literal["rows", "add"]] = "add"

    def __call__(self, block: Block) -> Float[Tensor, "batch head from to"]:
        count = block.weights.shape[2]
        own = self.source if self.reply is None or block.kind == "encoder" else self.reply
        to_member = self.source if block.kind == "cross" else own
        to_units = block.weights @ to_member.transpose(1, 2)[:, None]
        mean_from = own / own.sum(-1, keepdim=True).clamp(min=1)
        return mean_from[:, None, :, block.first_row : block.first_row + count] @ to_units


@dataclass(frozen=True)
class ValueNorm:
    """Weights scaled by the norm of the value vector that they weight (after Kobayashi et al. 2020), mean over heads."""

    join: ClassVar[Literal["rows", "add"]] = "rows"

    def __call__(self, block: Block) -> Float[Tensor, "batch row key"]:
        if block.value is None:
            raise Unsupported("this model's value vectors cannot be seen, so attention cannot be weighted by their norms.")
        norm = block.value.norm(dim=-1).repeat_interleave(block.weights.shape[1] // block.value.shape[1], dim=1)
        return (block.weights * norm[:, :, None]).mean(1)
