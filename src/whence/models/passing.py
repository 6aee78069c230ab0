"""One forward pass of a model. What it raises on the way becomes one line that says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from whence.core.errors import ModelError, TooLarge, WhenceError
from whence.models.state import own_draws

# What a model's own code raises where an input, or a switch of ours, does not suit it. An
# exception class of the caller's own is not among them, and passes as it is.
OF_THE_MODEL = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    RuntimeError,
    TypeError,
    ValueError,
)
LONGEST_REASON = 160  # characters of what the model said


def run(hf: nn.Module, inputs: Mapping[str, Any], **more: Any) -> Any:
    """The outputs of one forward pass, or an error that names the model and what it said."""
    try:
        with own_draws(hf):
            return hf(**inputs, **more)
    except WhenceError:
        raise
    except OF_THE_MODEL as problem:
        raise not_run(hf, problem) from problem


@contextmanager
def in_one_line(hf: nn.Module, method: str) -> Iterator[None]:
    """What goes wrong in a method on this model, as one line; the cause stays attached.

    A model may have something that no check knows of. The other methods go on.
    """
    try:
        yield
    except WhenceError:
        raise
    except OF_THE_MODEL as problem:
        raise ModelError(
            f"{method} cannot be computed on {type(hf).__name__}: {reason(problem)}"
        ) from problem


def not_run(hf: nn.Module, problem: Exception) -> WhenceError:
    """The one line for what a model raised while it ran."""
    name = type(hf).__name__
    said = reason(problem)
    if isinstance(problem, torch.OutOfMemoryError) or "allocate memory" in said:
        return TooLarge(f"{name} ran out of memory on this input; shorten it: {said}")
    return ModelError(f"{name} cannot be run in this way. It says: {said}")


def reason(problem: Exception) -> str:
    """The first line of what was raised, and its type."""
    lines = str(problem).strip().splitlines()
    first = lines[0].strip() if lines else ""
    if len(first) > LONGEST_REASON:
        first = f"{first[:LONGEST_REASON]}…"
    return f"{type(problem).__name__}: {first}".removesuffix(": ")
