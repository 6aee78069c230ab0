"""How a result was made: enough to make it again. Without provenance nothing is saved."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Provenance:
    """The model by name, class and a fingerprint of its weights, and the versions that computed with it."""

    model: str
    architecture: str
    fingerprint: str
    revision: str | None
    dtype: str
    device: str
    attention: str  # "sdpa", "captured" …: by which path the attention was computed
    versions: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)
