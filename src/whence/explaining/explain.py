"""explain and compare: the keywords of a user, made into one request, and run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from logging import getLogger
from typing import Any, overload

from whence.core.attribution import Attribution
from whence.core.attributions import Attributions
from whence.core.comparison import Comparison
from whence.core.errors import InputError, OurMistake
from whence.core.many import Many
from whence.core.passage import Passage
from whence.core.plan import Plan
from whence.core.registry import methods as all_methods
from whence.core.request import (
    AnyTarget,
    Overflow,
    Request,
    Via,
    targets_of,
    units_as_given,
)
from whence.core.target import Reading
from whence.core.units import UnitKind
from whence.core.usual import METHOD_OF_A_TEXT
from whence.explaining.added import of_lines, shared_target, wishes_and_added
from whence.explaining.job import Outcome, Progress
from whence.explaining.run import run, total_cost
from whence.games.game import check_is_model
from whence.models.model import Model

# names, names with settings, and results that are there already
Methods = Sequence[Any] | Mapping[str, Mapping[str, Any]]
log = getLogger("whence")


@overload
def explain(
    model: Model, text: str | Passage, method: str = ..., **options: Any
) -> Attribution: ...
@overload
def explain(model: Model, text: list[Any], method: str = ..., **options: Any) -> Many: ...
def explain(
    model: Model,
    text: Any,
    method: str = METHOD_OF_A_TEXT,
    *,
    pair: str | Sequence[str] | None = None,
    reply: str | None = None,
    target: AnyTarget | list[AnyTarget] = None,
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
    **settings: Any,
) -> Any:
    """Explain one target of a model on one text, or on each text of a list, by one method.

    A list gives Many: its attributions in order, with counts over the texts.

    ``target`` is a class by name or index, None for the predicted one, a pair for a contrast (*why
    A rather than B*), or a Target; a list of them gives Attributions by target, for which the text
    runs once. ``read`` is logit (default), log-probability, probability or margin. ``memory`` is a
    budget ("2GB"; by default most of what is free), over which a run is refused before it begins.
    ``reply`` is for a model that reads a text and writes another (T5, BART): what it is said to
    have written so far, so that the token which it writes next is explained.
    Unless ``evidence=False``, the ranking is held against random ones of the same text (deletion
    and insertion curves under two removals), by ``rankings`` random ones and ``steps`` steps.
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
    request = Request.of(
        method,
        pair=pair,
        reply=reply,
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
        several = [_by_target(outcomes) for outcomes in run(model, texts, request, progress)]
        return several if isinstance(text, list) else several[0]
    results = explain_as_asked(model, texts, request, progress)
    return Many(tuple(results)) if isinstance(text, list) else results[0]


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


@overload
def compare(
    model: Model,
    text: str | Passage,
    methods: Methods | None = ...,
    **options: Any,
) -> Comparison: ...
@overload
def compare(
    model: Model,
    text: list[Any],
    methods: Methods | None = ...,
    **options: Any,
) -> Many: ...
def compare(  # type: ignore[misc]  # the overloads name what the result depends on
    model: Model,
    text: Any,
    methods: Methods | None = None,
    *,
    pair: str | Sequence[str] | None = None,
    reply: str | None = None,
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
) -> Any:
    """Explain one text by several methods on one shared trace and one game for each removal.

    A list of texts gives Many: a comparison for each text, with counts for each method over them.

    ``methods=None`` takes every method that fits the model. A mapping gives settings:
    ``{"integrated-gradients": {"baseline": "mask"}}``. A list may hold names, such mappings, and
    results that are there already: an Attribution (of this model, text and target; from
    ``explain``, from ``Attribution.from_scores``, or read from a file), or several of them. Where
    no target is named, theirs is taken. Unless ``evidence=False``, each ranking is held against
    the same random rankings of this text, by deletion and insertion curves under two removals:
    ``rankings`` random ones and ``steps`` steps. ``budget`` is the most that a text may cost: a
    time ("30s"), passes ("500 passes"), or "full"; by default a large model gets a leaner plan.
    What was made smaller, or left out, is told by ``plan`` and ``skipped``.

    >>> import whence
    >>> c = whence.compare(whence.load("sentiment"), "not bad at all", ["gradient-l2", "random"])
    >>> list(c)
    ['gradient-l2', 'random']
    """
    check_is_model(model)
    wishes, added = wishes_and_added(list(all_methods()) if methods is None else methods)
    if added and target is None and read is None:
        target = shared_target(added)
    request = Request(
        wishes=wishes,
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
    skip_unfit = methods is None
    if not isinstance(text, list):
        return compare_as_asked(model, text, request, progress, skip_unfit, added)
    added_to_texts = of_lines(added, [getattr(one, "text", one) for one in text])
    comparisons = []
    for place, one in enumerate(text):
        say = _of_several(progress, place, len(text))
        own = added_to_texts[place]
        comparisons.append(compare_as_asked(model, one, request, say, skip_unfit, own))
    return Many(tuple(comparisons))


def _of_several(progress: Progress | None, place: int, count: int) -> Progress | None:
    """What is told of a step, with the number of the text that it belongs to."""
    if progress is None:
        return None
    return lambda step: progress(f"text {place + 1} of {count}: {step}")


def compare_as_asked(
    model: Model,
    text: Any,
    request: Request,
    progress: Progress | None = None,
    skip_unfit: bool = False,
    added: Sequence[Attribution] = (),
    plan: Plan | None = None,
) -> Comparison:
    """The comparison of a request; a method that does not fit the model is skipped or an error.

    ``added`` are attributions that were made before. A ``plan`` is given where several runs share
    a budget.
    """
    begun = time.perf_counter()
    ((outcome,),) = run(model, [text], request, progress, tuple(added), plan=plan)
    if outcome.failed and not (skip_unfit and outcome.attributions):
        raise next(iter(outcome.failed.values()))
    # what was added comes last, and what it took was not taken here
    own = list(outcome.attributions.values())[: len(outcome.attributions) - len(added)]
    peaks = [attribution.cost.peak_bytes for attribution in own]
    cost = replace(
        outcome.cost,
        seconds=time.perf_counter() - begun,
        peak_bytes=max((peak for peak in peaks if peak is not None), default=None),
    )
    skipped = {name: str(problem) for name, problem in outcome.failed.items()}
    for name, problem in outcome.failed.items():
        if isinstance(problem, OurMistake):  # no property of the model: somebody should hear of it
            log.error("%s is left out: %s", name, problem)
    plan = outcome.plan
    skipped |= plan.left_out
    return Comparison(outcome.attributions, cost, skipped, None if plan.is_full else plan)
