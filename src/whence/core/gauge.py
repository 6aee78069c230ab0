"""A Gauge: how far texts lie from the data once units are removed from them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from whence.core.showing import visible


@dataclass(frozen=True)
class Gauge:
    """How far out a removal takes texts, as the model itself represents them.

    ``like_data`` holds, for each share of units removed, the share of *whole* texts that lie
    further from the other texts than the median text with units removed: 0.5 looks like data, 0 is
    further out than every text of the data. Near 1 the perturbed texts lie closer to the middle
    than texts do: they have become alike. ``distance`` is the median Mahalanobis distance of the
    perturbed texts, and ``distance_of_whole`` that of whole ones. Made by ``whence.removal_gauge``.
    """

    removal: str
    shares: tuple[float, ...]
    like_data: tuple[float, ...]
    distance: tuple[float, ...]
    distance_of_whole: float
    texts: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """Said of each removal that was gauged.

        ``removal mask, 40 texts: 20% removed 0.48 (0.5: like data, …)``
        """
        shown = zip(self.shares, self.like_data, strict=True)
        parts = [f"{share:.0%} removed {value:.2f}" for share, value in shown]
        return visible(
            f"removal {self.removal}, {self.texts} text{'' if self.texts == 1 else 's'}: "
            f"{', '.join(parts)} "
            "(0.5: like data, 0: further out than every text)"
        )
