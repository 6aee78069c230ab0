"""How a result was made: enough to make it again. Without provenance nothing is saved."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata
from typing import Any


@dataclass(frozen=True)
class Provenance:
    """The model by name, class and a fingerprint of its weights, and the versions in use."""

    model: str
    architecture: str
    fingerprint: str
    revision: str | None
    dtype: str
    device: str
    # by which path the attention was computed: "sdpa", "captured" …
    attention: str
    versions: dict[str, str]
    # what torch.autocast computed in, where it was on: "bfloat16" …
    # (the first results of whence 0.1 do not say)
    autocast: str | None = None

    @classmethod
    def of(cls, model: Any, attention: str, *packages: str) -> Provenance:
        """Of a loaded model, with the versions of those ``packages`` that are installed."""
        from whence import __version__

        versions = {"whence": __version__}
        for package in ("torch", "transformers", *packages):
            version = _version(package)
            if version:
                versions[package] = version
        return cls(
            model=model.name,
            architecture=type(model.hf).__name__,
            fingerprint=model.fingerprint,
            revision=model.revision,
            dtype=str(model.dtype).removeprefix("torch."),
            device=str(model.device),
            attention=attention,
            versions=versions,
            autocast=model.autocast,
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
