"""A Meter counts passes as they are paid, and tells them to whoever watches a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from whence.core.progress import Step

if TYPE_CHECKING:
    from whence.explaining.forecast import Forecast

Progress = Callable[[str], None]


def say_nothing(_step: str) -> None:
    """For a run that nobody watches."""


@dataclass(eq=False)
class Meter:
    """Passes done, of those that were forecast.

    ``expected`` are the passes of each step for one ask, by the step's name, and ``of`` those of
    the whole run. When a step ends, what it really took replaces what was expected, so that ``of``
    comes nearer to the truth.
    """

    tell: Progress = say_nothing
    expected: Mapping[str, float] = field(default_factory=dict)
    of: float = 0.0
    done: int = 0
    _step: str = ""
    _of_step: float = 0.0
    _done_in_step: int = 0

    def expect(self, forecast: Forecast, asks: int) -> None:
        """Tell what a run will cost; it has so many asks."""
        self.expected = {step: passes / asks for step, passes in forecast.by_step().items()}
        self.of = forecast.passes
        self.tell(Step(str(forecast), 0, forecast.passes, forecast))

    def begin(self, step: str, asks: int = 1) -> None:
        """A step begins, for so many asks at once; the one before has ended."""
        self.of += self._done_in_step - self._of_step
        self._step = step
        self._of_step = asks * self.expected.get(step, 0.0)
        self._done_in_step = 0
        self._say(step)

    def paid(self, passes: int, words: str = "") -> None:
        """So many more passes were run."""
        self.done += passes
        self._done_in_step += passes
        self._say(words or self._step)

    def _say(self, words: str) -> None:
        more_than_expected = max(0.0, self._done_in_step - self._of_step)
        of = round(self.of + more_than_expected) if self.expected else None
        self.tell(Step(words, self.done, of))


def as_meter(say: Progress | Meter | None) -> Meter:
    """A meter that tells a plain function, without a forecast."""
    if isinstance(say, Meter):
        return say
    return Meter(say or say_nothing)
