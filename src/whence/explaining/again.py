"""Explanations made again, and what metrics say of the first beside them.

Each thing that is other than the first time is done once: one run of all methods on all texts, for
all metrics that ask for it. The target is the one that was resolved the first time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from whence.core.attribution import Attribution, Cost
from whence.core.errors import AuthorError
from whence.core.passage import Passage
from whence.core.registry import methods as registered
from whence.core.request import Request, Wish
from whence.core.target import Target
from whence.explaining.job import Outcome
from whence.explaining.run import run, total_cost
from whence.metrics.again import (
    DRAWS,
    Again,
    AgainMetric,
    Explanation,
    Missing,
    NotMeasured,
    Other,
    drawn_anew,
)
from whence.models.changes import changed_model
from whence.models.exchanged import Neighbour
from whence.models.model import Model

Attributions = Mapping[str, Attribution]  # of one text, by method


@dataclass(frozen=True, eq=False)
class Measured:
    """What a metric says of one explanation of one text; ``value`` is None where it says nothing.

    ``control`` is what it says of explanations that are drawn anew each time, in no order.
    """

    value: float | None
    control: Float[np.ndarray, " draw"]
    reason: str = ""


@dataclass(frozen=True, eq=False)
class MeasuredAgain:
    """For each text, by method and then by metric; and what all of it cost."""

    of_texts: list[dict[str, dict[str, Measured]]]
    cost: Cost


def measured_again(
    model: Model,
    attributions: Sequence[Attributions],
    metrics: Mapping[str, AgainMetric],
    request: Request,
    draws: int = DRAWS,
) -> MeasuredAgain:
    """Metrics of explanations that are made again, of each text by each method.

    ``attributions`` are the first ones, of each text by method, as ``request`` asked for them.
    ``metrics`` go by any name that the caller tells them apart by.

    >>> import whence
    >>> from whence.core.registry import find_metric
    >>> model, text = whence.load("sentiment"), "a truly wonderful and moving little film"
    >>> a = whence.explain(model, text, "smooth-grad", evidence=False)
    >>> metric = find_metric("consistency").settings()
    >>> request = whence.Request.of("smooth-grad", evidence=False)
    >>> m = measured_again(model, [{"smooth-grad": a}], {"it": metric}, request)
    >>> m.of_texts[0]["smooth-grad"]["it"].value > 0.5
    True
    """
    made: dict[Again, list[dict[str, Other]]] = {}
    costs = []
    for again in times_again(metrics.values()):
        made[again], cost = made_again(model, attributions, again, request)
        costs.append(cost)

    of_texts = []
    for i, by_method in enumerate(attributions):
        measured: dict[str, dict[str, Measured]] = {}
        for method, attribution in by_method.items():
            first = Explanation.of(attribution)
            measured[method] = {}
            for name, metric in metrics.items():
                others = [made[again][i][method] for again in metric.again()]
                seed = _seed_of(attribution, request)
                measured[method][name] = _measured(metric, name, first, others, seed, draws)
        of_texts.append(measured)
    return MeasuredAgain(of_texts, total_cost(costs))


def times_again(metrics: Iterable[AgainMetric]) -> tuple[Again, ...]:
    """Each time that an explanation is made once more for these metrics; what they share, once.

    >>> from whence.core.registry import find_metric
    >>> consistency = find_metric("consistency").settings
    >>> len(times_again([consistency(seeds=3), consistency(seeds=5)]))
    5
    """
    wanted: dict[Again, None] = {}
    for metric in metrics:
        wanted.update(dict.fromkeys(metric.again()))
    return tuple(wanted)


def _measured(
    metric: AgainMetric,
    name: str,
    first: Explanation,
    others: Sequence[Other],
    seed: Sequence[int],
    draws: int,
) -> Measured:
    try:
        value = float(metric(first, others))
    except NotMeasured as problem:
        return Measured(None, np.zeros(0), str(problem))
    if not isfinite(value):
        raise AuthorError(
            f"metric {name!r} returned {value}, which is no finite number; where nothing can be "
            "said, raise NotMeasured with the reason."
        )
    return Measured(value, drawn_anew(metric, first, others, seed, draws))


def _seed_of(attribution: Attribution, request: Request) -> list[int]:
    """The same text has the same control, whichever texts stand beside it."""
    digest = b"" if attribution.passage is None else attribution.passage.digest
    return [request.seed, *digest]


# ---------------------------------------------------------------------- making them


def made_again(
    model: Model, attributions: Sequence[Attributions], again: Again, request: Request
) -> tuple[list[dict[str, Other]], Cost]:
    """Every explanation once more, of each text by method, and what it cost.

    Texts with the same target and the same settings share one run. A method that draws nothing is
    not run again under another seed: it would say the same.
    """
    explanations: list[dict[str, Other]] = [{} for _ in attributions]
    questions: list[_Question] = []
    for i, by_method in enumerate(attributions):
        wishes = []
        for method, attribution in by_method.items():
            if method not in registered() or attribution.passage is None:
                explanations[i][method] = Missing(
                    f"{method} was not made here, so it cannot be made again."
                )
            elif _says_the_same(attribution, again):
                explanations[i][method] = Explanation.of(attribution)
            else:
                wishes.append(_wish(attribution, again))
        if wishes:
            first = by_method[wishes[0].method]
            assert first.passage is not None
            questions.append(_Question(i, first.passage, first.target, tuple(wishes)))
    if not questions:
        return explanations, Cost()

    try:
        model_now, paid = (model, 0) if again.model is None else changed_model(model, again.model)
    except Exception as problem:
        _miss(explanations, questions, str(problem))
        return explanations, Cost()
    costs = [Cost(forwards=paid)]

    neighbours, paid = _neighbours(model, questions, again)
    costs.append(Cost(forwards=paid))
    for alike in _groups(questions):
        there = []
        for question in alike:
            neighbour = neighbours[question.text]
            if isinstance(neighbour, str):
                _miss(explanations, [question], neighbour)
            else:
                there.append((question, neighbour))
        texts = [neighbour.passage for _, neighbour in there]
        asked = _asked(request, alike[0], again)
        for (question, neighbour), outcome in zip(
            there, _explained(model_now, texts, asked), strict=True
        ):
            if isinstance(outcome, Exception):
                _miss(explanations, [question], str(outcome))
                continue
            costs.append(outcome.cost)
            moved = None
            if again.model is not None:
                moved = again.model.moved(model, model_now, question.passage)
            for wish in question.wishes:
                explanations[question.text][wish.method] = _other(
                    outcome, wish.method, neighbour.changed, moved
                )
    return explanations, total_cost(costs)


@dataclass(frozen=True, eq=False)
class _Question:
    """What is asked again of one text: the place of the text, and what is the same as before."""

    text: int
    passage: Passage
    target: Target
    wishes: tuple[Wish, ...]


def _says_the_same(attribution: Attribution, again: Again) -> bool:
    """Whether only the seed is another, of a method that draws nothing."""
    if again.model is not None or again.text is not None:
        return False
    settings = attribution.settings
    draws = "seed" in settings or str(settings.get("removal", "")).startswith("infill")
    return not draws or again.seed == 0


def _wish(attribution: Attribution, again: Again) -> Wish:
    """The method as it was run: a budget may have changed what was asked for."""
    settings = dict(attribution.settings)
    if "seed" in settings:
        settings["seed"] = settings["seed"] + again.seed
    return Wish(attribution.method, settings)


def _asked(request: Request, question: _Question, again: Again) -> Request:
    return replace(
        request,
        wishes=question.wishes,
        targets=(question.target,),
        units="word",  # of a passage that is cut already: its own
        pair=None,
        reply=None,
        seed=request.seed + again.seed,
        evidence=False,
        budget=None,
        rankings=None,
        steps=None,
    )


def _groups(questions: Sequence[_Question]) -> list[list[_Question]]:
    """The texts that one run can take: the same target, and the same methods and settings."""
    groups: dict[str, list[_Question]] = {}
    for question in questions:
        wishes = [(wish.method, dict(wish.settings)) for wish in question.wishes]
        key = json.dumps([question.target.to_dict(), wishes], sort_keys=True, default=str)
        groups.setdefault(key, []).append(question)
    return list(groups.values())


def _neighbours(
    model: Model, questions: Sequence[_Question], again: Again
) -> tuple[dict[int, Neighbour | str], int]:
    """The text that is read in place of each, by its place, and the passes that were paid."""
    texts = [question.text for question in questions]
    passages = [question.passage for question in questions]
    if again.text is None:
        same = [Neighbour(p, _none_of(p)) for p in passages]
        return dict(zip(texts, same, strict=True)), 0
    try:
        neighbours = again.text(model, passages)
    except Exception as problem:
        return dict.fromkeys(texts, str(problem)), 0
    return dict(zip(texts, neighbours.of_texts, strict=True)), neighbours.forwards


def _none_of(passage: Passage) -> Bool[np.ndarray, " unit"]:
    return np.zeros(len(passage.units), dtype=bool)


def _explained(
    model: Model, texts: Sequence[Passage], request: Request
) -> list[Outcome | Exception]:
    """What came of each text. Where all together fail, each half is tried, down to single texts."""
    if not texts:
        return []
    try:
        return [outcome for (outcome,) in run(model, texts, request)]
    except Exception as problem:
        if len(texts) == 1:
            return [problem]
    half = len(texts) // 2
    return _explained(model, texts[:half], request) + _explained(model, texts[half:], request)


def _other(
    outcome: Outcome, method: str, changed: Bool[np.ndarray, " unit"], moved: float | None
) -> Other:
    """Said of a method of which nothing came where it was run again.

    ``lime gave no scores.``
    """
    attribution: Any = outcome.attributions.get(method)
    if attribution is None:
        return Missing(str(outcome.failed.get(method, f"{method} gave no scores.")))
    return Explanation.of(attribution, changed, moved)


def _miss(
    explanations: list[dict[str, Other]], questions: Sequence[_Question], reason: str
) -> None:
    for question in questions:
        for wish in question.wishes:
            explanations[question.text][wish.method] = Missing(reason)
