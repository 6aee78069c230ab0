"""Products with activations that are mostly zero, and their gradients from what is not zero.

A step of training has five products of the size ``rows × features × dim``: encode, decode, and the
gradients of activations, decoder and encoder. Only the first needs all features, to know which of
them are active. The other four are computed from active entries alone:

    decode      s_i   = Σ_j a_ij D_j       a bag of rows of D for each row of the batch
    activation  δa_ij = g_i · D_j          a dot product for each entry
    decoder     δD_j  = Σ_i a_ij g_i       a bag of rows of g for each feature
    encoder     δE_j  = Σ_i δz_ij x_i      a bag of rows of x for each feature

While many features are active, as at the beginning, dense products are faster: ``Dense`` has the
same methods as ``Sparse``, so that a loss is written once for both.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from whence.core.once import once

# of entries, which are fewer than 2**31 in a batch: torch takes longer with larger numbers
INDEX = torch.int32
# bytes of a table whose rows are picked in no order, and columns: fewer are not worth a pass
CACHED, FEWEST_COLUMNS = 1_600_000, 64
SMALL = 2**16  # numbers below it are sorted in one pass of numpy


@dataclass(frozen=True, eq=False)
class Sparse:
    """Which activations of some rows may differ from zero, row by row.

    Row ``i`` has the features ``features[offsets[i] : offsets[i + 1]]``.

    >>> offsets, features = torch.tensor([0, 2, 3]), torch.tensor([0, 3, 1])
    >>> at = Sparse(offsets.int(), features.int(), size=4)
    >>> at.decode(torch.tensor([1.0, 2.0, 5.0]), torch.eye(4))
    tensor([[1., 0., 0., 2.],
            [0., 5., 0., 0.]])
    """

    offsets: Int[Tensor, " row_and_one"]
    features: Int[Tensor, " entry"]
    size: int

    @once
    def rows(self) -> Int[Tensor, " entry"]:
        """The row of each entry."""
        counts = self.offsets.diff()
        numbers = torch.arange(len(counts), dtype=self.offsets.dtype, device=self.offsets.device)
        return torch.repeat_interleave(numbers, counts, output_size=len(self.features))

    @once
    def by_feature(self) -> _ByFeature:
        """The same entries, feature by feature."""
        order = _stable_order(self.features, self.size)
        counts = torch.bincount(self.features, minlength=self.size)
        return _ByFeature(order, self.rows.index_select(0, order), offsets_of(counts))

    def pre(
        self,
        rows: Float[Tensor, "row dim"],
        encoder: Float[Tensor, "feature dim"],
        bias: Float[Tensor, " feature"],
        values: Float[Tensor, " entry"],
    ) -> Float[Tensor, " entry"]:
        """The pre-activations ``values``, which were computed before, with their gradient."""
        return _SparsePre.apply(rows, encoder, bias, values, self)  # type: ignore[return-value]

    def decode(
        self, values: Float[Tensor, " entry"], decoder: Float[Tensor, "feature dim"]
    ) -> Float[Tensor, "row dim"]:
        """``Σ_j values_ij decoder_j`` for each row."""
        return _SparseDecode.apply(values, decoder, self)  # type: ignore[return-value]

    def missed(
        self,
        values: Float[Tensor, " entry"],
        decoder: Float[Tensor, "feature dim"],
        bias: Float[Tensor, " dim"],
        rows: Float[Tensor, "row dim"],
    ) -> tuple[Float[Tensor, ""], Float[Tensor, "row dim"]]:
        """``Σ_i ‖x_i − s_i‖²`` with ``s = decode(values) + bias``, and the errors ``x − s``.

        The errors have no gradient: they are there to be looked at.
        """
        return _SparseMissed.apply(values, decoder, bias, rows, self)  # type: ignore[return-value]

    def between(self, begin: int, end: int) -> tuple[Sparse, Bool[Tensor, " entry"]]:
        """The entries of the features from ``begin`` to before ``end``, and which of all they are.

        Their features are counted from ``begin``.
        """
        chosen = (self.features >= begin) & (self.features < end)
        counts = torch.bincount(self.rows[chosen], minlength=len(self.offsets) - 1)
        return Sparse(offsets_of(counts), self.features[chosen] - begin, end - begin), chosen

    def of(self, numbers: Float[Tensor, " feature"]) -> Float[Tensor, " entry"]:
        """The number of each entry's feature."""
        return numbers.index_select(0, self.features)

    def weighed(
        self, values: Float[Tensor, " entry"], numbers: Float[Tensor, " feature"]
    ) -> Float[Tensor, ""]:
        """``Σ_ij values_ij numbers_j``."""
        return (values * self.of(numbers)).sum()

    def fired(self, values: Float[Tensor, " entry"]) -> Bool[Tensor, " feature"]:
        """Which features are above zero anywhere."""
        counts = torch.bincount(self.features, (values > 0).to(values.dtype), minlength=self.size)
        return counts > 0


