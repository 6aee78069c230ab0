"""explain and compare: the keywords of a user, made into one request, and run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, overload

from whence.core.attribution import Attribution
from whence.core.attributions import Attributions
from whence.core.comparison import Comparison
from whence.core.errors import InputError
from whence.core.passage import Passage
from whence.core.registry import find_method, own_budget
from whence.core.registry import methods as all_methods
from whence.core.request import (
    AnyTarget,
    Overflow,
    Request,
    Via,
    targets_of,
    units_as_given,
    wishes_for,
)
from whence.core.target import Reading
from whence.core.units import UnitKind
from whence.explaining.job import Outcome, Progress
from whence.explaining.run import run, total_cost
from whence.games.game import check_is_model
from whence.models.model import Model


@overload
def explain(
    model: Model, text: str | Passage, method: str = ..., **options: Any
) -> Attribution: ...
@overload
def explain(
    model: Model, text: list[Any], method: str = ..., **options: Any
) -> list[Attribution]: ...
def explain(
    model: Model,
    text: Any,
    method: str = "integrated-gradients",
    *,
    pair: str | None = None,
    target: AnyTarget | list[AnyTarget] = None,
    read: Reading | None = None,
    units: UnitKind | Sequence[int] = "word",
    seed: int = 0,
    overflow: Overflow = "error",
    attention_via: Via = "auto",
    memory: str | int | float | None = None,
    evidence: bool = False,
    budget: str | int | None = None,
    rankings: int | None = None,
    steps: int | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Any:
    """Explain one target of a model on one text (or on each text of a list) by one method.

    ``target`` is a class by name or index, None for the predicted one, a pair for a contrast (*why
    A rather than B*), or a Target; a list of them gives Attributions by target, for which the text
    runs once. ``read`` is logit (default), log-probability, probability or margin. ``memory`` is a
    budget ("2GB"; by default most of what is free), over which a run is refused before it begins.
    ``evidence=True`` also holds the ranking against random ones of the same text (deletion and
    insertion curves under two removals), by ``rankings`` random ones and ``steps`` steps.
    ``budget`` is the most that a text may cost: a time ("30s"), passes ("500 passes"), or "full";
    by default a large model gets a leaner plan, which the result tells (``plan``). ``progress`` is
    called with each step. Everything after that is a setting of the method.

    >>> import whence
    >>> model = whence.load("sentiment")
    >>> a = whence.explain(model, "a moving and funny film", "gradient-x-input", target="positive")
    >>> len(a.scores) == len(a.units) == 5
    True
    """
    check_is_model(model)
    budget, settings = own_budget(find_method(method), budget, settings)
    request = Request.of(
        method,
        pair=pair,
        target=target,
        read=read,
        units=units,
        seed=seed,
        overflow=overflow,
        attention_via=attention_via,
        memory=memory,
        evidence=evidence,
        budget=budget,
        rankings=rankings,
        steps=steps,
        **settings,
    )
    texts = text if isinstance(text, list) else [text]
    if isinstance(target, list):
        results = [_by_target(outcomes) for outcomes in run(model, texts, request, progress)]
    else:
        results = explain_as_asked(model, texts, request, progress)
    return results if isinstance(text, list) else results[0]


def explain_as_asked(
    model: Model, texts: Sequence[Any], request: Request, progress: Progress | None = None
) -> list[Attribution]:
    """The attributions of a request for one method and one target, one for each text."""
    return [_only(outcome) for (outcome,) in run(model, texts, request, progress)]


def _only(outcome: Outcome) -> Attribution:
    """The attribution of the only method, or its refusal."""
    for problem in outcome.failed.values():
        raise problem
    (attribution,) = outcome.attributions.values()
    if outcome.plan.is_full:
        return attribution
    return replace(attribution, plan=outcome.plan)


def _by_target(outcomes: Sequence[Outcome]) -> Attributions:
    entries = {}
    for outcome in outcomes:
        attribution = _only(outcome)
        name = attribution.target.describe()
        if name in entries:
            raise InputError(f"two targets are the same number: {name}. Name each one once.")
        entries[name] = attribution
    return Attributions("target", entries, total_cost([outcome.cost for outcome in outcomes]))


def compare(
    model: Model,
    text: Any,
    methods: Sequence[str] | Mapping[str, Mapping[str, Any]] | None = None,
    *,
    pair: str | None = None,
    target: AnyTarget = None,
    read: Reading | None = None,
    units: UnitKind | Sequence[int] = "word",
    seed: int = 0,
    overflow: Overflow = "error",
    attention_via: Via = "auto",
    memory: str | int | float | None = None,
    evidence: bool = True,
    budget: str | int | None = None,
    rankings: int | None = None,
    steps: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Explain one text by several methods on one shared trace and one game for each removal.

    ``methods=None`` takes every method that fits the model. A mapping gives settings:
    ``{"integrated-gradients": {"baseline": "mask"}}``. Unless ``evidence=False``, each ranking is
    held against the same random rankings of this text, by deletion and insertion curves under two
    removals: ``rankings`` random ones and ``steps`` steps. ``budget`` is the most that it may cost:
    a time ("30s"), passes ("500 passes"), or "full"; by default a large model gets a leaner plan.
    What was made smaller, or left out, is told by ``plan`` and ``skipped``.

    >>> import whence
    >>> c = whence.compare(whence.load("sentiment"), "not bad at all", ["gradient-l2", "random"])
    >>> list(c)
    ['gradient-l2', 'random']
    """
    check_is_model(model)
    request = Request(
        wishes=wishes_for(list(all_methods()) if methods is None else methods),
        targets=targets_of(target, read),
        units=units_as_given(units),
        pair=pair,
        seed=seed,
        overflow=overflow,
        attention_via=attention_via,
        memory=memory,
        evidence=evidence,
        budget=budget,
        rankings=rankings,
        steps=steps,
    )
    return compare_as_asked(model, text, request, progress, skip_unfit=methods is None)


def compare_as_asked(
    model: Model,
    text: Any,
    request: Request,
    progress: Progress | None = None,
    skip_unfit: bool = False,
) -> Comparison:
    """The comparison of a request; a method that does not fit the model is skipped or an error."""
    begun = time.perf_counter()
    ((outcome,),) = run(model, [text], request, progress)
    if outcome.failed and not (skip_unfit and outcome.attributions):
        raise next(iter(outcome.failed.values()))
    peaks = [a.cost.peak_bytes for a in outcome.attributions.values()]
    cost = replace(
        outcome.cost,
        seconds=time.perf_counter() - begun,
        peak_bytes=max((peak for peak in peaks if peak is not None), default=None),
    )
    skipped = {name: str(problem) for name, problem in outcome.failed.items()}
    plan = outcome.plan
    skipped |= plan.left_out
    return Comparison(outcome.attributions, cost, skipped, None if plan.is_full else plan)
