"""The plan of a run: what is made smaller so that its cost stays within bounds.

Without a budget the plan follows from the size of the model and the length of the text, never from
a clock, so that every machine gives the same results. With one, what is made smaller comes in this
order: the control (fewer random rankings and steps), the samples of methods that draw some, those
of methods that can stop anywhere once more, then the dearest methods are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from whence.core.budget import Budget
from whence.core.errors import SettingsError
from whence.core.evidence import FEWEST_RANKINGS, USUAL_RANKINGS, USUAL_STEPS
from whence.core.passage import Passage
from whence.core.plan import Plan
from whence.core.registry import methods as all_methods
from whence.core.request import (
    AnyTarget,
    Overflow,
    Request,
    targets_of,
    units_as_given,
    wishes_for,
)
from whence.core.units import UnitKind
from whence.explaining.forecast import (
    Forecast,
    declared_passes,
    forecast_of,
    nominal_seconds,
    timed_pass,
    together,
)
from whence.explaining.job import Job, MethodCall, job_of, planned
from whence.explaining.meter import say_nothing
from whence.explaining.room import forecast_process
from whence.games.game import check_is_model
from whence.models.model import Model

LEAN_RANKINGS = FEWEST_RANKINGS
LEAN_STEPS = 5
# nominal seconds, over which a run without a budget is made lean
NOMINAL_LIMIT = 90.0
# nominal seconds that a method which can stop anywhere takes at most, without a budget
NOMINAL_LIMIT_OF_A_METHOD = 60.0


@dataclass(frozen=True)
class Text:
    """One text of a run, in its windows, and how many attributions from elsewhere it has."""

    windows: Sequence[Passage]
    added: int = 0

    @property
    def units(self) -> int:
        """Those of its longest window."""
        return max(len(window.unit_spans) for window in self.windows)


def forecast(
    model: Model,
    text: Any,
    methods: str | Sequence[str] | Mapping[str, Mapping[str, Any]] | None = None,
    *,
    pair: str | Sequence[str] | None = None,
    target: AnyTarget = None,
    units: UnitKind | Sequence[int] = "word",
    overflow: Overflow = "error",
    evidence: bool = True,
    budget: str | int | None = None,
    rankings: int | None = None,
    steps: int | None = None,
) -> Forecast:
    """What ``compare`` (or, of one method, ``explain``) will cost with the same arguments.

    One batch of the unperturbed text is timed, and memory is measured on three short texts;
    nothing else is run.

    >>> import whence
    >>> model = whence.load("sentiment")
    >>> cost = whence.forecast(model, "not bad at all", ["gradient-l2", "occlusion"])
    >>> cost.methods["occlusion"].forwards, cost.evidence
    (5, 27)
    """
    check_is_model(model)
    if methods is None:
        methods = list(all_methods())
    if isinstance(methods, str):
        methods = [methods]
    request = Request(
        wishes=wishes_for(methods),
        targets=targets_of(target),
        units=units_as_given(units),
        pair=pair,
        overflow=overflow,
        evidence=evidence,
        budget=budget,
        rankings=rankings,
        steps=steps,
    )
    job = job_of(model, request)
    if not isinstance(text, Passage):
        text = model.encode(text, pair, units=units, overflow=overflow)
    texts = [Text(model.windows(model.placed(text, request.targets[0])))]
    clock = Clock(job, texts)
    plans = [plan_for(job, text, clock) for text in texts]
    longest = max((window for text in texts for window in text.windows), key=len)
    memory = forecast_process(job, longest)
    return replace(
        _forecast_of_plans(job, texts, plans, clock),
        peak_bytes=memory.total if memory.is_known else None,
    )


def planned_jobs(job: Job, texts: Sequence[Text], plan: Plan | None = None) -> list[Job]:
    """The job of each text. What all of them will cost is told to whoever watches.

    A ``plan`` is made already where several runs share a budget.
    """
    clock = Clock(job, texts)
    plans = [plan_for(job, text, clock) if plan is None else plan for text in texts]
    if job.meter.tell is not say_nothing:
        asks = len(job.request.targets) * sum(len(text.windows) for text in texts)
        job.meter.expect(_forecast_of_plans(job, texts, plans, clock), asks)
    return [planned(job, plan) for plan in plans]


def _forecast_of_plans(
    job: Job, texts: Sequence[Text], plans: Sequence[Plan], clock: Clock
) -> Forecast:
    """What all texts will cost together, and the first plan that is leaner than usual."""
    costs = [cost(job, text, plan) for text, plan in zip(texts, plans, strict=True)]
    total = together(costs)
    descriptions = [plan.describe() for plan in plans if not plan.is_full]
    return replace(
        total,
        seconds_per_pass=clock.seconds_per_pass(total.passes),
        plan=next(iter(descriptions), ""),
    )


class Clock:
    """The seconds of one pass, measured once, when first asked for."""

    def __init__(self, job: Job, texts: Sequence[Text]) -> None:
        self.job = job
        self.texts = texts
        self.seconds: float | None = None

    def seconds_per_pass(self, passes: int) -> float:
        """Of one pass among so many."""
        if self.seconds is None:
            windows = [window for text in self.texts for window in text.windows]
            usual = sorted(windows, key=len)[len(windows) // 2]
            self.seconds = timed_pass(self.job, usual, passes)
        return self.seconds


def plan_for(job: Job, text: Text, clock: Clock) -> Plan:
    """The plan of one text; the ``clock`` is asked only for a budget of time.

    Said where a large model is asked for more than a few minutes, and no budget was given.
    """
    request = job.request
    full = full_plan(request)
    cost_of_full = cost(job, text, full).passes
    if request.budget is None:
        longest = max(text.windows, key=len)
        if nominal_seconds(job.model, longest, cost_of_full) <= NOMINAL_LIMIT:
            return full
        reason = f"the whole plan would take {cost_of_full:,} passes of a model of this size"
        lean = _lean(job, text, replace(full, reason=reason))
        lean = _cut_to_nominal_time(job, text, lean)
        return full if replace(lean, reason="") == full else lean

    budget = Budget.of(request.budget)
    if budget == Budget():
        return full
    if budget.passes is not None:
        most = budget.passes
    else:
        assert budget.seconds is not None
        most = int(budget.seconds / clock.seconds_per_pass(cost_of_full))
    return within(job, text, full, most)


def full_plan(request: Request) -> Plan:
    """Everything, as it was asked for."""
    return Plan(request.rankings or USUAL_RANKINGS, request.steps or USUAL_STEPS)


def within(job: Job, text: Text, full: Plan, most: int) -> Plan:
    """The plan, made smaller step by step until it takes at most so many passes.

    Said where the whole plan does not fit the budget.

    ``the budget is 200 passes``
    """
    if cost(job, text, full).passes <= most:
        return full
    smaller = replace(full, reason=f"the budget is {Budget.of(job.request.budget)}")
    smaller = _with_lean_control(job.request, smaller)
    if cost(job, text, smaller).passes <= most:
        return smaller
    smaller = _lean(job, text, smaller)
    return _without_the_dearest(job, text, smaller, most)


def least_passes(job: Job, text: Text) -> int:
    """What a text takes if all is made as small as it can be, and no method is left out."""
    lean = _lean(job, text, full_plan(job.request))
    return cost(job, text, _cut_to(job, text, lean, most=0)).passes


def cost(job: Job, text: Text, plan: Plan) -> Forecast:
    """What a text costs under a plan."""
    job = planned(job, plan)
    return together([forecast_of(job, window, text.added) for window in text.windows])


def _lean(job: Job, text: Text, plan: Plan) -> Plan:
    """A smaller control, and fewer samples."""
    plan = _with_lean_control(job.request, plan)
    return replace(plan, settings=_lean_settings(job, text.units))


def _with_lean_control(request: Request, plan: Plan) -> Plan:
    """Fewer random rankings and steps, unless the caller said how many."""
    if not request.evidence:
        return plan
    return replace(
        plan,
        rankings=request.rankings or LEAN_RANKINGS,
        steps=request.steps or LEAN_STEPS,
    )


def _lean_settings(job: Job, units: int) -> Mapping[str, Mapping[str, Any]]:
    """By method: what it declares as lean, where the caller gave no such setting and it saves."""
    lean = {}
    for call in (*job.looking, *job.playing):
        if not hasattr(call.settings, "lean"):
            continue
        lowered = _not_given(job, call, call.settings.lean(units))
        cheaper = replace(call, settings=replace(call.settings, **lowered))
        if weight_of(cheaper, units) < weight_of(call, units):
            lean[call.name] = lowered
    return lean


def _cut_to(job: Job, text: Text, plan: Plan, most: int) -> Plan:
    """Let methods that can stop anywhere stop sooner, the dearest first, until the run fits.

    Or until none of them can be made cheaper.
    """
    while (over := cost(job, text, plan).passes - most) > 0:
        calls = _that_stop_anywhere(job, text, plan)
        if not calls:
            break
        dearest = max(calls, key=lambda call: weight_of(call, text.units))
        allowed = max(1, weight_of(dearest, text.units) - over)
        plan = _allowing(job, text, plan, dearest, allowed)
    return plan


def _cut_to_nominal_time(job: Job, text: Text, plan: Plan) -> Plan:
    """Of a very large model, no method that can stop anywhere takes more than its limit."""
    longest = max(text.windows, key=len)
    allowed = max(1, int(NOMINAL_LIMIT_OF_A_METHOD / nominal_seconds(job.model, longest, 1)))
    for call in _that_stop_anywhere(job, text, plan):
        if weight_of(call, text.units) > allowed:
            plan = _allowing(job, text, plan, call, allowed)
    return plan


def _that_stop_anywhere(job: Job, text: Text, plan: Plan) -> list[MethodCall]:
    """The methods of a plan that can be made cheaper still, by settings that nobody gave."""
    remaining = planned(job, plan)
    calls = []
    for call in (*remaining.looking, *remaining.playing):
        if not hasattr(call.settings, "within"):
            continue
        settings = _not_given(job, call, call.settings.within(text.units, 1))
        cheapest = replace(call, settings=replace(call.settings, **settings))
        if weight_of(cheapest, text.units) < weight_of(call, text.units):
            calls.append(call)
    return calls


def _allowing(job: Job, text: Text, plan: Plan, call: MethodCall, passes: int) -> Plan:
    """The plan, with settings by which a method takes so many passes, or the fewest it can."""
    settings = _not_given(job, call, call.settings.within(text.units, passes))
    lowered = {**plan.settings.get(call.name, {}), **settings}
    return replace(plan, settings={**plan.settings, call.name: lowered})


def _not_given(job: Job, call: MethodCall, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without those that the caller gave."""
    given = {wish.method: wish.settings for wish in job.request.wishes}[call.name]
    return {name: value for name, value in settings.items() if name not in given}