@dataclass(frozen=True, eq=False)
class Dense:
    """Every activation of some rows: the same methods as ``Sparse``, with dense products."""

    def pre(
        self,
        rows: Float[Tensor, "row dim"],
        encoder: Float[Tensor, "feature dim"],
        bias: Float[Tensor, " feature"],
        values: Float[Tensor, "row feature"],
    ) -> Float[Tensor, "row feature"]:
        """The pre-activations ``values``, which were computed before, with their gradient."""
        return _DensePre.apply(rows, encoder, bias, values)  # type: ignore[return-value]

    def decode(
        self, values: Float[Tensor, "row feature"], decoder: Float[Tensor, "feature dim"]
    ) -> Float[Tensor, "row dim"]:
        """``Σ_j values_ij decoder_j`` for each row."""
        return values @ decoder

    def missed(
        self,
        values: Float[Tensor, "row feature"],
        decoder: Float[Tensor, "feature dim"],
        bias: Float[Tensor, " dim"],
        rows: Float[Tensor, "row dim"],
    ) -> tuple[Float[Tensor, ""], Float[Tensor, "row dim"]]:
        """``Σ_i ‖x_i − s_i‖²`` with ``s = decode(values) + bias``, and the errors ``x − s``."""
        error = rows - (self.decode(values, decoder) + bias)
        return squared(error), error.detach()

    def of(self, numbers: Float[Tensor, " feature"]) -> Float[Tensor, " feature"]:
        """The number of each feature, the same in all rows."""
        return numbers

    def weighed(
        self, values: Float[Tensor, "row feature"], numbers: Float[Tensor, " feature"]
    ) -> Float[Tensor, ""]:
        """``Σ_ij values_ij numbers_j``, without another tensor as large as ``values``."""
        return values.sum(dim=0) @ numbers

    def fired(self, values: Float[Tensor, "row feature"]) -> Bool[Tensor, " feature"]:
        """Which features are above zero anywhere."""
        return (values > 0).any(dim=0)


At = Sparse | Dense


@dataclass(frozen=True, eq=False)
class _ByFeature:
    order: Int[Tensor, " entry"]  # of the entries
    rows: Int[Tensor, " entry"]
    offsets: Int[Tensor, " feature_and_one"]

    def summed(
        self, rows: Float[Tensor, "row dim"], weights: Float[Tensor, " entry"]
    ) -> Float[Tensor, "feature dim"]:
        """For each feature, the sum of its rows, each times the weight of the entry."""
        return _bags(rows, self.rows, self.offsets, weights.index_select(0, self.order))


def _bags(
    table: Float[Tensor, "choice dim"],
    choices: Int[Tensor, " entry"],
    offsets: Int[Tensor, " bag_and_one"],
    weights: Float[Tensor, " entry"],
) -> Float[Tensor, "bag dim"]:
    """For each bag, the weighted sum of the rows of ``table`` that are in it.

    On a processor a few columns come after the other: rows are picked in no order, and so many of
    them stay in the cache. Each number is summed as it would be with all columns at once.
    """

    def summed(columns: Tensor) -> Tensor:
        return torch.nn.functional.embedding_bag(
            choices,
            columns,
            offsets,
            mode="sum",
            per_sample_weights=weights,
            include_last_offset=True,
        )

    dim = table.shape[1]
    width = _columns_at_once(table)
    if width >= dim:
        return summed(table)
    sums = table.new_empty(len(offsets) - 1, dim)
    for begin in range(0, dim, width):
        columns = slice(begin, min(dim, begin + width))
        sums[:, columns] = summed(table[:, columns])
    return sums


