"""A case: one text, what the model is asked of it, and what is true of it, if that is known.

A test is a frozen dataclass of its settings. It declares ``null`` (what it would find if attention
meant nothing) and ``effect`` (its effect size, with the unit), says by ``passes`` what it will
cost, and is called with the model and several cases, which it may batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from whence.core.audit import Observation
from whence.core.passage import Passage
from whence.core.target import Target
from whence.models.model import Model


@dataclass(frozen=True, eq=False)
class Case:
    """One text under audit.

    ``target`` is resolved on the text as it is. ``label`` is the true one, as an index, or of a
    regression the true number; None where the data do not tell. ``seed`` is of everything random on
    this text.
    """

    passage: Passage
    target: Target
    label: int | float | None = None
    seed: int = 0


@dataclass(frozen=True)
class Price:
    """What a test costs on one text, in passes of that text."""

    forwards: int
    backwards: int = 0


@runtime_checkable
class AuditTest(Protocol):
    """A test of attention on texts, each by itself."""

    name: ClassVar[str]
    null: ClassVar[str]
    effect: ClassVar[str]

    def passes(self, heads: int, wholes: int) -> Price:
        """What one text costs at most.

        ``heads`` counts those of all layers together, and ``wholes`` the places that are more than
        one head: each layer, each kind of attention if there are several, and all of it.
        """
        ...

    def __call__(self, model: Model, cases: Sequence[Case]) -> list[list[Observation]]:
        """What was found on each case."""
        ...
