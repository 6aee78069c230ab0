"""Which model this is: one lock per model object, and a fingerprint of its weights."""

from __future__ import annotations

import hashlib
import threading
import weakref

import torch
from torch import nn

_locks: weakref.WeakKeyDictionary[nn.Module, threading.RLock] = weakref.WeakKeyDictionary()
_locks_lock = threading.Lock()


def lock_of(module: nn.Module) -> threading.RLock:
    """One lock per model object, whoever wraps it: a trace switches the model's attention, so two must not overlap."""
    with _locks_lock:
        return _locks.setdefault(module, threading.RLock())


WHOLE = {
    1: torch.int8,
    2: torch.int16,
    4: torch.int32,
    8: torch.int64,
}  # whole numbers of the same bits
_fingerprints: weakref.WeakKeyDictionary[nn.Module, tuple[int, str]] = weakref.WeakKeyDictionary()


def fingerprint_of(module: nn.Module) -> str:
    """A short hash of names, shapes and weights: tells models apart and notices fine-tuning. Computed once, and again after a change.

    Of each parameter it takes some values and the sum of all as whole numbers: any one weight that changes changes it, the
    order of summation does not. (A change through ``parameter.data``, which torch does not count, may be seen too late.)
    """
    state = [(n, p.detach()) for n, p in module.named_parameters()]
    key = hash(tuple((p.data_ptr(), p._version) for _, p in state))
    known = _fingerprints.get(module)
    if known is None or known[0] != key:
        digest = hashlib.sha256()
        for name, p in state:
            flat = p.contiguous().reshape(-1)
            digest.update(f"{name}{tuple(p.shape)}{p.dtype}".encode())
            digest.update(flat[:: max(1, flat.numel() // 16)][:16].double().cpu().numpy().tobytes())
            digest.update(
                int(flat.view(WHOLE[p.element_size()]).sum(dtype=torch.int64)).to_bytes(
                    8, "little", signed=True
                )
            )
        known = _fingerprints[module] = (key, digest.hexdigest()[:16])
    return known[1]
