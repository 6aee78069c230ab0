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
    "from_dictionary_learning": "whence.features.layouts",
    "from_saelens": "whence.features.layouts",
    "load": "whence.features.saving",
    "save": "whence.features.saving",
    "to_dictionary_learning": "whence.features.layouts",
    "to_saelens": "whence.features.layouts",
    "train": "whence.features.training",
}
__all__ = [
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
    "train",
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
    from whence.features.training import train


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(
            f"module 'whence.features' has no attribute {name!r}; it has {', '.join(__all__)}"
        )
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return [*__all__]
