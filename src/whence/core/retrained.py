"""What was found about attention by training: copies of the model, or another model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from whence.core.stored import Stored


@dataclass(frozen=True)
class Retrained:
    """One such test: what it says, the answer in the first line, and all of its numbers.

    >>> Retrained("frozen attention", "Nothing is lost.\\nSeeds: 3", {"lost": 0.0}).answer
    'Nothing is lost.'
    """

    test: str
    says: str
    numbers: Mapping[str, Any]

    @property
    def answer(self) -> str:
        """The first line of what it says."""
        return self.says.partition("\n")[0]

    @classmethod
    def from_stored(cls, stored: Stored) -> Retrained:
        """What was written as plain values."""
        numbers = {name: value.value for name, value in stored["numbers"].entries().items()}
        return cls(stored["test"].text(), stored["says"].text(), numbers)
