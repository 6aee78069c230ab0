"""Interrupts at chosen places of a run, and what must be as it was after them."""

from __future__ import annotations

import dis
import gc
import signal
import sys
from collections.abc import Callable
from functools import cache
from types import CodeType, FrameType
from typing import Any

import torch
from transformers.utils import output_capturing

import whence
from whence.games.threads import _pools
from whence.models import unbroken
from whence.models.model import Model
from whence.models.untouched import configs_of
from whence.trace.attention import _observer

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_forward_hooks_with_kwargs")
Place = tuple[CodeType, int]


def state(model: Model) -> dict[str, Any]:
    """All that a run of whence may change, of a model and of the process."""
    modules = dict(model.hf.named_modules())
    return {
        "requires_grad": [n for n, p in model.hf.named_parameters() if p.requires_grad],
        "training": [n for n, m in modules.items() if m.training],
        "hooks": {n: [list(getattr(m, h)) for h in HOOKS] for n, m in modules.items()},
        "attributes": {n: sorted(vars(m)) for n, m in modules.items()},
        "attention": [c._attn_implementation for c in configs_of(modules.values())],
        "lock is held": model.lock._is_owned(),  # pyright: ignore[reportAttributeAccessIssue]
        "gradients": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "function modes": torch._C._len_torch_function_stack(),
        "observer": _observer.get(),
        "collector": output_capturing._active_collector.get(),
        "handlers": [signal.getsignal(n) for n in signal.valid_signals()],
        "blocks": unbroken._here.blocks,
        "waiting": list(unbroken._waiting),
        "changes": list(unbroken._changes),
        "threads": [pool.get_num_threads() for pool in _pools().lib_controllers],
    }


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What is not as it was."""
    return [name for name in before if before[name] != after[name]]


@cache
def _places_of(code: CodeType) -> frozenset[int]:
    """Where CPython lets signal handlers run, as the steps before which they are run here.

    They run at the start of a function, at a jump backwards, and at the end of a call. The step
    after a call stands for its end, unless another block begins there: what is raised at the end of
    a call belongs to the block of the call.
    """
    places = set()
    call = None
    for step in dis.get_instructions(code):
        name = step.opname
        if call is not None:
            is_same_block = _handler_at(code, call) == _handler_at(code, step.offset)
            places.add(step.offset if is_same_block else call)
        if name == "RESUME" or "JUMP_BACKWARD" in name:
            places.add(step.offset)
        call = step.offset if name.startswith("CALL") else None
    return frozenset(places)


def _handler_at(code: CodeType, offset: int) -> int | None:
    """Where an exception at this step is handled."""
    for entry in dis.Bytecode(code).exception_entries:
        if entry.start <= offset < entry.end:
            return entry.target
    return None


class Watcher:
    """Watches a run step by step, and interrupts it at the first visit of a place.

    Places are noted in the files that ``watches`` chooses, while it is ``awake``.
    """

    def __init__(self, watches: Callable[[str], bool], interrupt_at: Place | None = None) -> None:
        self.watches = watches
        self.interrupt_at = interrupt_at
        self.places: dict[Place, None] = {}
        self.awake = True
        self.sent = False

    def __call__(self, frame: FrameType, event: str, _arg: object) -> Any:
        code = frame.f_code
        if event == "call":
            if not self.watches(code.co_filename):
                return None
            frame.f_trace_opcodes = True
            frame.f_trace_lines = False
        elif event == "opcode" and frame.f_lasti in _places_of(code):
            place = (code, frame.f_lasti)
            if self.awake:
                self.places[place] = None
            if self.awake and place == self.interrupt_at:
                self.sent = True
                sys.settrace(None)  # the rest runs as it would
                signal.raise_signal(signal.SIGINT)
        return self

    def run(self, work: Callable[[], object]) -> BaseException | None:
        """What the work raised, with its traceback alive: nothing is tidied up by its end."""
        previous = sys.gettrace()
        problem: BaseException | None = None
        gc.disable()
        try:
            sys.settrace(self)
            work()
        except (KeyboardInterrupt, whence.WhenceError) as raised:
            problem = raised
        finally:
            sys.settrace(previous)
            gc.enable()
        return problem
