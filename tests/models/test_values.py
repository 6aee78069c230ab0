"""What targets read from logits: numbers that are known."""

from __future__ import annotations

import pytest
import torch

from whence.core.context_use import kl_divergence
from whence.models.values import divergence


def test_a_divergence_is_that_of_the_facts() -> None:
    # would catch: the other direction, which is 0.3681
    now = torch.tensor([[0.9, 0.1]], dtype=torch.float64).log()
    reference = torch.tensor([[0.5, 0.5]], dtype=torch.float64).log()
    assert float(divergence(now, reference)) == pytest.approx(0.5108, abs=5e-5)
    assert float(divergence(reference, now)) == pytest.approx(0.3681, abs=5e-5)
    assert float(divergence(now, now)) == pytest.approx(0.0, abs=1e-9)


def test_what_is_impossible_adds_nothing_to_a_divergence() -> None:
    """Would catch: 0 · (inf − inf), as a number or as a slope."""
    logits = torch.tensor([[1.0, 2.0, -torch.inf]], requires_grad=True)
    reference = torch.tensor([[0.5, 0.5, 0.0]]).log()
    found = divergence(logits, reference)
    without, now = reference.double().numpy(), logits.detach().double().log_softmax(-1).numpy()
    assert found.item() == pytest.approx(kl_divergence(without, now).item(), abs=1e-6)
    assert divergence(logits, logits.log_softmax(-1)).item() == pytest.approx(0.0, abs=1e-7)
    (slope,) = torch.autograd.grad(found.sum(), logits)
    assert slope[0, 2] == 0
    assert slope.isfinite().all()
