"""A setting's default together with the sentence that explains it."""

from __future__ import annotations

from dataclasses import Field, field
from typing import Any, TypeVar

T = TypeVar("T")
ABOUT = "about"
# of every setting named ``seed``
SEED = "The number that random draws start from; the same seed gives the same result again."


def setting(default: T, about: str) -> T:
    """The default of a setting, and one sentence on what the setting does.

    ``whence methods NAME`` shows the sentence, and so do the docs.

    >>> from dataclasses import dataclass, fields
    >>> @dataclass(frozen=True)
    ... class Mine:
    ...     samples: int = setting(16, "How many noisy copies of the text are run.")
    >>> Mine().samples
    16
    >>> sentence_of(fields(Mine)[0])
    'How many noisy copies of the text are run.'
    """
    made: Any = field(default=default, metadata={ABOUT: about})
    return made


def sentence_of(entry: Field[Any]) -> str:
    """The sentence of a setting; empty where its author gave none."""
    return entry.metadata.get(ABOUT, "")
