"""What a training will come to, before it begins: features that will never wake, time, bytes.

Where the activations lie far to one side of zero, a random direction points away from all of them
half of the time: its feature is never active, has no gradient, and stays dead. How many that will
be is counted on some rows, with random directions, as they are and with the mean taken away.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from whence.core.durations import about
from whence.core.percent import percent
from whence.core.sizes import human
from whence.features.cache import Moments

DIRECTIONS = 512
ROWS = 8192
# of centring: where so much smaller a share would be dead, it is worth it
WORTH_CENTRING = 0.01


@dataclass(frozen=True)
class Forecast:
    """What is known before the first step.

    ``ratio`` is the length of the mean activation in spreads. ``asleep`` is the share of random
    directions along which no row lies, and ``asleep_centred`` the same with the mean taken away:
    features that begin so cannot learn. ``seconds`` are of the steps, at the pace of the first ones
    once they are warm, and ``seconds_of_measuring`` of the quality on held-out text after them.
    """

    rows: int
    ratio: float
    asleep: float
    asleep_centred: float
    centred: bool
    seconds: float
    bytes_of_activations: int
    bytes_of_training: int
    seconds_of_measuring: float = 0.0

    def __str__(self) -> str:
        """Two sentences for people.

        Said once, before the first step of a training.

        >>> str(Forecast(9000, 3.0, 0.4, 0.004, True, 40.0, 1000, 1000, 9.0)).split("; ")[1]
        'their mean is 3 spreads long, so 40 % of features would never be active'
        """
        asleep = self.asleep_centred if self.centred else self.asleep
        first = (
            f"{self.rows:,} activations; their mean is {self.ratio:.2g} spreads long, so "
            f"{percent(self.asleep)} of features would never be active"
        )
        if self.centred:
            first += f"; the mean is taken away, which leaves {percent(asleep)}"
        return (
            f"{first}. Its steps will take {about(self.seconds)}, and measuring its quality beside "
            f"simpler things {about(self.seconds_of_measuring)}; "
            f"{human(self.bytes_of_activations)} of activations and "
            f"{human(self.bytes_of_training)} of training state on the disk."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def asleep(
    rows: Float[Tensor, "row dim"], centre: Float[Tensor, " dim"] | None = None, seed: int = 0
) -> float:
    """The share of random directions along which no row lies on the positive side.

    >>> far = torch.full((100, 8), 5.0)
    >>> asleep(far) > 0.3, asleep(far + torch.randn(100, 8), far[0]) == 0
    (True, True)
    """
    generator = torch.Generator().manual_seed(seed)
    directions = torch.randn(DIRECTIONS, rows.shape[1], generator=generator)
    some = rows[:ROWS].float()
    if centre is not None:
        some = some - centre.float()
    largest = (some @ directions.T).amax(0)
    return float((largest <= 0).double().mean())


def should_centre(rows: Float[Tensor, "row dim"], moments: Moments) -> bool:
    """Whether taking the mean away would leave fewer features dead from the beginning."""
    return asleep(rows) - asleep(rows, moments.mean) > WORTH_CENTRING
