"""A budget that several runs share, as those of a written text do: one plan for each of them.

Without room for all that was asked, these are made smaller, one after the other: the controls and
samples of every run; then the units, as larger ones are fewer (words, then sentences, then
sections); and at last the dearest methods are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from whence.core.budget import Budget
from whence.core.coarser import coarser_kinds
from whence.core.errors import SettingsError
from whence.core.passage import Passage
from whence.core.plan import Plan
from whence.core.request import Request
from whence.explaining.job import Job, job_of, planned
from whence.explaining.planning import (
    Clock,
    Text,
    cost,
    full_plan,
    least_passes,
    weight_of,
    within,
)
from whence.models.model import Model


@dataclass(frozen=True)
class Errand:
    """One of several runs: what is asked, of which passages, and what is judged beside its own."""

    request: Request
    passages: Sequence[Passage]
    added: int = 0


@dataclass(frozen=True)
class SharedPlan:
    """The kind of units of all runs, and the plan of each; None where each makes its own."""

    units: str
    plans: Sequence[Plan | None]


@dataclass(frozen=True)
class Part:
    """A run as planning sees it."""

    job: Job
    text: Text


def shared_plan(
    model: Model, passage: Passage, errands: Callable[[str], Sequence[Errand]], spent: float = 0.0
) -> SharedPlan:
    """How several runs over a passage stay within the budget of their requests.

    ``errands`` gives the runs for a kind of units. ``spent`` are seconds that are gone already.
    """
    as_asked = errands(passage.kind)
    given = as_asked[0].request.budget
    if given is None or Budget.of(given) == Budget():
        return SharedPlan(passage.kind, [None] * len(as_asked))
    budget = Budget.of(given)
    most = passes_within(budget, parts_of(model, as_asked), spent)
    kinds = (passage.kind, *coarser_kinds(passage))
    parts: list[Part] = []
    for kind in kinds:
        parts = parts_of(model, errands(kind))
        if sum(least_passes(part.job, part.text) for part in parts) <= most:
            return SharedPlan(kind, _plans(parts, most, budget, passage.kind, kind, {}))
    left_out = _too_dear(parts, most, budget, kinds[-1])
    plans = _plans(parts, most, budget, passage.kind, kinds[-1], left_out)
    return SharedPlan(kinds[-1], plans)


def parts_of(model: Model, errands: Sequence[Errand]) -> list[Part]:
    """The runs as planning sees them."""
    parts = []
    for errand in errands:
        job = job_of(model, errand.request)
        parts.append(Part(job, Text(errand.passages, errand.added)))
    return parts


def passes_within(budget: Budget, parts: Sequence[Part], spent: float) -> int:
    """A budget in passes; of a time, what is left of it."""
    if budget.passes is not None:
        return budget.passes
    assert budget.seconds is not None
    passes = sum(cost(part.job, part.text, full_plan(part.job.request)).passes for part in parts)
    clock = Clock(parts[0].job, [parts[0].text])
    return int(max(0.0, budget.seconds - spent) / clock.seconds_per_pass(passes))


def _plans(
    parts: Sequence[Part],
    most: int,
    budget: Budget,
    asked: str,
    units: str,
    left_out: Mapping[str, str],
) -> list[Plan | None]:
    """The plan of each run. What a later one takes at least is kept for it.

    Said where units or methods were changed to fit a budget of several runs.

    ``the budget is 200 passes``
    """
    first = Plan(left_out=left_out)
    if units != asked:
        first = replace(first, units=units, asked_units=asked)
    if units != asked or left_out:
        first = replace(first, reason=f"the budget is {budget}")
    remaining = [Part(planned(part.job, first), part.text) for part in parts]
    least = [least_passes(part.job, part.text) for part in remaining]
    plans: list[Plan | None] = []
    for number, part in enumerate(remaining):
        allowed = most - sum(least[number + 1 :])
        own = within(part.job, part.text, full_plan(part.job.request), allowed)
        most -= cost(part.job, part.text, own).passes
        plans.append(
            replace(
                own,
                units=first.units,
                asked_units=first.asked_units,
                left_out={**first.left_out, **own.left_out},
                reason=own.reason or first.reason,
            )
        )
    return plans


def _too_dear(parts: Sequence[Part], most: int, budget: Budget, units: str) -> dict[str, str]:
    """The methods that are left out of every run, the dearest first, and why.

    Said of a method that does not fit the budget of several runs.

    ``left out, as it may take 4,000 passes and the budget is 200 passes.``
    """
    left_out: dict[str, str] = {}
    while True:
        remaining = [Part(planned(part.job, Plan(left_out=left_out)), part.text) for part in parts]
        least = sum(least_passes(part.job, part.text) for part in remaining)
        if least <= most:
            return left_out
        weights: dict[str, int] = {}
        for part in remaining:
            for call in (*part.job.looking, *part.job.playing):
                own = len(part.job.request.targets) if call in part.job.looking else 1
                passes = own * weight_of(call, part.text.units)
                weights[call.name] = weights.get(call.name, 0) + passes
        if len(weights) < 2:
            raise _too_small(remaining, least, budget, units)
        dearest = max(weights, key=lambda name: weights[name])
        left_out[dearest] = (
            f"left out, as it may take {weights[dearest]:,} passes and the budget is {budget}."
        )


def _too_small(parts: Sequence[Part], least: int, budget: Budget, units: str) -> SettingsError:
    has_evidence = any(part.job.request.evidence for part in parts)
    instead = ", or do without evidence (evidence=False, --no-evidence)" if has_evidence else ""
    beside = " and its evidence" if has_evidence else ""
    return SettingsError(
        f"a budget of {budget} is too small: with {units}s as units, the cheapest method{beside} "
        f"may take {least:,} passes. Give more{instead}."
    )


def notes_on_plan(plans: Sequence[Plan]) -> list[str]:
    """What a result says of its plans: one sentence, without its full stop, or nothing."""
    description = plan_of_all(plans).describe()
    return [description.removesuffix(".")] if description else []


def plan_of_all(plans: Sequence[Plan]) -> Plan:
    """What was made smaller in any of several runs, to be told once.

    >>> rows, judged = Plan(reason="the budget is 9 s"), Plan(39, 5, reason="the budget is 9 s")
    >>> plan_of_all([rows, judged]).rankings
    39
    """
    settings: dict[str, Mapping[str, object]] = {}
    left_out: dict[str, str] = {}
    for plan in plans:
        settings |= plan.settings
        left_out |= plan.left_out
    return Plan(
        rankings=min(plan.rankings for plan in plans),
        steps=min(plan.steps for plan in plans),
        settings=settings,
        left_out=left_out,
        reason=next((plan.reason for plan in plans if plan.reason), ""),
        units=plans[0].units,
        asked_units=plans[0].asked_units,
    )
