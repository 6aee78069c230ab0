"""What targets read from logits: numbers that are known."""

from __future__ import annotations

import pytest
import torch

from whence.models.values import divergence


def test_a_divergence_is_that_of_the_facts() -> None:
    # would catch: the other direction, which is 0.3681
    now = torch.tensor([[0.9, 0.1]], dtype=torch.float64).log()
    reference = torch.tensor([[0.5, 0.5]], dtype=torch.float64).log()
    assert float(divergence(now, reference)) == pytest.approx(0.5108, abs=5e-5)
    assert float(divergence(reference, now)) == pytest.approx(0.3681, abs=5e-5)
    assert float(divergence(now, now)) == pytest.approx(0.0, abs=1e-9)
