"""Writing with a causal language model: rules on logits, a decoding loop, beam search.

What is public here is imported when it is first used.

>>> from whence import generation
>>> generation.repeated([1, 2, 1, 2, 1], n=2)
0.5
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = [
    "Path",
    "Rule",
    "Scorer",
    "beam_search",
    "beam_steps",
    "decode",
    "generated",
    "log_probability",
    "nucleus",
    "readable",
    "repeated",
    "scorer",
    "temperature",
    "token_bytes",
    "top_k",
]

if TYPE_CHECKING:
    from whence.generation.decoding import (
        Path,
        Rule,
        Scorer,
        beam_search,
        beam_steps,
        decode,
        generated,
        log_probability,
        nucleus,
        readable,
        repeated,
        scorer,
        temperature,
        token_bytes,
        top_k,
    )


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'whence.generation' has no attribute {name!r}")
    return getattr(import_module("whence.generation.decoding"), name)


def __dir__() -> list[str]:
    return __all__
