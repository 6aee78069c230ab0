"""Sparse autoencoders: directions of a hidden layer that are active one by one, and what they do.

What is public here is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_PUBLIC = {
    "About": "whence.core.features",
    "Autoencoder": "whence.features.autoencoder",
    "Settings": "whence.features.fitting",
    "Statistics": "whence.features.fitting",
    "clamp": "whence.features.steering",
    "compare": "whence.features.explaining",
    "dashboard": "whence.features.showing",
    "explain": "whence.features.explaining",
    "feature_game": "whence.features.game",
    "from_dictionary_learning": "whence.features.layouts",
    "from_saelens": "whence.features.layouts",
    "load": "whence.features.saving",
    "mirror": "whence.features.mirrors",
    "receipt": "whence.features.receipts",
    "save": "whence.features.saving",
    "steer": "whence.features.steering",
    "to_dictionary_learning": "whence.features.layouts",
    "to_saelens": "whence.features.layouts",
    "top_passages": "whence.features.passages",
    "train": "whence.features.training",
}
__all__ = [
    "About",
    "Autoencoder",
    "Settings",
    "Statistics",
    "clamp",
    "compare",
    "dashboard",
    "explain",
    "feature_game",
    "from_dictionary_learning",
    "from_saelens",
    "load",
    "mirror",
    "receipt",
    "save",
    "steer",
    "to_dictionary_learning",
    "to_saelens",
    "top_passages",
    "train",
]

if TYPE_CHECKING:
    from whence.core.features import About
    from whence.features.autoencoder import Autoencoder
    from whence.features.explaining import compare, explain
    from whence.features.fitting import Settings, Statistics
    from whence.features.game import feature_game
    from whence.features.layouts import (
        from_dictionary_learning,
        from_saelens,
        to_dictionary_learning,
        to_saelens,
    )
    from whence.features.mirrors import mirror
    from whence.features.passages import top_passages
    from whence.features.receipts import receipt
    from whence.features.saving import load, save
    from whence.features.showing import dashboard
    from whence.features.steering import clamp, steer
    from whence.features.training import train


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(
            f"module 'whence.features' has no attribute {name!r}; it has {', '.join(__all__)}"
        )
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return [*__all__]
