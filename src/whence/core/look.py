"""Look: what ``attend`` and ``probe`` were asked for, in one record that can be stored as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

import numpy as np

from whence.core.errors import InputError, SettingsError
from whence.core.request import Overflow, Via
from whence.core.sizes import parsed
from whence.core.target import Target, as_target

HeadWord = Literal["all", "mean", "max"]


@dataclass(frozen=True)
class Look:
    """What is to be seen of a text's attention. Its values are checked when it is made.

    ``units`` is a kind of unit, or the characters where sections begin; whether it suits the text
    is checked when the text is read. ``heads`` and ``layers`` choose what is kept: a word, or
    numbers. ``neurons`` keeps queries and keys too. ``effects`` switches every head off once, to
    see what the ``target`` loses. ``generate`` lets the model write so many tokens; ``reply`` gives
    the decoder's text instead. ``pair`` is a second text. ``overflow`` says what becomes of a text
    that is too long, ``memory`` is a budget ("2GB"), ``attention_via`` the way to the weights.

    >>> look = Look(heads=[0, 3], layers=1)
    >>> look.heads, look.layers
    ((0, 3), (1,))
    >>> Look.from_dict(look.to_dict()) == look
    True
    """

    units: str | Sequence[int] = "word"
    heads: HeadWord | int | Sequence[int] = "all"
    layers: Literal["all"] | int | Sequence[int] = "all"
    neurons: bool = False
    effects: bool = False
    target: Target | str | int | tuple[str | int, str | int] | None = None
    generate: int = 0
    reply: str | None = None
    pair: str | Sequence[str] | None = None
    overflow: Overflow = "error"
    memory: str | int | float | None = None
    attention_via: Via = "auto"

    def __post_init__(self) -> None:
        # what may be said in several ways is kept in one
        if isinstance(self.units, Iterable) and not isinstance(self.units, str):
            object.__setattr__(self, "units", tuple(self.units))
        if self.pair is not None and not isinstance(self.pair, str):
            object.__setattr__(self, "pair", tuple(self.pair))
        heads = _word_or_numbers(self.heads, "heads", get_args(HeadWord))
        layers = _word_or_numbers(self.layers, "layers", ("all",))
        object.__setattr__(self, "heads", heads)
        object.__setattr__(self, "layers", layers)
        object.__setattr__(self, "target", as_target(self.target))
        self._check_values()
        self._check_together()

    def _check_values(self) -> None:
        if self.overflow == "window":
            raise InputError("attention maps are of one run; overflow is 'error' or 'truncate'.")
        if self.overflow not in ("error", "truncate"):
            raise InputError(f"overflow is 'error' or 'truncate', not {self.overflow!r}.")
        if not isinstance(self.generate, int):
            raise InputError(f"generate= is a number of tokens, not {self.generate!r}.")
        if self.attention_via not in get_args(Via):
            ways = ", ".join(get_args(Via))
            raise SettingsError(f"attention_via is one of {ways}, not {self.attention_via!r}.")
        if self.memory is not None:
            parsed(self.memory)

    def _check_together(self) -> None:
        """What cannot be asked for together."""
        if self.generate and self.reply is not None:
            raise InputError(
                "either reply= gives the decoder's text or generate= lets the model write it."
            )
        if self.neurons and self.generate:
            raise InputError(
                "neurons are of a given text: attend to what was generated (maps.passage) "
                "once more, with neurons=True."
            )
        if self.effects and (self.heads != "all" or self.generate):
            raise InputError(
                "effects are of single heads on a given text: use heads='all' and no generate=."
            )

    @property
    def head_choice(self) -> HeadWord | tuple[int, ...]:
        """``heads`` as it stands after the check: a word, or numbers."""
        if isinstance(self.heads, str):
            return self.heads
        return _checked(self.heads)

    @property
    def chosen_heads(self) -> tuple[int, ...] | None:
        """The numbers of the heads that are kept; None for all, or for their mean or largest."""
        return None if isinstance(self.heads, str) else _checked(self.heads)

    @property
    def chosen_layers(self) -> tuple[int, ...] | None:
        """The numbers of the layers that are kept; None for all."""
        return None if isinstance(self.layers, str) else _checked(self.layers)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        stored = asdict(self)
        for name in ("units", "heads", "layers"):
            if isinstance(stored[name], tuple):
                stored[name] = [int(number) for number in stored[name]]
        return stored

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Look:
        """What ``to_dict`` gave."""
        known = [field.name for field in fields(cls)]
        unknown = [name for name in stored if name not in known]
        if unknown:
            raise SettingsError(f"a Look has no field {unknown[0]!r}; it has {', '.join(known)}.")

        target = stored.get("target")
        if isinstance(target, dict):
            target = Target(**target)
        return cls(**{**stored, "target": target})


def _word_or_numbers(choice: Any, name: str, words: tuple[str, ...]) -> str | tuple[int, ...]:
    """One of ``words`` as it is, or numbers as a tuple."""
    problem = InputError(
        f"{name} is {', '.join(map(repr, words))}, a number or a list of numbers, not {choice!r}."
    )
    if isinstance(choice, str):
        if choice not in words:
            raise problem
        return choice

    numbers = tuple(choice) if isinstance(choice, Iterable) else (choice,)
    if not numbers or len(set(numbers)) < len(numbers):
        raise problem
    if not all(_is_whole(number) for number in numbers):
        raise problem
    return tuple(int(number) for number in numbers)


def _checked(choice: int | Sequence[int]) -> tuple[int, ...]:
    assert isinstance(choice, tuple)  # the record made it one
    return choice


def _is_whole(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)
