"""One forward pass of a model. What it raises on the way becomes one line that says so."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from logging import getLogger
from pathlib import Path
from typing import Any

import torch
from torch import nn

from whence.core.errors import ModelError, OurMistake, TooLarge, WhenceError
from whence.models.state import own_pass

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
OUR_FOLDER = Path(__file__).parents[1]
# They compute what they are given, and no model runs in them: whoever called them is to blame.
CALCULATORS = frozenset({"beartype", "einops", "jaxtyping", "numpy", "scipy"})
# Our modes stand between a model and torch, and hand on what the model calls.
ONLY_PASSING_ON = frozenset({"__torch_function__", "__torch_dispatch__"})
log = getLogger("whence")
IT_IS_OURS = "This is a mistake of whence, not of yours or of the model (--debug shows where)."


def run(hf: nn.Module, inputs: Mapping[str, Any], **more: Any) -> Any:
    """The outputs of one forward pass, or an error that names the model and what it said."""
    try:
        with own_pass(hf):
            return hf(**inputs, **more)
    except WhenceError:
        raise
    except OF_THE_MODEL as problem:
        raise not_run(hf, problem) from problem


@contextmanager
def in_one_line(hf: nn.Module, method: str, settings: object = None) -> Iterator[None]:
    """What goes wrong in a method on this model, as one line; the cause stays attached.

    A model may have something that no check knows of. The other methods go on. Where the error
    arose in our own code the line says so, unless the method (``settings`` is an object of its
    class) is not ours: its author may have called us wrongly.
    """
    try:
        yield
    except WhenceError:
        raise
    except OF_THE_MODEL as problem:
        said = f"{method} cannot be computed on {type(hf).__name__}: {reason(problem)}"
        foreign = settings is not None and not type(settings).__module__.startswith("whence.")
        if arose_in_whence(problem) and not foreign:
            raise _our_mistake(said, problem) from problem
        raise ModelError(said) from problem


def _our_mistake(said: str, problem: Exception) -> OurMistake:
    mistake = OurMistake(f"{said.rstrip('.')}. {IT_IS_OURS}")
    # told here, as the line may go on alone: as why a method is left out, or refused from now on
    log.debug("%s", mistake, exc_info=problem)
    return mistake


def arose_in_whence(problem: BaseException) -> bool:
    """Whether the innermost code that an error came through is ours.

    The model's own code, torch and transformers are not.
    """
    frames = traceback.extract_tb(problem.__traceback__)
    for frame in reversed(frames):
        path = Path(frame.filename)
        if frame.name in ONLY_PASSING_ON:
            continue
        if path.is_relative_to(OUR_FOLDER):
            return True
        if CALCULATORS.isdisjoint(path.parts):
            return False
    return False


def not_run(hf: nn.Module, problem: Exception) -> WhenceError:
    """The one line for what a model raised while it ran."""
    name = type(hf).__name__
    said = reason(problem)
    if isinstance(problem, torch.OutOfMemoryError) or "allocate memory" in said:
        return TooLarge(f"{name} ran out of memory on this input; shorten it: {said}")
    if arose_in_whence(problem):  # in a hook, or in captured attention
        return _our_mistake(f"{name} cannot be run: {said}", problem)
    return ModelError(f"{name} cannot be run in this way. It says: {said}")


def reason(problem: Exception) -> str:
    """The first line of what was raised, and its type."""
    lines = str(problem).strip().splitlines()
    first = lines[0].strip() if lines else ""
    if len(first) > LONGEST_REASON:
        first = f"{first[:LONGEST_REASON]}…"
    return f"{type(problem).__name__}: {first}".removesuffix(": ")
