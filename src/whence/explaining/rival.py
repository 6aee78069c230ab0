"""What could have stood in the place of something written: how it is asked for, and where it goes.

There is one question, why this rather than that, and one name for what else: ``against``. It was
asked for by three names before (``instead``, ``instead_first``, ``instead_of``), which still work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from whence.core.errors import InputError
from whence.core.generation import written_words
from whence.core.passage import Passage
from whence.core.target import Target
from whence.generation.continuing import given
from whence.models.model import Model
from whence.models.rivals import check_rival, rival_of

BEFORE = ("instead", "instead_first", "instead_of")


@dataclass(frozen=True)
class Other:
    """What could have stood there, as the caller said it.

    ``is_whole`` has it in the place of all that was written, its text as it is; ``first_alone`` has
    the first of several tokens stand for them.
    """

    given: str | int | Sequence[int]
    is_whole: bool = False
    first_alone: bool = False

    @property
    def is_word(self) -> bool:
        """Whether it is one word, or one token: not a longer text."""
        if isinstance(self.given, str):
            return len(self.given.split()) <= 1
        return isinstance(self.given, int)

    def at(self, model: Model, passage: Passage, output: int) -> tuple[int, ...]:
        """Its tokens, as they would be written in the place of an output."""
        if not isinstance(self.given, (str, int)):
            return tuple(self.given)
        ids = rival_of(model, passage, output, self.given)
        return ids[:1] if self.first_alone else ids


def other_asked(model: Model, against: Any, options: dict[str, Any]) -> Other | None:
    """What was asked for, by the name of today or one of before, which ``options`` then lose.

    What no token stands for is refused here, before the model runs.

    >>> import whence
    >>> other_asked(whence.load("writer"), None, {"instead": "few"}).given
    'few'
    """
    old = {name: options.pop(name) for name in BEFORE if name in options}
    first_alone = bool(old.pop("instead_first", False))
    asked = {"against": against, **old}
    asked = {name: value for name, value in asked.items() if value is not None}
    if len(asked) > 1:
        names = " and ".join(f"{name}=" for name in asked)
        raise InputError(f"{names} ask the same question: give against= alone.")
    if not asked:
        return None
    ((name, value),) = asked.items()
    if isinstance(value, str) and name != "instead_of":
        check_rival(model, value)
    return Other(value, name == "instead_of", first_alone)


def place_of(
    model: Model, prompt: Passage, whole: Passage, other: Other, about: Target | None
) -> tuple[range, tuple[int, ...]]:
    """In the place of which written tokens it stands, and its own tokens there.

    It is the place of what ``about`` names. A word of several tokens stands in the place of a whole
    word, also where one token of that was named. Without ``about``, a word stands in the place of
    the first written word, and a text in that of all.
    """
    if other.is_whole:
        text: Any = other.given
        return range(whole.outputs), tuple(given(model, prompt, text).ids.tolist())
    words = written_words(whole)
    if about is None:
        start = _first_of_text(whole)
        steps = range(start, _end_of_text(whole))
        if other.is_word:
            steps = next((word for word in words if word.start >= start), range(whole.outputs))
            if isinstance(other.given, int) or other.first_alone:
                steps = range(start, start + 1)
    else:
        steps = about.steps
    ids = other.at(model, whole, steps.start)
    if len(steps) == 1 and len(ids) > 1:
        steps = next((word for word in words if word.start == steps.start), steps)
    return steps, ids


def _first_of_text(whole: Passage) -> int:
    """The first output that is text, behind special tokens that a decoder begins with."""
    first = whole.output_place(0)
    for output in range(whole.outputs):
        if not whole.special[first + output]:
            return output
    return 0


def _end_of_text(whole: Passage) -> int:
    """Behind the last output that is text: the end of the sequence is none."""
    first = whole.output_place(0)
    for output in reversed(range(whole.outputs)):
        if not whole.special[first + output]:
            return output + 1
    return whole.outputs
