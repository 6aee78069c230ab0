"""Sparse products equal dense ones, and their gradients too."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from whence.features import choosing, kernels
from whence.features.choosing import Encoder, above, largest_in_batch, largest_of_row
from whence.features.groups import Group
from whence.features.kernels import INDEX, Dense, Sparse, lengths, offsets_of, squared

EXACT: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12}


def random(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def some_entries(rows: int = 9, size: int = 7) -> tuple[Sparse, Tensor]:
    """Entries of a random mask; one row and one feature have none."""
    mask = random(rows, size, seed=5) > 0.3
    mask[3] = False
    mask[:, 2] = False
    features = mask.nonzero()[:, 1].to(INDEX)
    return Sparse(offsets_of(mask.sum(dim=1)), features, size), mask


def test_decoding_and_its_gradients_are_those_of_the_dense_product() -> None:
    # a wrong version: gradients of features and rows interchanged
    at, mask = some_entries()
    values = random(len(at.features)).requires_grad_()
    decoder = random(7, 4, seed=1).requires_grad_()
    weights = random(9, 4, seed=2)
    dense = torch.zeros(9, 7, dtype=torch.float64).masked_scatter(mask, values)
    (weights * (dense @ decoder)).sum().backward()
    expected = values.grad, decoder.grad
    values.grad = decoder.grad = None
    (weights * at.decode(values, decoder)).sum().backward()
    torch.testing.assert_close(values.grad, expected[0], **EXACT)
    torch.testing.assert_close(decoder.grad, expected[1], **EXACT)


def test_what_was_in_memory_before_does_not_matter() -> None:
    # a wrong version: an uninitialised tensor given to sampled_addmm with beta=0, which
    # multiplies it: NaN in training after some minutes
    at, _ = some_entries()
    decoder, weights = random(7, 4, seed=1), random(9, 4, seed=2)
    for _ in range(20):
        values = random(len(at.features)).requires_grad_()
        several = [torch.full((len(at.features),), torch.nan, dtype=torch.float64)] * 8
        del several
        (weights * at.decode(values, decoder)).sum().backward()
        assert values.grad is not None
        assert torch.isfinite(values.grad).all()


def test_squares_and_lengths_have_the_gradients_of_autograd() -> None:
    # a wrong version: the factor 2 left out; a direction of length 0 that gives NaN
    x = random(5, 3).requires_grad_()
    assert torch.autograd.gradcheck(squared, x)
    assert torch.autograd.gradcheck(lengths, x)
    nothing = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
    lengths(nothing).sum().backward()
    assert nothing.grad is not None
    assert (nothing.grad == 0).all()


@pytest.mark.parametrize("size", [64, 100, 1024])
@pytest.mark.parametrize("ties", [False, True])
def test_the_largest_of_a_row_are_those_of_topk(size: int, ties: bool) -> None:
    # a wrong version: the largest of each group, of which one may hold two of the k
    pre = random(50, size, seed=3).float()
    if ties:
        pre = (2 * pre).round()
    pre[0, :5] = torch.tensor([9.0, 8, 7, 6, 5])
    pre[0, size // 4] = 10.0  # where there are groups, together with feature 0
    values, features = largest_of_row(pre, 5)
    expected = pre.topk(5, dim=1).values
    torch.testing.assert_close(values.sort(dim=1, descending=True).values, expected, rtol=0, atol=0)
    torch.testing.assert_close(pre.gather(1, features), values, rtol=0, atol=0)
    assert all(len(set(row.tolist())) == 5 for row in features)


@pytest.mark.parametrize("rows", [10, 300])
def test_the_largest_of_a_batch_do_not_depend_on_the_guess(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a wrong version: a guess from the first rows that are larger than the rest, taken as it is
    x = random(rows, 6).float()
    x[:64] *= 10
    encoder = Encoder(random(40, 6, seed=1).float(), random(40, seed=2).float())
    part = largest_in_batch(x, encoder, 3, None, Group())
    pre = x @ encoder.weights.T + encoder.bias
    least = pre.flatten().sort(descending=True).values[3 * rows - 1]
    assert isinstance(part.at, Sparse)
    assert len(part.at.features) == 3 * rows
    assert float(part.pre.min()) == pytest.approx(float(least), rel=1e-5)

    monkeypatch.setattr(choosing, "_guess", lambda *_: 0.0)
    slower = largest_in_batch(x, encoder, 3, None, Group())
    assert isinstance(slower.at, Sparse)
    assert slower.at.features.tolist() == part.at.features.tolist()


@pytest.mark.parametrize(("fewest", "dense"), [(10, [10]), (4, [4, 4, 2])])
def test_blocks_with_many_entries_are_dense_and_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch, fewest: int, dense: list[int]
) -> None:
    # a wrong version: rows of sparse blocks put beside the entries of other rows
    monkeypatch.setattr(choosing, "BLOCK", 10 * 40)
    x = random(55, 6).float()
    x[10:20] += 100.0
    encoder = Encoder(random(40, 6, seed=1).abs().float(), torch.full((40,), -6.0))
    monkeypatch.setattr(choosing, "FEWEST_ROWS", fewest)
    pre = (x @ encoder.weights.T + encoder.bias).relu()
    seen: dict[str, list[torch.Tensor]] = {"Dense": [], "Sparse": []}
    for part in above(x, encoder, 0.0):
        # each in its turn: a dense part lies where the next block is written
        seen[type(part.at).__name__].append(part.at.decode(part.pre.relu(), torch.eye(40)))
    assert [len(rows) for rows in seen["Dense"]] == dense
    rest = torch.cat([pre[:10], pre[20:]])
    torch.testing.assert_close(torch.cat(seen["Sparse"]), rest, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(torch.cat(seen["Dense"]), pre[10:20], rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("at", [Dense(), None])
def test_weighed_is_the_sum_of_products_and_has_its_gradients(at: Dense | None) -> None:
    # would catch: a number that is taken from another feature, or a gradient that is not spread
    values, numbers = random(5, 7), random(7, seed=1)
    counts = torch.full((5,), 7)
    everywhere = at or Sparse(offsets_of(counts), torch.arange(7).repeat(5).int(), 7)

    def ours(values: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        return everywhere.weighed(values if at else values.flatten(), numbers)

    expected = (values * numbers).sum()
    torch.testing.assert_close(ours(values, numbers), expected)
    leaves = (values.requires_grad_(), numbers.requires_grad_())
    assert torch.autograd.gradcheck(ours, leaves)


@pytest.mark.parametrize("dim", [63, 64, 200])
def test_columns_one_after_the_other_are_those_of_all_at_once(
    monkeypatch: pytest.MonkeyPatch, dim: int
) -> None:
    # would catch: columns that are left out, written twice or to another place
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(30, dim, generator=generator)
    choices = torch.randint(0, 30, (50,), generator=generator, dtype=torch.int32)
    offsets = torch.tensor([0, 0, 7, 7, 50], dtype=torch.int32)
    weights = torch.randn(50, generator=generator)
    at_once = kernels._bags(table, choices, offsets, weights)
    monkeypatch.setattr(kernels, "CACHED", 1)
    assert kernels._columns_at_once(table) == kernels.FEWEST_COLUMNS
    assert torch.equal(kernels._bags(table, choices, offsets, weights), at_once)
    slowly = torch.stack([weights[a:b] @ table[choices[a:b]] for a, b in pairwise(offsets)])
    torch.testing.assert_close(at_once, slowly)