def _without_the_dearest(job: Job, text: Text, plan: Plan, most: int) -> Plan:
    """Leave out one method after the other, the dearest first, until the rest fits.

    Before, those that can stop anywhere are cut; what counts is what they take at least.
    """
    while cost(job, text, cut := _cut_to(job, text, plan, most)).passes > most:
        remaining = planned(job, cut)
        calls = [*remaining.looking, *remaining.playing]
        weights = {call.name: weight_of(call, text.units) for call in calls}
        if len(calls) < 2:
            raise _too_small(job, text, cut)
        dearest = max(weights, key=lambda name: weights[name])
        left_out = {**plan.left_out, dearest: _why(job, weights[dearest])}
        lowered = {name: lean for name, lean in plan.settings.items() if name != dearest}
        plan = replace(plan, left_out=left_out, settings=lowered)
    return cut


def weight_of(call: MethodCall, units: int) -> int:
    """What a method takes by itself; nothing, as far as is known, where it does not tell."""
    declared = declared_passes(call, units)
    return 0 if declared is None else declared.weight


def _why(job: Job, passes: int) -> str:
    """Said of a method that does not fit the budget.

    ``left out, as it may take 4,000 passes and the budget is 200 passes.``
    """
    budget = Budget.of(job.request.budget)
    return f"left out, as it may take {passes:,} passes and the budget is {budget}."


def _too_small(job: Job, text: Text, plan: Plan) -> SettingsError:
    least = cost(job, text, plan)
    method = " and ".join(least.methods) or "the result that is given"
    budget = Budget.of(job.request.budget)
    too_small = f"a budget of {budget} is too small"
    if not least.evidence:
        return SettingsError(f"{too_small}: {method} may take {least.passes:,} passes.")
    if len(job.request.wishes) > 1:
        method = "the cheapest method"
    return SettingsError(
        f"{too_small}: {method} and its evidence may take {least.passes:,} passes, "
        f"{least.evidence:,} of them for the evidence. "
        "Give more, or do without evidence (evidence=False, --no-evidence)."
    )
