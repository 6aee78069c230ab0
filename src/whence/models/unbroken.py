"""Enter and leave in one piece, whatever interrupts, and put back what was changed.

A signal handler may raise between any two steps of Python: Ctrl-C does, in the main thread, also
inside ``finally`` and inside the glue of a context manager. What was still to be put back would
then never be. So while ``unbroken`` enters and leaves its contexts, handlers are called as ever,
but what they raise waits until it is done.

The mask of the operating system cannot do this. It is one thread's, a process that runs torch has
more, and a signal that one thread masks goes to another and is raised in the main thread all the
same. Instead the handlers are wrapped for the length of a block, and the wrapper looks where the
signal struck: below the code of ``unbroken`` it keeps the exception, anywhere else it lets it pass.
There is no flag that would have to be set in time.
"""

from __future__ import annotations

import os
import sys
import threading

# The C functions below ``signal.signal`` and ``signal.getsignal``, which take a fortieth of their
# time: all signals are looked at whenever a model is run.
from _signal import getsignal as handler_of  # pyright: ignore[reportMissingImports]
from _signal import signal as set_handler  # pyright: ignore[reportMissingImports]
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import wraps
from signal import valid_signals
from types import FrameType
from typing import Any, ParamSpec, TypeVar, no_type_check

P = ParamSpec("P")
T = TypeVar("T")
Step = Callable[[], None]

SIGNALS = tuple(int(number) for number in valid_signals())


class _Here(threading.local):
    """How many blocks this thread is in."""

    blocks = 0


_here = _Here()
# The caller's handlers, in whose place ours stands or stood. They stay known: a caller who asks in
# the middle of a block gets ours as the old one, and may set it again later.
_own_handlers: dict[int, Any] = {}
_taken: list[int] = []  # the signals at which ours stands now
_waiting: list[BaseException] = []  # what handlers raised in the middle of something


def _handle(number: int, frame: FrameType | None) -> None:
    """Call the caller's handler, and keep what it raises where it would break something."""
    handler = _own_handlers[number]
    if not _is_in_one_piece(frame):
        handler(number, frame)
        return
    try:
        handler(number, frame)
    except BaseException as problem:
        _waiting.append(problem)


def _is_in_one_piece(frame: FrameType | None) -> bool:
    """Whether the signal struck while something is entered or left."""
    while frame is not None:
        if frame.f_code in _PIECES:
            return True
        frame = frame.f_back
    return False


def _is_main_thread() -> bool:
    """The only one in which handlers run."""
    return threading.get_ident() == threading.main_thread().ident


def _take_signals() -> None:
    """Stand in the place of every handler that is written in Python."""
    try:
        for number in SIGNALS:
            handler = handler_of(number)
            if callable(handler):
                if handler is not _handle:
                    _own_handlers[number] = handler  # before ours may be called
                _taken.append(number)
                set_handler(number, _handle)
    except BaseException:
        _give_signals_back()
        raise


def _give_signals_back() -> None:
    """The caller's handlers, unless the caller has set another one meanwhile.

    One that is back may raise at once, and the others are given back all the same. (Ours does no
    harm where it is left: it calls the caller's.)
    """
    problem: BaseException | None = None
    while _taken:
        try:
            number = _taken[-1]
            if handler_of(number) is _handle:
                set_handler(number, _own_handlers[number])
            _taken.pop()
        except BaseException as raised:
            problem = raised
    if problem is not None:
        raise problem


def _raise_waiting() -> None:
    """The last exception that waited, as a later one would have taken an earlier one's place."""
    if _is_main_thread():
        problem = _waiting[-1]
        _waiting.clear()
        raise problem


# The decorator keeps the checks of shapes away: their own frames around ours would be a gap.
@no_type_check
class _Unbroken(AbstractContextManager[Any]):
    """What ``unbroken`` makes.

    It is a class, as the context manager of a generator is itself entered and left in several
    steps.
    """

    def __init__(self, *contexts: AbstractContextManager[Any]) -> None:
        self.contexts = contexts
        self.has_signals = False
        self.stack = ExitStack()

    def __enter__(self) -> Any:
        """Enter all of them; where one refuses, or a signal came, leave those before it."""
        given = None
        if _here.blocks == 0 and _is_main_thread():
            _take_signals()
            self.has_signals = True
        _here.blocks += 1
        try:
            for context in self.contexts:
                given = self.stack.enter_context(context)
            # Nothing is called after this line and the same one below: between calls no handler
            # runs, so that nothing is left waiting.
            if _waiting:
                _raise_waiting()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return given

    def __exit__(self, *problem: Any) -> bool | None:
        """Leave all of them, then raise what waited."""
        try:
            return self.stack.__exit__(*problem)
        finally:
            _here.blocks -= 1
            if self.has_signals:
                self.has_signals = False
                _give_signals_back()
            if _waiting:
                _raise_waiting()


_PIECES = frozenset({_Unbroken.__enter__.__code__, _Unbroken.__exit__.__code__})


def unbroken(*contexts: AbstractContextManager[Any]) -> AbstractContextManager[Any]:
    """Enter these contexts in one piece, and leave them in one piece, each on its own.

    It gives what the last of them gives. Nothing that waits long belongs into it, such as a lock:
    nobody could interrupt that.

    >>> import torch
    >>> with unbroken(torch.inference_mode()):
    ...     torch.is_inference_mode_enabled()
    True
    """
    return _Unbroken(*contexts)


def in_one_piece(
    function: Callable[P, Iterator[T]],
) -> Callable[P, AbstractContextManager[T]]:
    """``contextlib.contextmanager``, with what it makes entered and left in one piece.

    >>> @in_one_piece
    ... def changed(things):
    ...     things.append("changed")
    ...     yield things
    ...     things.clear()
    >>> with changed([]) as things:
    ...     things
    ['changed']
    """
    make = contextmanager(function)

    @wraps(function)
    def begin(*args: P.args, **kwargs: P.kwargs) -> AbstractContextManager[T]:
        return unbroken(make(*args, **kwargs))

    return begin


# ---------------------------------------------------------------------- putting back

# What is changed now, by whom, and how it is put back: a child process has nobody else to do it.
_changes: dict[object, tuple[int, Sequence[Step]]] = {}


@contextmanager
def put_back(*steps: Step) -> Iterator[None]:
    """Take these steps after the block, the last one first, each whatever the others come to.

    They may be taken twice, so a step sets what was, and never toggles. Use it inside of a function
    that is ``in_one_piece``, and before anything is changed.
    """
    change = object()
    _changes[change] = (threading.get_ident(), steps)
    try:
        yield
    finally:
        try:
            each(lambda step: step(), reversed(steps))
        finally:
            del _changes[change]


def each(action: Callable[[T], Any], things: Iterable[T]) -> None:
    """Do it to every one, also after one that fails; then raise what the first failure was."""
    problem: BaseException | None = None
    for thing in things:
        try:
            action(thing)
        except BaseException as raised:
            problem = problem or raised
    if problem is not None:
        raise problem


def _put_back_in_child() -> None:
    """After a fork: put back what threads had changed that are not in this process."""
    here = threading.get_ident()
    for change, (thread, steps) in reversed(list(_changes.items())):
        if thread == here:
            continue
        del _changes[change]
        for step in reversed(steps):
            with suppress(Exception):  # there is nobody to tell, and the others are to be done
                step()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_put_back_in_child)
