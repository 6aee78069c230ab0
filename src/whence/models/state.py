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
PLAIN = (bool, int, float, str, Tensor)


@dataclass
class Habits:
    """What is known of one model object: it grows when something new is seen to change."""

    in_place: set[tuple[int, str]] = field(default_factory=set)  # buffers, by module id and name
    restless: set[int] = field(default_factory=set)  # modules that hold something else afterwards
    changes: set[str] = field(default_factory=set)  # names for people
    draws: bool = False
    rescales: bool = False  # it changes its weights in place


_habits: WeakKeyDictionary[nn.Module, Habits] = WeakKeyDictionary()
# whether a model draws from Python's own random numbers; it is looked for where there is no entry
_draws_from_python: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()


def habits_of(hf: nn.Module) -> Habits | None:
    """What this model was seen to change; None where it has not run yet."""
    return _habits.get(hf)


@dataclass(frozen=True)
class Held:
    """What one module holds: buffers, plain values, and the modules below it."""

    module: nn.Module
    buffers: dict[str, Any]
    plain: dict[str, Any]
    children: dict[str, Any]


@dataclass(frozen=True)
class State:
    """A model's own state before a run: what its modules hold, and copies of what may change."""

    held: Sequence[Held]
    versions: Sequence[tuple[nn.Module, str, Tensor, int]]
    copies: dict[tuple[int, str], Tensor]
    weights: Sequence[tuple[Tensor, int]]  # with their versions
    drawing: tuple[Any, ...] | None


def state_of(hf: nn.Module, modules: Sequence[nn.Module]) -> State:
    """The state to which ``own_state`` returns. The first time it copies every buffer."""
    habits = _habits.get(hf)
    is_first = habits is None
    held, versions, copies = [], [], {}
    for module in modules:
        buffers = module._buffers
        if not (buffers or is_first or id(module) in habits.restless):
            continue
        plain = {name: kept for name, kept in vars(module).items() if isinstance(kept, PLAIN)}
        held.append(Held(module, dict(buffers), plain, dict(module._modules)))
        for name, buffer in buffers.items():
            if buffer is None or buffer.is_inference():
                continue
            versions.append((module, name, buffer, buffer._version))
            key = (id(module), name)
            if is_first or key in habits.in_place:
                copies[key] = buffer.detach().clone()
    weights = _weights(modules) if is_first or habits.restless else []
    return State(held, versions, copies, weights, _drawn() if is_first else None)


def _weights(modules: Sequence[nn.Module]) -> list[tuple[Tensor, int]]:
    weights = []
    for module in modules:
        for weight in module._parameters.values():
            if weight is not None and not weight.is_inference():
                weights.append((weight, weight._version))
    return weights


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

    if any(weight._version != version for weight, version in state.weights):
        # Some rescale their weights for inference, once, and note that they did. There is no copy
        # of all weights, and the note without the weights would have them rescaled once more.
        habits.rescales = True
    for held in state.held:
        changed = [] if habits.rescales else _put_back(held)
        if changed:
            habits.restless.add(id(held.module))
            kind = type(held.module).__name__
            habits.changes.update(f"{kind}{name}" for name in changed)

    if state.drawing is not None and not _same(state.drawing, _drawn()):
        habits.draws = True
        _draw_again_from(state.drawing)


def _put_back(held: Held) -> list[str]:
    """Give a module back what it held; the names of what was something else."""
    module = held.module
    changed = []
    if any(module._buffers.get(name) is not buffer for name, buffer in held.buffers.items()):
        changed.append(": buffers")
        module._buffers.update(held.buffers)

    for name, kept in held.plain.items():
        # training flags are put back by whoever changed them
        if name != "training" and not _is_same(vars(module).get(name), kept):
            changed.append(f".{name}")
            vars(module)[name] = kept

    # some exchange a part of themselves, as for a text that is too short for sparse attention
    if any(module._modules.get(name) is not child for name, child in held.children.items()):
        changed.append(": modules")
        module._modules.update(held.children)
    return changed


def _is_same(now: Any, before: Any) -> bool:
    """The same tensor, or an equal number or word."""
    if isinstance(before, Tensor) or isinstance(now, Tensor):
        return now is before
    return type(now) is type(before) and (now == before or now != now)


def draws(hf: nn.Module) -> bool:
    """Whether this model was seen to draw random numbers, from whatever source."""
    habits = _habits.get(hf)
    return _draws_from_python.get(hf, False) or (habits is not None and habits.draws)


def look_again(hf: nn.Module) -> None:
    """Watch the next pass for draws from Python's own numbers, as if it were the first one.

    Others draw from them too: another thread, or the shape checker of our tests in a hook. A pass
    in which nothing of ours is hooked decides.
    """
    _draws_from_python.pop(hf, None)


def own_draws(hf: nn.Module) -> AbstractContextManager[None]:
    """For a model that draws: the same draws in each pass, and none from the caller's state."""
    if draws(hf):
        return _drawing_alike()
    if hf not in _draws_from_python:
        return _watching_python(hf)
    return nullcontext()


@in_one_piece
def _watching_python(hf: nn.Module) -> Iterator[None]:
    """Find out, in one pass, whether the model draws from Python's own numbers; put them back.

    They are compared around the model's own forward pass alone: wider blocks have code of ours in
    them, which the shape checker makes draw.
    """
    before = random.getstate()
    with put_back(lambda: _note_draws(hf, before)):
        yield


def _note_draws(hf: nn.Module, before: tuple[Any, ...]) -> None:
    _draws_from_python[hf] = random.getstate() != before
    if _draws_from_python[hf]:
        random.setstate(before)


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
    # Python's own is put back with them, but tells nothing here: see ``_watching_python``
    return same_torch and same_numpy
