"""What costs no training: each stand-in against its closed form."""

from __future__ import annotations

import pytest
import torch

from whence.core.features import About
from whence.features.autoencoder import Autoencoder
from whence.features.cache import Moments
from whence.features.rules import Relu
from whence.features.stand_ins import (
    by_components,
    by_features,
    by_neurons,
    by_random_directions,
)


def cloud(rows: int = 400, dim: int = 6) -> tuple[torch.Tensor, Moments]:
    generator = torch.Generator().manual_seed(0)
    mixing = torch.randn(dim, dim, generator=generator)
    some = torch.randn(rows, dim, generator=generator) @ mixing + 3
    centred = (some - some.mean(0)).double()
    return some, Moments(rows, some.double().mean(0), centred.T @ centred / rows, 1.0, 1.0)


def exact(dim: int) -> Autoencoder:
    """Every hidden state comes out as it went in: W = [I; −I]."""
    both = torch.cat([torch.eye(dim), -torch.eye(dim)])
    about = About("none", "", 0, "encoder", "relu", size=2 * dim, dim=dim)
    return Autoencoder(both, torch.zeros(2 * dim), both, torch.zeros(dim), Relu(), about)


def explained(rows: torch.Tensor, restored: torch.Tensor) -> float:
    missed = (rows - restored).double().square().sum()
    return 1 - float(missed / (rows - rows.mean(0)).double().square().sum())


@pytest.mark.parametrize("number", [1, 3, 6])
def test_components_explain_the_sum_of_their_eigenvalues(number: int) -> None:
    # would catch: the smallest components; a mean that is left out
    rows, moments = cloud()
    restored, kept = by_components(moments, number).of(rows)
    values = torch.linalg.eigvalsh(moments.covariance).flip(0)
    expected = float(values[:number].sum() / values.sum())
    assert explained(rows, restored) == pytest.approx(expected, abs=1e-5)
    assert set(kept.tolist()) == {number}


def test_as_many_directions_as_dimensions_restore_everything() -> None:
    rows, moments = cloud()
    for stand_in in (
        by_random_directions(moments, 6, 6),
        by_neurons(moments, 6),
        by_features(exact(6)),
    ):
        restored, _ = stand_in.of(rows)
        torch.testing.assert_close(restored, rows, atol=1e-3, rtol=1e-3)


def test_random_directions_get_the_best_coefficients() -> None:
    # by numpy's least squares, row by row; would catch: inner products in place of coefficients
    rows, moments = cloud()
    number, size = 3, 20
    restored, _ = by_random_directions(moments, size, number, seed=5).of(rows[:10])
    directions = torch.randn(size, 6, generator=torch.Generator().manual_seed(5))
    directions /= directions.norm(dim=1, keepdim=True)
    for row, ours in zip(rows[:10] - moments.mean.float(), restored, strict=True):
        nearest = (directions @ row).abs().topk(number).indices
        basis = directions[nearest].T
        best = torch.linalg.lstsq(basis, row[:, None]).solution
        expected = (basis @ best)[:, 0] + moments.mean.float()
        torch.testing.assert_close(ours, expected, atol=1e-3, rtol=1e-3)


def test_neurons_keep_the_largest_and_the_mean_of_the_rest() -> None:
    rows, moments = cloud()
    restored, kept = by_neurons(moments, 2).of(rows)
    assert ((restored - rows).abs() < 1e-5).sum(1).min() >= 2
    from_mean = (restored - moments.mean.float()).abs() > 1e-5
    assert from_mean.sum(1).max() == 2
    assert set(kept.tolist()) == {2}


def test_features_say_how_many_are_active() -> None:
    _, kept = by_features(exact(3)).of(torch.tensor([[1.0, -2.0, 0.0], [0.0, 0.0, 0.0]]))
    assert kept.tolist() == [2, 0]
