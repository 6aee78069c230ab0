"""How many features will never wake: counted, against the share that a Gaussian cloud must have."""

from __future__ import annotations

from math import sqrt

import pytest
import torch

from whence.features.cache import Moments
from whence.features.forecast import Forecast, asleep, should_centre


def cloud(ratio: float, rows: int = 2000, dim: int = 64) -> tuple[torch.Tensor, Moments]:
    """Rows around a mean that is so many spreads long."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(rows, dim, generator=generator)
    mean = torch.randn(dim, generator=generator)
    mean *= ratio * sqrt(dim) / mean.norm()
    cloud = noise + mean
    centred = cloud - cloud.mean(0)
    covariance = (centred.T @ centred / rows).double()
    return cloud, Moments(rows, cloud.mean(0).double(), covariance, 1.0, 1.0)


@pytest.mark.parametrize("ratio", [1.0, 3.0, 10.0])
def test_the_share_is_that_of_a_gaussian_cloud(ratio: float) -> None:
    # along a random direction the mean is N(0, ratio²) spreads from zero, and the largest
    # of 2,000 rows 3.43 spreads above the mean: asleep is P(N(0, ratio²) < −3.43).
    # would catch: counting the other half; the mean's length without its spread
    rows, moments = cloud(ratio)
    assert moments.ratio == pytest.approx(ratio, rel=0.05)
    reach = 3.43  # the mean of the largest of 2,000 draws, by simulation
    expected = float(torch.special.ndtr(torch.tensor(-reach / ratio)))
    # another seed than that of the rows, or directions would be rows
    assert asleep(rows, seed=1) == pytest.approx(expected, abs=4 * sqrt(0.25 / 512))
    assert asleep(rows, moments.mean, seed=1) == 0


def test_centring_is_advised_where_it_helps() -> None:
    assert not should_centre(*cloud(0.3))
    assert should_centre(*cloud(5.0))


def test_the_forecast_says_what_will_be_done() -> None:
    told = str(Forecast(1000, 5.0, 0.25, 0.0, True, 90.0, 2_000_000, 30_000))
    assert "5 spreads long, so 25% of features would never be active" in told
    assert "taken away, which leaves 0%" in told
    assert "1.5 min" in told
    assert "2 MB of activations" in told
    plain = str(Forecast(1000, 0.1, 0.0, 0.0, False, 90.0, 2_000_000, 30_000))
    assert "taken away" not in plain