def _columns_at_once(table: Float[Tensor, "choice dim"]) -> int:
    """How many columns of a table fit the cache; all where it is no processor's."""
    if table.device.type != "cpu":
        return table.shape[1]
    fitting = CACHED // (table.element_size() * max(1, len(table)))
    return max(FEWEST_COLUMNS, fitting // FEWEST_COLUMNS * FEWEST_COLUMNS)


def _dots(
    rows: Float[Tensor, "row dim"], decoder: Float[Tensor, "feature dim"], at: Sparse
) -> Float[Tensor, " entry"]:
    """``rows_i · decoder_j`` for each entry."""
    _announce_csr()
    pattern = torch.sparse_csr_tensor(
        at.offsets,
        at.features,
        rows.new_zeros(len(at.features)),  # beta=0 multiplies what is there, were it NaN
        (len(rows), at.size),
        check_invariants=False,
    )
    return torch.sparse.sampled_addmm(pattern, rows, decoder.T, beta=0.0).values()


@cache
def _announce_csr() -> None:
    """torch says once in a process that sparse tensors are new: not while somebody trains."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nothing = torch.zeros(1, dtype=torch.int64)
        torch.sparse_csr_tensor(nothing, nothing[:0], torch.zeros(0), (0, 1))


def squared(error: Float[Tensor, "row dim"]) -> Float[Tensor, ""]:
    """The sum of squares, whose gradient is one pass over the error.

    >>> squared(torch.tensor([[3.0, 4.0]]))
    tensor(25.)
    """
    return _Squared.apply(error)  # type: ignore[return-value]


def lengths(directions: Float[Tensor, "feature dim"]) -> Float[Tensor, " feature"]:
    """The length of each direction, whose gradient is one pass; one of length 0 has none.

    >>> lengths(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([5., 0.])
    """
    return _Lengths.apply(directions)  # type: ignore[return-value]


def offsets_of(counts: Int[Tensor, " bag"]) -> Int[Tensor, " bag_and_one"]:
    """Where each bag begins among the entries of all, and where the last one ends.

    >>> offsets_of(torch.tensor([2, 0, 1])).tolist()
    [0, 2, 2, 3]
    """
    return torch.nn.functional.pad(counts.cumsum(0), (1, 0)).to(INDEX)


def _stable_order(numbers: Int[Tensor, " entry"], size: int) -> Int[Tensor, " entry"]:
    """``argsort`` of numbers below ``size``; equal ones stay in order."""
    if numbers.device.type == "cpu" and size <= SMALL:
        return torch.from_numpy(np.argsort(numbers.numpy().astype(np.uint16), kind="stable"))
    return numbers.argsort(stable=True)


class _Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, error: Tensor) -> Tensor:
        ctx.save_for_backward(error)
        flat = error.flatten()
        return flat.dot(flat)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (error,) = ctx.saved_tensors
        return error * (2 * gradients[0])


class _Lengths(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, directions: Tensor) -> Tensor:
        norms = directions.norm(dim=1)
        ctx.save_for_backward(directions, norms)
        return norms

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        directions, norms = ctx.saved_tensors
        over = torch.where(norms > 0, gradients[0] / norms, 0)
        return directions * over[:, None]


class _SparseDecode(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, decoder: Tensor, at: Sparse) -> Tensor:
        ctx.save_for_backward(values, decoder)
        ctx.at = at
        return _bags(decoder, at.features, at.offsets, values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        values, decoder = ctx.saved_tensors
        wants_values, wants_decoder, _ = ctx.needs_input_grad
        of_values = _dots(gradient, decoder, ctx.at) if wants_values else None
        of_decoder = ctx.at.by_feature.summed(gradient, values) if wants_decoder else None
        return of_values, of_decoder, None


class _SparseMissed(torch.autograd.Function):
    """One tensor of the batch's size is made, and no other: its factor 2 goes with the entries."""

    @staticmethod
    def forward(
        ctx: Any, values: Tensor, decoder: Tensor, bias: Tensor, rows: Tensor, at: Sparse
    ) -> tuple[Tensor, Tensor]:
        error = _bags(decoder, at.features, at.offsets, values)
        torch.sub(rows, error, out=error).sub_(bias)
        ctx.save_for_backward(values, decoder, error)
        ctx.at = at
        ctx.mark_non_differentiable(error)
        flat = error.flatten()
        return flat.dot(flat), error

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        factor = -2 * gradients[0]
        values, decoder, error = ctx.saved_tensors
        wants_values, wants_decoder, wants_bias, _, _ = ctx.needs_input_grad
        of_values = of_decoder = of_bias = None
        if wants_values:
            of_values = _dots(error, decoder, ctx.at).mul_(factor)
        if wants_decoder:
            of_decoder = ctx.at.by_feature.summed(error, values * factor)
        if wants_bias:
            of_bias = error.sum(dim=0).mul_(factor)
        return of_values, of_decoder, of_bias, None, None


class _SparsePre(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, _encoder: Tensor, _bias: Tensor, values: Tensor, at: Sparse
    ) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.at = at
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        (rows,) = ctx.saved_tensors
        at = ctx.at
        of_encoder = at.by_feature.summed(rows, gradient)
        of_bias = torch.zeros(at.size, dtype=rows.dtype, device=rows.device)
        of_bias.index_add_(0, at.features, gradient)
        return None, of_encoder, of_bias, None, None


class _DensePre(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, _encoder: Tensor, _bias: Tensor, values: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        (rows,) = ctx.saved_tensors
        return None, gradient.T @ rows, gradient.sum(dim=0), None
