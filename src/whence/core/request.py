"""A Request: what one run was asked for. Whoever starts a run makes one and hands it on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

import numpy as np

from whence.core.budget import Budget
from whence.core.errors import InputError, SettingsError, unknown_name
from whence.core.evidence import FEWEST_RANKINGS, FEWEST_STEPS
from whence.core.passage import Passage
from whence.core.registry import find_method, own_budget
from whence.core.sizes import parsed
from whence.core.target import Reading, Target, as_target
from whence.core.units import UnitKind

Overflow = Literal["error", "truncate", "window"]
Via = Literal["auto", "interface", "output"]
AnyTarget = Target | str | int | tuple[str | int, str | int] | None


@dataclass(frozen=True)
class Ask:
    """One question to a model: this passage, and this number about it."""

    passage: Passage
    target: Target = field(default_factory=Target)


@dataclass(frozen=True)
class Wish:
    """A method by its name, with the settings that the caller gave."""

    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """Everything that one run was asked for, except the model and the texts.

    ``targets`` are usually one; with several, each text is explained for each of them.
    ``units`` are a kind, or the character positions at which the caller's own sections begin.
    ``memory`` is a budget, in bytes or as in "2GB"; None takes most of what is free.
    ``budget`` is one of time or passes for each text ("30s", "500 passes"; "full" is no limit).
    ``rankings`` and ``steps`` fix the size of the evidence, whatever the budget says.

    >>> request = Request.of("lime", target="positive", samples=200)
    >>> request.wishes
    (Wish(method='lime', settings={'samples': 200}),)
    >>> Request.from_dict(request.to_dict()) == request
    True
    """

    wishes: tuple[Wish, ...]
    targets: tuple[Target, ...] = (Target(),)
    units: UnitKind | tuple[int, ...] = "word"
    # the second text; of a multiple choice, the choices
    pair: str | Sequence[str] | None = None
    # what an encoder-decoder is said to have written so far: its next token is explained
    reply: str | None = None
    seed: int = 0
    overflow: Overflow = "error"
    attention_via: Via = "auto"
    memory: str | int | float | None = None
    evidence: bool = True
    budget: str | int | None = None
    rankings: int | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        if self.pair is not None and not isinstance(self.pair, str):
            object.__setattr__(self, "pair", tuple(self.pair))
        if not self.targets:
            raise InputError("a run needs at least one target; None is what the model predicts.")
        _check_choice("overflow", self.overflow, Overflow)
        _check_choice("attention_via", self.attention_via, Via)
        if self.memory is not None:
            parsed(self.memory)
        if self.budget is not None:
            Budget.of(self.budget)
        if self.rankings is not None:
            check_rankings(self.rankings)
        if self.steps is not None:
            check_steps(self.steps)

    @classmethod
    def of(
        cls,
        method: str,
        *,
        target: AnyTarget | list[AnyTarget] = None,
        read: Reading | None = None,
        units: UnitKind | Sequence[int] = "word",
        pair: str | Sequence[str] | None = None,
        reply: str | None = None,
        seed: int = 0,
        overflow: Overflow = "error",
        attention_via: Via = "auto",
        memory: str | int | float | None = None,
        evidence: bool = True,
        budget: str | int | None = None,
        rankings: int | None = None,
        steps: int | None = None,
        **settings: Any,
    ) -> Request:
        """The request of one method, from the keywords of ``whence.explain``.

        A plain number as ``budget`` goes to a method that has a setting of that name.
        """
        budget, settings = own_budget(find_method(method), budget, settings)
        return cls(
            wishes=(Wish(method, settings),),
            targets=targets_of(target, read),
            units=units_as_given(units),
            pair=pair,
            reply=reply,
            seed=seed,
            overflow=overflow,
            attention_via=attention_via,
            memory=memory,
            evidence=evidence,
            budget=budget,
            rankings=rankings,
            steps=steps,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        stored = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        stored["wishes"] = [asdict(wish) for wish in self.wishes]
        stored["targets"] = [target.to_dict() for target in self.targets]
        if not isinstance(self.units, str):
            stored["units"] = list(self.units)
        return stored

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Request:
        """What ``to_dict`` gave, or what a file of a run says."""
        known = [entry.name for entry in fields(cls)]
        for name in stored:
            if name not in known:
                raise SettingsError(f"a request: {unknown_name('entry', name, known)}")
        values = dict(stored)
        values["wishes"] = tuple(Wish(**wish) for wish in stored["wishes"])
        values["targets"] = tuple(Target(**target) for target in stored.get("targets", [{}]))
        values["units"] = units_as_given(stored.get("units", "word"))
        return cls(**values)


def targets_of(
    target: AnyTarget | list[AnyTarget], read: Reading | None = None
) -> tuple[Target, ...]:
    """One target or a list of them, as Targets that are all read in the same way.

    >>> [t.describe() for t in targets_of(["positive", ("positive", "negative")])]
    ['logit of positive', 'logit of positive rather than negative']
    """
    if isinstance(target, list):
        return tuple(as_target(one, read) for one in target)
    return (as_target(target, read),)


def wishes_for(
    methods: Iterable[str] | Mapping[str, Mapping[str, Any]],
) -> tuple[Wish, ...]:
    """The methods by name, each with its settings where a mapping gives some."""
    if isinstance(methods, Mapping):
        return tuple(Wish(name, dict(settings)) for name, settings in methods.items())
    return tuple(Wish(name) for name in methods)


def units_as_given(units: UnitKind | Sequence[int]) -> UnitKind | tuple[int, ...]:
    """A kind of unit, or the caller's section starts as plain whole numbers."""
    if isinstance(units, str) or not isinstance(units, Iterable):
        return units  # whoever cuts the text refuses what is no kind of unit
    return tuple(int(cut) if isinstance(cut, np.integer) else cut for cut in units)


def check_rankings(rankings: int) -> None:
    """Refuse so few random rankings that no verdict could come of them."""
    if rankings < FEWEST_RANKINGS:
        raise InputError(
            f"evidence needs at least {FEWEST_RANKINGS} random rankings, not {rankings}: "
            "the best of fewer is not rare enough for a verdict."
        )


def check_steps(steps: int) -> None:
    """Refuse a curve that would be the same for every ranking."""
    if steps < FEWEST_STEPS:
        raise InputError(
            f"the curves of evidence need at least {FEWEST_STEPS} steps, not {steps}: "
            "one step is the whole text and the empty one, whatever the ranking."
        )


def _check_choice(name: str, value: Any, choices: Any) -> None:
    if value not in get_args(choices):
        raise InputError(f"{name} is one of {', '.join(get_args(choices))}, not {value!r}.")
