"""Sparse autoencoders: directions of a hidden layer that are active one by one, and what they do.

What is public here is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_PUBLIC = {
    "clamp": "whence.features.steering",
    "compare": "whence.features.explaining",
    "dashboard": "whence.features.showing",
    "explain": "whence.features.explaining",
    "feature_game": "whence.features.game",
    "mirror": "whence.features.mirrors",
    "receipt": "whence.features.receipts",
    "steer": "whence.features.steering",
    "top_passages": "whence.features.passages",
    "About": "whence.core.features",
    "Autoencoder": "whence.features.autoencoder",
    "Settings": "whence.features.fitting",
    "Statistics": "whence.features.fitting",
    "from_dictionary_learning": "whence.features.layouts",
    "from_saelens": "whence.features.layouts",
    "load": "whence.features.saving",
    "save": "whence.features.saving",
    "to_dictionary_learning": "whence.features.layouts",
    "to_saelens": "whence.features.layouts",
}
__all__ = [
    "clamp",
    "compare",
    "dashboard",
    "explain",
    "feature_game",
    "mirror",
    "receipt",
    "steer",
    "top_passages",
    "About",
    "Autoencoder",
    "Settings",
    "Statistics",
    "from_dictionary_learning",
    "from_saelens",
    "load",
    "save",
    "to_dictionary_learning",
    "to_saelens",
]

if TYPE_CHECKING:
    from whence.core.features import About
    from whence.features.autoencoder import Autoencoder
    from whence.features.fitting import Settings, Statistics
    from whence.features.layouts import (
        from_dictionary_learning,
        from_saelens,
        to_dictionary_learning,
        to_saelens,
    )
    from whence.features.saving import load, save


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(
            f"module 'whence.features' has no attribute {name!r}; it has {', '.join(__all__)}"
        )
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return [*__all__]
