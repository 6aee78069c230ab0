"""About: what an autoencoder was trained on, and how. Without it no autoencoder is saved."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from whence.core.stored import Stored, as_stored


@dataclass(frozen=True)
class About:
    """Of which model and layer the features are, how they were trained, and on what.

    ``layer`` is the number of a block, from 0: its features are those of the residual stream
    *after* that block. ``kind`` says whether it is a block of the encoder or of the decoder.
    ``peak`` is the largest activation times decoder norm that each feature had in the training
    data, where it is known.

    >>> about = About("writer", "0123", 2, "decoder", "relu", size=96, dim=24)
    >>> About.from_dict(about.to_dict()) == about
    True
    """

    model: str
    fingerprint: str
    layer: int
    kind: str
    variant: str
    size: int
    dim: int
    settings: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    peak: tuple[float, ...] | None = None
    version: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        stored = asdict(self)
        if self.peak is not None:
            stored["peak"] = list(self.peak)
        return stored

    @classmethod
    def from_dict(cls, stored: dict[str, Any] | Stored) -> About:
        """What ``to_dict`` gave; a wrong value is refused by its path."""
        return as_stored(stored, "description of an autoencoder").record(cls)
