"""What a run tells whoever watches it: the step, and how far it has come."""

from __future__ import annotations

from typing import Any


class Step(str):
    """The words of a step; ``done`` of ``of`` passes are behind it.

    It is a string, so that ``progress=print`` and any other function of one string will do.
    ``of`` is None where nothing was forecast. The first step of a run carries its ``forecast``.

    >>> step = Step("lime: 32 of 112 passes", done=32, of=2000)
    >>> print(step)
    lime: 32 of 112 passes
    >>> step.done / step.of
    0.016
    """

    done: int
    of: int | None
    forecast: Any

    def __new__(
        cls, words: str, done: int = 0, of: int | None = None, forecast: Any = None
    ) -> Step:
        """A string with numbers beside it."""
        step = super().__new__(cls, words)
        step.done = done
        step.of = of
        step.forecast = forecast
        return step
