"""A model is built no larger than its weights: it is stopped while it is still without memory.

transformers first builds a model on the meta device, where a tensor has a shape and no memory.
What it registers there is counted, so that a config which asks for far more than the checkpoint
holds ends before anything is allocated, however its family names its numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from whence.core.errors import LoadError
from whence.models.checkpoint import Stored
from whence.models.numbers import main_numbers

# Tied weights are built once for each place (up to four), and some layers are built and replaced.
TIMES = 8
# Weights that a checkpoint may lack, and buffers that are never stored.
SPARE_NUMBERS = 20_000_000
SPARE_PARTS = 10_000
# The fewest bits of a quantised weight.
PACKED = 32


@contextmanager
def no_larger_than(weights: Stored, config: dict[str, Any], where: str) -> Iterator[None]:
    """Stop building, in this thread, what is far larger than ``weights``."""
    from torch.nn.modules import module as registering

    packed = PACKED if config.get("quantization_config") else 1
    most_numbers = TIMES * packed * weights.numbers + SPARE_NUMBERS
    most_parts = TIMES * weights.tensors + SPARE_PARTS
    thread = threading.get_ident()
    numbers = parts = 0

    def count(_module: Any, name: str, part: Any) -> None:
        nonlocal numbers, parts
        if threading.get_ident() != thread or not getattr(part, "is_meta", False):
            return
        parts += 1
        numbers += part.numel()
        if numbers > most_numbers or parts > most_parts:
            shape = " × ".join(str(n) for n in part.shape)
            raise LoadError(
                f"config.json of {where} asks for far more than its weights hold "
                f"({main_numbers(config)}): they are {weights.tensors:,} tensors with "
                f"{weights.numbers:,} numbers, and building was stopped after {parts:,} "
                f"with {numbers:,} at {name!r} ({shape})."
            )

    handles = [
        registering.register_module_parameter_registration_hook(count),
        registering.register_module_buffer_registration_hook(count),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
