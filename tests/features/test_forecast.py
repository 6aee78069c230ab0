"""How many features will never wake: counted, against the share that a Gaussian cloud must have."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from whence.features import timing
from whence.features.cache import Moments
from whence.features.forecast import Forecast, asleep, should_centre
from whence.features.timing import seconds_of_a_step


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
    assert "5 spreads long, so 25 % of features would never be active" in told
    assert "taken away, which leaves 0 %" in told
    assert "Its steps will take about 1.5 min, and measuring its quality" in told
    assert "2 MB of activations" in told
    plain = str(Forecast(1000, 0.1, 0.0, 0.0, False, 90.0, 2_000_000, 30_000))
    assert "taken away" not in plain


class Clock:
    """A clock that stands still but for the work that is done by it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(timing.time, "perf_counter", lambda: self.now)

    def works(self, *seconds: float) -> Callable[[], None]:
        """Work whose calls take so long; the last number is that of all later ones."""
        left = list(seconds)

        def work() -> None:
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return work


def test_what_is_loaded_once_is_no_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    # of a real training of 512 features: 260 ms, 36, 23, 24, then 10 to 16; would catch: the first
    # step times their number, 30 times too much
    clock = Clock(monkeypatch)
    work = clock.works(0.26, 0.036, 0.023, 0.01, 0.3, 0.012, 0.01, 0.011)
    assert seconds_of_a_step(work, 100) == pytest.approx(0.011)
    assert seconds_of_a_step(clock.works(0.26, 0.03, 0.02, 0.01), 1) == pytest.approx(0.01)


@pytest.mark.usefixtures("unchecked")
def test_measuring_is_forecast_from_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    # would catch: the time of one passage times their number, without what a batch saves; a time
    # that leaves out the rows on which features are counted
    clock = Clock(monkeypatch)
    pieces = [SimpleNamespace(passage=range(100)) for _ in range(200)]

    def measured(model: Any, some: Any, *more: Any) -> None:
        clock.now += 0.05 + 0.001 * sum(len(piece.passage) for piece in some)

    def counted(autoencoder: Any, batches: list[torch.Tensor]) -> None:
        clock.now += 0.0001 * sum(map(len, batches))

    monkeypatch.setattr(timing, "measure", measured)
    monkeypatch.setattr(timing, "use_of", counted)
    monkeypatch.setattr(timing, "stand_ins_of", lambda *_: [])
    autoencoder = SimpleNamespace(about=SimpleNamespace(layer=0))
    cache = SimpleNamespace(
        wanted=SimpleNamespace(kind="decoder", special=False),
        rows=50_000,
        states=lambda _: torch.zeros(3000, 2),
    )
    given: Any = (None, autoencoder, cache, SimpleNamespace(mean=None), pieces, 4)
    told = timing.seconds_of_measuring(*given)
    groups = 20_000 / 2_100
    assert told == pytest.approx(groups * 0.05 + 20.0 + 5.0, rel=1e-6)
