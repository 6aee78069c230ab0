"""A mode is left as it was entered, whatever an interrupt does to torch's stack of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.overrides

from whence.models.modes import Mode, met_by


class Refusing(Mode):
    """It would be noticed, if it were at work."""

    def meet(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        raise AssertionError("the mode is at work")


class Own(torch.overrides.TorchFunctionMode):
    """A mode of the caller's own."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _lose_the_mode() -> None:
    torch.overrides._pop_mode()
    raise KeyboardInterrupt


def test_a_mode_that_an_interrupt_loses_takes_none_of_the_callers_with_it() -> None:
    """torch takes a mode off its stack while it works, and an interrupt then loses it.

    The enemy, ``with mode``, takes the caller's off in its place, or raises for an empty stack
    instead of the interrupt.
    """
    for own in ([], [Own()]):
        for mode in own:
            mode.__enter__()
        with pytest.raises(KeyboardInterrupt), met_by(Refusing()):
            _lose_the_mode()
        assert torch.overrides._get_current_function_mode_stack() == own
        for mode in own:
            mode.__exit__(None, None, None)


def test_a_mode_that_torch_puts_back_too_late_does_nothing_and_is_taken_off() -> None:
    x = torch.ones(1, 2, requires_grad=True)
    with met_by(Refusing()):
        (late,) = torch.overrides._get_current_function_mode_stack()
    torch.overrides._push_mode(late)
    try:
        assert torch.fft.fft(x).shape == (1, 2)
        with met_by(Refusing()):
            assert late not in torch.overrides._get_current_function_mode_stack()
    finally:
        while torch.overrides._get_current_function_mode_stack():
            torch.overrides._pop_mode()


def test_a_mode_meets_every_function_of_its_block_and_none_after_it() -> None:
    x = torch.ones(2)
    with pytest.raises(AssertionError, match="at work"), met_by(Refusing()):
        x.sum()
    assert x.sum() == 2
