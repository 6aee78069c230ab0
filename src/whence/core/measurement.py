"""A Measurement: what one metric says of one attribution, beside random rankings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from whence.core.evidence import Verdict
from whence.core.percent import digits
from whence.core.showing import visible
from whence.core.stored import Stored, as_stored
from whence.core.target import Target


@dataclass(frozen=True)
class Measurement:
    """The value of a metric, and what makes it mean something.

    ``value`` is the metric of the attribution's ranking. ``random_low`` to ``random_high`` hold
    95 % of the random rankings' values. ``beaten`` is the share of random rankings that do worse
    (a half is chance), with a 95 % ``interval`` (Wilson's); ``p`` is the chance that a random
    ranking does as well. ``forwards`` counts the passes, those of the random rankings among them.
    """

    metric: str
    version: int
    settings: Mapping[str, Any]
    better: Literal["higher", "lower"]
    method: str
    target: Target
    removal: str
    value: float
    random_mean: float
    random_low: float
    random_high: float
    rankings: int
    beaten: float
    interval: tuple[float, float]
    p: float
    verdict: Verdict
    seed: int
    forwards: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        stored = asdict(self)
        stored["settings"] = dict(self.settings)
        stored["interval"] = list(self.interval)
        stored["verdict"] = str(self.verdict)
        return stored

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any] | Stored) -> Measurement:
        """What ``to_dict`` gave."""
        return as_stored(stored, "measurement").record(cls)

    def __str__(self) -> str:
        low, high = self.interval
        return visible(
            f"{self.metric} of {self.method}: {self.value:.3g} ({self.better} is better), "
            f"random rankings {self.random_low:.3g} to {self.random_high:.3g}. "
            f"It beats {digits(self.beaten)}% of them "
            f"(95 % interval {digits(low)}% to {digits(high)}%): {self.verdict}."
        )
