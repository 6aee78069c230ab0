"""Modes: what sees every torch function of a block, entered and left so that no interrupt harms.

torch takes a mode off its stack while the mode is at work. An interrupt in that moment loses it,
and a plain ``with mode`` would then take off one of the caller's in its place; or torch puts it
back later, as the traceback is forgotten. So the stack is set as a whole, and a mode that is over
does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch.overrides import (
    TorchFunctionMode,
    _get_current_function_mode_stack,
    _pop_mode,
    _push_mode,
)

from whence.models.unbroken import in_one_piece, put_back


class Mode(TorchFunctionMode):
    """A mode whose ``meet`` is given every torch function until its block is left."""

    is_over = False

    def __torch_function__(
        self,
        func: Any,
        types: Sequence[Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Meet the function, or run it as if this mode were not there."""
        del types
        named = dict(kwargs or {})
        if self.is_over:
            return func(*args, **named)
        return self.meet(func, tuple(args), named)

    def meet(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What is done in place of the function: here, nothing else."""
        return func(*args, **kwargs)


class Watch(Mode):
    """A mode that sees every torch function before it is run, and changes nothing.

    The function is run in ``__torch_function__`` itself: what it raises is then the doing of who
    called it, and not ours (``models/passing.py``).
    """

    def __torch_function__(
        self,
        func: Any,
        types: Sequence[Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """See the function, and run it as it is."""
        del types
        named = dict(kwargs or {})
        if not self.is_over:
            self.see(getattr(func, "__name__", ""), tuple(args), named)
        return func(*args, **named)

    def see(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """What is noted of a function."""


@in_one_piece
def met_by(mode: Mode) -> Iterator[None]:
    """Let a mode meet every torch function that this thread calls in a block."""
    others = [other for other in _get_current_function_mode_stack() if not _is_over(other)]
    with put_back(lambda: _end(mode), lambda: _stack(others)):
        _stack([*others, mode])
        yield


def _stack(modes: Sequence[TorchFunctionMode]) -> None:
    """Make these the modes of torch, whatever they are now."""
    while _get_current_function_mode_stack():
        _pop_mode()
    for mode in modes:
        _push_mode(mode)


def _end(mode: Mode) -> None:
    mode.is_over = True


def _is_over(mode: TorchFunctionMode) -> bool:
    return isinstance(mode, Mode) and mode.is_over
