"""What a model changes about itself while it runs, and how it is put back.

Routers count, position caches grow, some models rescale their weights for inference, and some draw
from the random state that all of Python shares. Which of this a model does is seen the first time
that it runs; from then on only that is watched closely.

Weights are never copied before a pass: there may be many. Whether one changed is told by its
version, which torch counts. In the first pass of a model, and in every pass of one that changes its
weights, each is copied at the moment before it is changed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np
import torch
from torch import Tensor, nn
from torch._C._autograd import (  # pyright: ignore[reportMissingImports]
    _unsafe_set_version_counter,
)

from whence.core.errors import ModelError
from whence.models.modes import Watch, met_by
from whence.models.unbroken import in_one_piece, put_back

# What a model draws is fixed by this for each pass, so that equal inputs get equal answers.
SEED = 0

# What Python calls for ``x[i] = …``, ``x += …`` and the like.
CHANGING = frozenset(
    f"__{name}__"
    for name in ("setitem", "iadd", "isub", "imul", "itruediv", "ifloordiv", "ipow", "imod")
)
Place = tuple[nn.Module, str]  # a module, and the name of what it holds
Originals = dict[tuple[int, int], Tensor]
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
# models of which a pass was seen from its beginning to its end
_has_run: WeakSet[nn.Module] = WeakSet()
# by model object: weights that a pass changed, as they were. By their ids and versions, as a block
# inside another puts them back to what they were when it began.
_originals: WeakKeyDictionary[nn.Module, Originals] = WeakKeyDictionary()
# whether a model draws from Python's own random numbers; it is looked for where there is no entry
_draws_from_python: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()


def habits_of(hf: nn.Module) -> Habits | None:
    """What this model was seen to change; None where it has not run yet."""
    return _habits.get(hf)


def has_run(hf: nn.Module) -> bool:
    """Whether a pass of this model was seen from its beginning to its end."""
    return hf in _has_run


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
    return State(held, versions, copies, _weights(modules), _drawn() if is_first else None)


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

    lost = _put_weights_back(hf, habits, state.weights)
    for held in state.held:
        # Where weights could not be put back, a note that they were changed is left with them: a
        # model that rescales them once would do so again.
        changed = [] if lost else _put_back(held)
        if changed:
            habits.restless.add(id(held.module))
            kind = type(held.module).__name__
            habits.changes.update(f"{kind}{name}" for name in changed)

    if state.drawing is not None and not _same(state.drawing, _drawn()):
        habits.draws = True
        _draw_again_from(state.drawing)
    if lost:
        raise ModelError(
            f"{type(hf).__name__} changed {lost} of its weights in place in this pass, as it did "
            "in none before, so there was no copy to put back. Load the model again; with "
            "model.predict([text]) on this text first, they will be put back."
        )


def _put_weights_back(hf: nn.Module, habits: Habits, weights: Sequence[tuple[Tensor, int]]) -> int:
    """Undo what a pass did to weights; how many had no copy."""
    originals = _originals.get(hf, {})
    lost = 0
    for weight, version in weights:
        if weight._version == version:
            continue
        habits.rescales = True
        original = originals.get((id(weight), version))
        if original is None:
            lost += 1
            continue
        with torch.no_grad():
            weight.copy_(original)
        # it is what it was at that version, also for a block around this one
        _unsafe_set_version_counter((weight,), (version,))
        for key in [key for key in originals if key[0] == id(weight) and key[1] >= version]:
            del originals[key]
    return lost


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


def own_pass(hf: nn.Module) -> AbstractContextManager[None]:
    """Around each forward pass of a model: its draws, and weights that it may change, are watched.

    Of a model that does neither, only the first pass is.
    """
    habits = _habits.get(hf)
    rescales = habits is not None and habits.rescales
    if hf in _has_run and not rescales:
        return _own_draws(hf)
    return _watching_weights(hf)


@in_one_piece
def _watching_weights(hf: nn.Module) -> Iterator[None]:
    with met_by(_Keeping(hf)), _own_draws(hf):
        yield
    _has_run.add(hf)


class _Keeping(Watch):
    """Copies each weight just before a pass first changes it in place."""

    def __init__(self, hf: nn.Module) -> None:
        super().__init__()
        self.originals = _originals.setdefault(hf, {})
        self.weights: dict[int | None, list[tuple[Tensor, int]]] = {}
        for weight in hf.parameters():
            storage = _storage_of(weight)
            if storage is not None and not weight.is_inference():
                self.weights.setdefault(storage, []).append((weight, weight._version))

    def see(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keep what this function will change."""
        if args and name.endswith("_") and (not name.endswith("__") or name in CHANGING):
            self._keep(args[0])
        if "out" in kwargs:
            self._keep(kwargs["out"])

    def _keep(self, changed: Any) -> None:
        for tensor in changed if isinstance(changed, (list, tuple)) else [changed]:
            storage = _storage_of(tensor) if isinstance(tensor, Tensor) else None
            for weight, version in self.weights.get(storage, ()):
                if weight._version == version and (id(weight), version) not in self.originals:
                    self.originals[id(weight), version] = weight.detach().clone()


def _storage_of(tensor: Tensor) -> int | None:
    """Where its numbers lie; None for one that only stands for others, as some quantised do."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return None


def _own_draws(hf: nn.Module) -> AbstractContextManager[None]:
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
