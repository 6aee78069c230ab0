"""Kullback–Leibler and Jensen–Shannon against scipy and by hand."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy

from whence.theory import jsd, kl
from whence.theory.divergence import MOST


def distributions() -> tuple[torch.Tensor, torch.Tensor]:
    p, q = np.random.default_rng(0).dirichlet(np.ones(6), size=(2, 20))
    return torch.from_numpy(p), torch.from_numpy(q)


def test_the_direction_of_kl() -> None:
    """FACTS: KL((.9, .1) || (.5, .5)) = .3681, reverse .5108. Exchanged, both would be wrong."""
    adversary, base = torch.tensor([0.9, 0.1]), torch.tensor([0.5, 0.5])
    assert float(kl(adversary, base)) == pytest.approx(0.3681, abs=5e-5)
    assert float(kl(base, adversary)) == pytest.approx(0.5108, abs=5e-5)


def test_both_are_those_of_scipy() -> None:
    """Whose jensenshannon is the square root: without the square this would fail."""
    p, q = distributions()
    np.testing.assert_allclose(kl(p, q), entropy(p, q, axis=1), atol=1e-12)
    np.testing.assert_allclose(jsd(p, q), jensenshannon(p, q, axis=1) ** 2, atol=1e-12)


def test_jsd_is_from_nothing_to_ln_2_in_nats() -> None:
    """In bits the largest would be 1; without a floor, rounding would go below 0."""
    p = torch.tensor([0.7, 0.3, 0.0, 0.0])
    q = torch.tensor([0.0, 0.0, 0.4, 0.6])
    assert float(jsd(p, q)) == pytest.approx(log(2)) == MOST
    assert float(jsd(p, p)) == 0
    near = p + torch.tensor([1e-7, -1e-7, 0.0, 0.0])
    assert 0 <= float(jsd(p, near)) < 1e-6
    one, other = distributions()
    torch.testing.assert_close(jsd(one, other), jsd(other, one))


@pytest.mark.parametrize("apart", [kl, jsd])
def test_padding_gives_gradients_that_are_numbers(apart) -> None:
    """log 0 at a place without a word would make every gradient of the row not a number."""
    logits = torch.randn(3, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    present = torch.tensor([[True] * 4, [True, True, False, False], [True] + [False] * 3])
    weights = logits.masked_fill(~present, -torch.inf).softmax(-1)
    even = present / present.sum(-1, keepdim=True)
    apart(weights, even).sum().backward()
    assert logits.grad is not None
    assert bool(logits.grad.isfinite().all())
    assert bool((logits.grad[0] != 0).all())  # else this test could not fail
