"""Which model this is: one lock per model object, and a fingerprint of its weights."""

from __future__ import annotations

import hashlib
import os
import threading
import weakref

import torch
from torch import Tensor, nn

_locks: weakref.WeakKeyDictionary[nn.Module, threading.RLock] = weakref.WeakKeyDictionary()
_locks_lock = threading.Lock()
_fingerprints: weakref.WeakKeyDictionary[nn.Module, tuple[int, str]] = weakref.WeakKeyDictionary()


def _fresh_locks() -> None:
    """In a child process: whoever held a lock in another thread is not there to give it back."""
    global _locks, _locks_lock
    _locks = weakref.WeakKeyDictionary()
    _locks_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fresh_locks)

# Whole numbers of as many bytes as a weight has.
WHOLE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
SAMPLED_VALUES = 16


def lock_of(module: nn.Module) -> threading.RLock:
    """One lock per model object, whoever wraps it.

    A trace switches the model's attention, so two must not overlap.
    """
    with _locks_lock:
        return _locks.setdefault(module, threading.RLock())


def fingerprint_of(module: nn.Module) -> str:
    """A short hash of names, shapes and weights: tells models apart and notices fine-tuning.

    Of each parameter it takes some values and the sum of all as whole numbers: any one weight that
    changes changes it, the order of summation does not. It is computed once, and again after a
    change. (A change through ``parameter.data``, which torch does not count, may be seen too late.)
    """
    parameters = [(name, p.detach()) for name, p in module.named_parameters()]
    state = hash(tuple((p.data_ptr(), p._version) for _, p in parameters))
    known = _fingerprints.get(module)
    if known is not None and known[0] == state:
        return known[1]

    digest = hashlib.sha256()
    for name, parameter in parameters:
        digest.update(f"{name}{tuple(parameter.shape)}{parameter.dtype}".encode())
        digest.update(_some_values(parameter))
        digest.update(_sum_of_bits(parameter))
    fingerprint = digest.hexdigest()[:16]
    _fingerprints[module] = (state, fingerprint)
    return fingerprint


def _some_values(parameter: Tensor) -> bytes:
    flat = parameter.contiguous().reshape(-1)
    step = max(1, flat.numel() // SAMPLED_VALUES)
    values = flat[::step][:SAMPLED_VALUES]
    return values.double().cpu().numpy().tobytes()


def _sum_of_bits(parameter: Tensor) -> bytes:
    flat = parameter.contiguous().reshape(-1)
    whole = flat.view(WHOLE[parameter.element_size()])
    return int(whole.sum(dtype=torch.int64)).to_bytes(8, "little", signed=True)
