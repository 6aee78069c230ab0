"""What a model changes about itself while it runs, and how it is put back.

Routers count, position caches grow, and some models draw from the random state that all of Python
shares. Which of this a model does is seen the first time that it runs; from then on only that is
watched closely.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from whence.models.unbroken import in_one_piece, put_back

# What a model draws is fixed by this for each pass, so that equal inputs get equal answers.
SEED = 0

Place = tuple[nn.Module, str]  # a module, and the name of what it holds
PLAIN = (bool, int, float, Tensor)


@dataclass
class Habits:
    """What is known of one model object: it grows when something new is seen to change."""

    in_place: set[tuple[int, str]] = field(default_factory=set)  # buffers, by module id and name
    changes: set[str] = field(default_factory=set)  # names for people
    draws: bool = False


_habits: WeakKeyDictionary[nn.Module, Habits] = WeakKeyDictionary()


def habits_of(hf: nn.Module) -> Habits | None:
    """What this model was seen to change; None where it has not run yet."""
    return _habits.get(hf)


@dataclass(frozen=True)
class State:
    """A model's own state before a run: what its modules hold, and copies of what may change."""

    held: Sequence[tuple[nn.Module, dict[str, Any], dict[str, Any]]]  # buffers and plain values
    versions: Sequence[tuple[nn.Module, str, Tensor, int]]
    copies: dict[tuple[int, str], Tensor]
    drawing: tuple[Any, ...] | None


def state_of(hf: nn.Module, modules: Sequence[nn.Module]) -> State:
    """The state to which ``own_state`` returns. The first time it copies every buffer."""
    habits = _habits.get(hf)
    is_first = habits is None
    held, versions, copies = [], [], {}
    for module in modules:
        buffers = module._buffers
        if not buffers and not is_first:
            continue
        plain = {name: kept for name, kept in vars(module).items() if isinstance(kept, PLAIN)}
        held.append((module, dict(buffers), plain))
        for name, buffer in buffers.items():
            if buffer is None or buffer.is_inference():
                continue
            versions.append((module, name, buffer, buffer._version))
            key = (id(module), name)
            if is_first or key in habits.in_place:
                copies[key] = buffer.detach().clone()
    return State(held, versions, copies, _drawn() if is_first else None)


def own_state(hf: nn.Module, state: State) -> None:
    """Undo what the model changed about itself since ``state``, and remember what that was."""
    habits = _habits.setdefault(hf, Habits())
    for module, name, buffer, version in state.versions:
        if buffer._version != version:
            habits.in_place.add((id(module), name))
            habits.changes.add(f"{type(module).__name__}.{name}")
            before = state.copies.get((id(module), name))
            if before is not None:
                with torch.no_grad():
                    buffer.copy_(before)

    for module, buffers, plain in state.held:
        if any(module._buffers.get(name) is not buffer for name, buffer in buffers.items()):
            habits.changes.add(f"{type(module).__name__}: buffers")
            module._buffers.update(buffers)
        for name, kept in plain.items():
            # training flags are put back by whoever changed them
            if name != "training" and vars(module).get(name) is not kept:
                habits.changes.add(f"{type(module).__name__}.{name}")
                vars(module)[name] = kept

    if state.drawing is not None and not _same(state.drawing, _drawn()):
        habits.draws = True
        _draw_again_from(state.drawing)


def own_draws(hf: nn.Module) -> AbstractContextManager[None]:
    """For a model that draws: the same draws in each pass, and none from the caller's state."""
    habits = _habits.get(hf)
    if habits is None or not habits.draws:
        return nullcontext()
    return _drawing_alike()


@in_one_piece
def _drawing_alike() -> Iterator[None]:
    before = _drawn()
    with put_back(lambda: _draw_again_from(before)):
        torch.manual_seed(SEED)
        np.random.seed(SEED)
        random.seed(SEED)
        yield


def _drawn() -> tuple[Any, ...]:
    return torch.get_rng_state(), np.random.get_state(), random.getstate()


def _draw_again_from(drawing: tuple[Any, ...]) -> None:
    of_torch, of_numpy, of_python = drawing
    torch.set_rng_state(of_torch)
    np.random.set_state(of_numpy)
    random.setstate(of_python)


def _same(some: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    same_torch = bool(torch.equal(some[0], others[0]))
    same_numpy = some[1][2] == others[1][2] and bool((some[1][1] == others[1][1]).all())
    # Python's own is put back with them, but tells nothing: whatever runs beside may draw from it
    return same_torch and same_numpy
