"""The ways to train an autoencoder, one file each, by name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from whence.core.errors import unknown_name

if TYPE_CHECKING:
    from whence.features.loss import Variant

NAMES = ("relu", "topk", "batch-topk", "jump-relu", "gated", "matryoshka")


def variant_named(name: str) -> Variant:
    """The variant of this name.

    >>> variant_named("topk").needs_k
    True
    >>> variant_named("top-k")
    Traceback (most recent call last):
    whence.core.errors.UnknownName: no variant of autoencoder named 'top-k'. Did you mean 'topk'? \
Known: batch-topk, gated, jump-relu, matryoshka, relu, topk.
    """
    if name not in NAMES:
        raise unknown_name("variant of autoencoder", name, NAMES)
    module = import_module(f"whence.features.variants.{name.replace('-', '_')}")
    return module.VARIANT
