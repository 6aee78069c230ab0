"""How a result was made: enough to make it again. Without provenance nothing is saved."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata
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

    @classmethod
    def of(cls, model: Any, attention: str, *packages: str) -> Provenance:
        """Of a loaded model, with the versions of the packages among ``packages`` that are installed."""
        from whence import __version__

        found = {package: _version(package) for package in ("torch", "transformers", *packages)}
        return cls(
            model=model.name,
            architecture=type(model.hf).__name__,
            fingerprint=model.fingerprint,
            revision=model.revision,
            dtype=str(model.dtype).removeprefix("torch."),
            device=str(model.device),
            attention=attention,
            versions={
                "whence": __version__,
                **{package: version for package, version in found.items() if version},
            },
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


@cache
def _version(package: str) -> str:
    """Empty for what is not installed, or is no package's name at all."""
    try:
        return metadata.version(package)
    except (metadata.PackageNotFoundError, ValueError):
        return ""
