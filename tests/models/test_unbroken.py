"""An interrupt at any moment leaves the model, and the process, as they were."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import pytest
import torch

from tests.choices import quick
from tests.families import build, inputs
from tests.interrupts import Place, Watcher, differences, state
from whence.core.registry import Needs, methods
from whence.explaining.explain import explain
from whence.models.model import Model
from whence.models.unbroken import each, in_one_piece, put_back, unbroken
from whence.models.untouched import untouched
from whence.trace.edits import Edit
from whence.trace.trace import trace

# where something is entered or left: ours, and what torch and Python do on the way
ENTERING = (
    "whence/models/unbroken.py",
    "whence/models/untouched.py",
    "whence/models/embeddings.py",
    "whence/trace/attention.py",
    "whence/trace/lrp/mode.py",
    "contextlib.py",
    "torch/autograd/grad_mode.py",
    "torch/utils/hooks.py",
)


def is_entering(file: str) -> bool:
    return file.endswith(ENTERING)


def is_ours(file: str) -> bool:
    rooms = ("/whence/models/", "/whence/trace/", "/whence/games/", "/whence/explaining/")
    return is_entering(file) or any(room in file for room in rooms)


def untidy(family: str) -> Model:
    """In training mode, with a frozen weight: so every flag that is lost can be seen."""
    model = build(family)
    model.hf.train()
    next(model.hf.parameters()).requires_grad_(False)
    return model


def work_of(family: str, method: str) -> tuple[Model, Callable[[], object]]:
    model = untidy(family)
    passage = inputs(model, 1)[0]
    settings = quick(methods()[method].settings)

    def work() -> object:
        return explain(model, passage, method, evidence=False, **settings)

    work()  # what is made once is made now
    return model, work


def places_of(work: Callable[[], object], watches: Callable[[str], bool]) -> list[Place]:
    watcher = Watcher(watches)
    assert watcher.run(work) is None
    return list(watcher.places)


@pytest.mark.parametrize(
    ("family", "needs"),
    [
        ("bert", Needs.EMBEDDING_GRADIENTS | Needs.ATTENTION_GRADIENTS),
        pytest.param("deberta-v2", Needs.ATTENTION | Needs.HIDDEN_STATES, marks=pytest.mark.slow),
    ],
)
def test_an_interrupt_at_any_step_of_entering_and_leaving(family: str, needs: Needs) -> None:
    # would catch: a step of a ``finally`` that an interrupt skips, a context manager of contextlib
    # or of torch that is left half entered
    model = untidy(family)
    passage = inputs(model, 1)[0]

    def work() -> object:
        return trace(model, [passage], needs=needs)

    work()
    before = state(model)
    places = places_of(work, is_entering)
    assert len(places) > 100
    for place in places:
        watcher = Watcher(is_entering, place)
        problem = watcher.run(work)
        assert watcher.sent
        assert isinstance(problem, KeyboardInterrupt), place  # none is lost
        assert differences(before, state(model)) == [], place


def test_an_interrupt_inside_transformers_leaves_no_collector_behind() -> None:
    # would catch: transformers sets its collector one step before the ``try`` that resets it; what
    # is left there collects the outputs of every later pass
    model = untidy("bert")
    passage = inputs(model, 1)[0]

    def work() -> object:
        return model.logits([passage])

    work()
    before = state(model)
    places = places_of(work, collects_outputs)
    assert places
    for place in places:
        watcher = Watcher(collects_outputs, place)
        assert isinstance(watcher.run(work), KeyboardInterrupt), place
        assert differences(before, state(model)) == [], place


def collects_outputs(file: str) -> bool:
    return file.endswith("transformers/utils/output_capturing.py")


def test_a_second_interrupt_at_any_step_of_leaving_after_the_first() -> None:
    model = untidy("bert")
    passage = inputs(model, 1)[0]

    before = state(model)

    def run(watcher: Watcher) -> None:
        def strike(_weights: torch.Tensor, _allowed: torch.Tensor) -> torch.Tensor:
            watcher.awake = True
            signal.raise_signal(signal.SIGINT)
            raise AssertionError("not interrupted")

        edit = Edit("strike", "attention", strike, layer=1)
        watcher.awake = False
        problem = watcher.run(lambda: trace(model, [passage], edits=[edit], needs=Needs.ATTENTION))
        assert isinstance(problem, KeyboardInterrupt)

    first = Watcher(is_entering)
    run(first)
    assert len(first.places) > 20
    for place in first.places:
        watcher = Watcher(is_entering, place)
        run(watcher)
        assert watcher.sent
        assert differences(before, state(model)) == [], place


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "method"), [("bert", "attn-lrp"), ("bert", "integrated-gradients"), ("t5", "lime")]
)
def test_an_interrupt_at_any_step_of_ours(family: str, method: str) -> None:
    model, work = work_of(family, method)
    before = state(model)
    struck = 0
    for place in places_of(work, is_ours)[::4]:  # whole: the same with [::1], some minutes
        watcher = Watcher(is_ours, place)
        problem = watcher.run(work)
        # a step that depends on a counter of the system (memory) may not come a second time
        assert isinstance(problem, KeyboardInterrupt) == watcher.sent, place
        assert differences(before, state(model)) == [], place
        struck += watcher.sent
    assert struck > 50


class Strike(Exception):
    """Raised by the handler of an alarm."""


@contextmanager
def striking() -> Iterator[list[bool]]:
    """An alarm whose handler raises, and comes once more; the list says which came inside ours."""
    struck: list[bool] = []

    def strike(_number: int, frame: FrameType | None) -> None:
        struck.append(_is_inside(frame))
        if len(struck) % 2:  # a second one at once
            signal.setitimer(signal.ITIMER_REAL, 2e-6)
        raise Strike

    before = signal.signal(signal.SIGALRM, strike)
    try:
        yield struck
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _is_inside(frame: FrameType | None) -> bool:
    """Whether the run of a method is not over."""
    while frame is not None:
        if frame.f_code is explain.__code__:
            return True
        frame = frame.f_back
    return False


def timed_interrupts(count: int, names: list[str]) -> tuple[int, int, list[str]]:
    """How many alarms struck a run, how many of them in a run that was struck twice, and harm."""
    draw = random.Random(0)
    landed = twice = 0
    harm: list[str] = []
    works = [work_of("single-layer" if n in SINGLE_LAYER else "bert", n) for n in names]
    with striking() as struck:
        befores = [state(model) for model, _ in works]
        lengths = [_length(work) for _, work in works]
        while landed < count:
            k = draw.randrange(len(works))
            model, work = works[k]
            struck.clear()
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-5, lengths[k]))
                    work()
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except Strike as problem:
                    kept = problem  # its traceback lives: nothing is put back by its end
                    _until_quiet()
                    del kept
            except Strike:
                _until_quiet()
            landed += sum(struck)
            twice += sum(struck) > 1
            harm += [f"{names[k]}: {what}" for what in differences(befores[k], state(model))]
    return landed, twice, harm


def _until_quiet() -> None:
    """Let an alarm that is on its way come."""
    while signal.getitimer(signal.ITIMER_REAL)[0]:
        with suppress(Strike):
            time.sleep(1e-5)


def _length(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


SINGLE_LAYER = [name for name, info in methods().items() if "single-layer" in info.only_for]


@pytest.mark.slow
def test_three_hundred_timed_interrupts_over_every_method() -> None:
    """In a process of its own: the checks of shapes take an interrupt for a wrong type."""
    # bench/interrupts.py does the same with three thousand
    script = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "from tests.models.test_unbroken import methods, timed_interrupts\n"
        "landed, twice, harm = timed_interrupts(300, list(methods()))\n"
        "assert harm == [], harm\n"
        "assert landed >= 300 and twice > 0, (landed, twice)\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "WHENCE_CHECK_SHAPES"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env=environment | {"PYTHONPATH": os.pathsep.join(["src", "."])},
    )
    assert done.returncode == 0, done.stderr


def test_what_a_handler_raises_waits_and_what_it_does_happens_at_once() -> None:
    done: list[str] = []

    def handler(_number: int, _frame: object) -> None:
        done.append("handled")
        raise Strike

    @in_one_piece
    def block() -> Iterator[None]:
        done.append("entered")
        try:
            yield
        finally:
            signal.raise_signal(signal.SIGALRM)
            done.append("left")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises(Strike), block():
            pass
        assert done == ["entered", "handled", "left"]
        assert signal.getsignal(signal.SIGALRM) is handler
    finally:
        signal.signal(signal.SIGALRM, before)


def test_an_interrupt_while_entering_undoes_what_was_entered() -> None:
    done: list[str] = []

    @in_one_piece
    def block() -> Iterator[None]:
        done.append("entered")
        signal.raise_signal(signal.SIGINT)
        with put_back(lambda: done.append("put back")):
            yield

    with pytest.raises(KeyboardInterrupt), unbroken(torch.no_grad(), block()):
        done.append("never")
    assert done == ["entered", "put back"]
    assert torch.is_grad_enabled()


def test_a_handler_that_is_set_inside_a_block_stays() -> None:
    def mine(_number: int, _frame: object) -> None: ...

    before = signal.getsignal(signal.SIGALRM)
    try:
        with unbroken(torch.no_grad()):
            signal.signal(signal.SIGALRM, mine)
        assert signal.getsignal(signal.SIGALRM) is mine
    finally:
        signal.signal(signal.SIGALRM, before)


def test_each_step_is_taken_whatever_the_others_come_to() -> None:
    done: list[int] = []

    def step(number: int) -> None:
        done.append(number)
        if number < 2:
            raise ValueError(number)

    with pytest.raises(ValueError, match="0"):
        each(step, range(4))
    assert done == [0, 1, 2, 3]


def test_a_module_that_cannot_be_put_back_does_not_keep_the_others_from_it() -> None:
    class Stubborn(torch.nn.Module):
        def __setattr__(self, name: str, value: Any) -> None:
            if name == "training" and value and "armed" in self.__dict__:
                raise RuntimeError("I stay in evaluation mode")
            super().__setattr__(name, value)

    net = torch.nn.Sequential(torch.nn.Linear(2, 2), Stubborn(), torch.nn.Linear(2, 2))
    net[1].__dict__["armed"] = True
    with pytest.raises(RuntimeError, match="I stay"), untouched(net):
        assert not net[2].training
    assert net[2].training
    assert all(p.requires_grad for p in net.parameters())


def test_blocks_in_blocks_and_in_other_threads() -> None:
    net = torch.nn.Linear(2, 2)
    with untouched(net):
        with untouched(net), unbroken(torch.inference_mode()):
            assert not net.training
        assert not net.training
        assert not net.weight.requires_grad
    assert net.training
    assert net.weight.requires_grad

    handler = signal.getsignal(signal.SIGINT)
    seen: list[object] = []

    def elsewhere() -> None:
        with untouched(net):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [handler]


FORKING = """
import os, sys, threading
import torch
from tests.families import build, inputs
from whence.explaining.explain import explain

torch.set_num_threads(1)
model = build("bert")
model.hf.train()
passage = inputs(model, 1)[0]
expected = explain(model, passage, "generic-attention", evidence=False).scores
stop = threading.Event()

def work():
    while not stop.is_set():
        explain(model, passage, "generic-attention", evidence=False)

thread = threading.Thread(target=work)
thread.start()
failures = 0
for _ in range(20):
    child = os.fork()
    if child == 0:
        hooks = sum(len(m._forward_hooks) for m in model.hf.modules())
        frozen = [p for p in model.hf.parameters() if not p.requires_grad]
        calm = [m for m in model.hf.modules() if not m.training]
        as_it_was = not hooks and not frozen and not calm
        as_it_was &= model.config._attn_implementation == "sdpa"
        same = (explain(model, passage, "generic-attention", evidence=False).scores == expected)
        os._exit(0 if as_it_was and same.all() else 1)
    failures += os.waitpid(child, 0)[1] != 0
stop.set()
thread.join()
sys.exit(failures)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_of_a_fork_explains_while_a_thread_of_its_parent_did() -> None:
    # would catch: the lock of a thread that is not in the child, and what that thread had changed
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKING], timeout=300, check=False)
    assert done.returncode == 0
