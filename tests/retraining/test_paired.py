"""Gains of one kind of models over another, on the same texts."""

from __future__ import annotations

import numpy as np
import pytest

from whence.core.bootstrap import means_together, wilson
from whence.retraining.paired import gains


@pytest.mark.parametrize("texts", [1, 10, 200])
@pytest.mark.parametrize("always", [-1.0, 0.0, 1.0])
def test_equal_differences_are_not_sure(texts: int, always: float) -> None:
    """The enemy: a bootstrap of equal numbers, whose interval has no width."""
    (gain,) = gains(np.full((texts, 1), always))
    _, unseen = wilson(0.0, texts)
    assert gain.low <= max(always - unseen * (1 + always), -1.0)
    assert gain.high >= min(always + unseen * (1 - always), 1.0)
    assert gain.high - gain.low >= 2 * unseen - 1e-12 or texts < 5


def test_one_text_that_differs_makes_nothing_surer() -> None:
    none, one = np.zeros((2, 40, 1))
    one[3] = 1.0
    (without,), (with_one,) = gains(none), gains(one)
    assert with_one.high > without.high
    assert with_one.low == pytest.approx(0.025 - 1.025 * wilson(0.0, 40)[1])


def test_where_many_texts_differ_it_is_the_bootstrap() -> None:
    """And with its seed: another one draws other texts."""
    values = np.random.default_rng(0).integers(-1, 2, size=(400, 3)).astype(float)
    expected = [mean.interval for mean in means_together(values, 7)]
    assert [(gain.low, gain.high) for gain in gains(values, 7)] == expected
    assert gains(values, 7) != gains(values, 8)
