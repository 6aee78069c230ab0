"""A Job: a request, ready to be run on a model. And what comes of it, ask by ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from whence.core.attribution import Attribution, Cost
from whence.core.errors import SettingsError, Unsupported
from whence.core.evidence import USUAL_RANKINGS, USUAL_STEPS
from whence.core.plan import Plan
from whence.core.registry import GRADIENTS, Needs, find_method, settings_of
from whence.core.request import Request, Wish
from whence.core.scores import Scores
from whence.core.target import Target
from whence.explaining.meter import Meter as Meter
from whence.explaining.meter import Progress as Progress
from whence.explaining.meter import as_meter
from whence.games.game import TOKENS_AT_ONCE
from whence.models.model import Model
from whence.trace.guard import look_over, refusal
from whence.trace.trace import RERUN_TOKENS

if TYPE_CHECKING:
    from whence.explaining.outside import Games

TRACE_TOKENS = 4096  # of one traced batch: maps and gradients are held for all of it
OUTPUTS_AT_ONCE = 256  # of one written text: they share its forward pass


@dataclass(frozen=True)
class MethodCall:
    """One method with its settings, ready to be called on a trace or on a game."""

    name: str
    version: int
    needs: Needs
    settings: Any


@dataclass(frozen=True)
class Room:
    """How many tokens go through the model at once: traced, run again by a method, and in games.

    A budget of memory may ask for fewer than usual. ``outputs`` are those of one written text that
    share a trace.
    """

    trace_tokens: int = TRACE_TOKENS
    rerun_tokens: int = RERUN_TOKENS
    game_tokens: int = TOKENS_AT_ONCE
    outputs: int = OUTPUTS_AT_ONCE


@dataclass(frozen=True)
class Job:
    """What a run needs to know at every step.

    ``looking`` are the methods that look inside the model, on one trace that gives what they need
    together (``needs``); ``playing`` are those that look from outside, on games. ``plan`` says how
    large the control of the evidence is; ``meter`` counts passes; ``room`` is what fits the memory.
    """

    model: Model
    request: Request
    looking: tuple[MethodCall, ...]
    playing: tuple[MethodCall, ...]
    needs: Needs
    meter: Meter
    plan: Plan = field(default_factory=Plan)
    # methods that cannot work on this model, and why
    unfit: dict[str, Exception] = field(default_factory=dict)
    room: Room = field(default_factory=Room)


def job_of(model: Model, request: Request, progress: Progress | None = None) -> Job:
    """The job of a request; a mistyped method or setting is an error here."""
    request = replace(request, wishes=_by_proper_name(request.wishes))
    calls = []
    for wish in request.wishes:
        info = find_method(wish.method)
        settings = settings_of(info, wish.settings, request.seed)
        calls.append(MethodCall(info.name, info.version, info.needs, settings))
    inside = [call for call in calls if not call.needs & Needs.GAME]
    look_over(model, _needs_of(inside), request.attention_via)

    looking, playing = [], []
    unfit: dict[str, Exception] = {}
    for call in calls:
        plays = bool(call.needs & Needs.GAME)
        problem = _of_its_own(call, model) or _of_the_targets(call, request)
        if problem is None and not plays:
            problem = refusal(model, call.needs, request.attention_via)
        if problem is not None:
            unfit[call.name] = problem
        else:
            (playing if plays else looking).append(call)
    return Job(
        model=model,
        request=request,
        looking=tuple(looking),
        playing=tuple(playing),
        needs=_needs_of(looking),
        meter=as_meter(progress),
        # what the caller said of the control; a budget may make it smaller
        plan=Plan(request.rankings or USUAL_RANKINGS, request.steps or USUAL_STEPS),
        unfit=unfit,
    )


def _of_its_own(call: MethodCall, model: Model) -> Exception | None:
    """What the method itself has against the model, where it is made for a few kinds only."""
    if hasattr(call.settings, "check_model"):
        try:
            call.settings.check_model(model)
        except Unsupported as problem:
            return problem
    return None


def _of_the_targets(call: MethodCall, request: Request) -> Exception | None:
    """What speaks against the targets: a divergence is flat where it is measured from."""
    is_flat = any(target.is_from_whole_input for target in request.targets)
    if not is_flat or not call.needs & (GRADIENTS | Needs.ATTENTION_GRAPH):
        return None
    return Unsupported(
        f"{call.name} looks at slopes, and the divergence from the whole input is least, and so "
        "flat, where nothing is removed: every slope is zero. Use a method that removes units, "
        "integrated-gradients, or another reading."
    )


def _needs_of(calls: Sequence[MethodCall]) -> Needs:
    """What these methods need together."""
    needs = Needs.NOTHING
    for call in calls:
        needs |= call.needs
    return needs


def planned(job: Job, plan: Plan) -> Job:
    """The job as a plan has it: fewer methods, or other settings, or a smaller control."""
    if plan.settings or plan.left_out:
        request = replace(job.request, wishes=plan.wishes(job.request.wishes))
        smaller = job_of(job.model, request)
        return replace(smaller, meter=job.meter, plan=plan, room=job.room)
    return replace(job, plan=plan)


def _by_proper_name(wishes: Sequence[Wish]) -> tuple[Wish, ...]:
    """The wishes under the names that results carry; one that is named twice counts once."""
    by_name: dict[str, Wish] = {}
    for wish in wishes:
        name = find_method(wish.method).name
        known = by_name.setdefault(name, Wish(name, wish.settings))
        if known.settings != wish.settings:
            raise SettingsError(
                f"the method {name!r} is asked for twice, with different settings: "
                f"{dict(known.settings)} and {dict(wish.settings)}. Explain by one of them and "
                f"add the result: compare(model, text, [{name!r}, whence.explain(…)])."
            )
    return tuple(by_name.values())


@dataclass(frozen=True, eq=False)
class Said:
    """What the model said of one ask, unperturbed."""

    target: Target  # resolved
    value: float
    logits: Float[np.ndarray, " label"]


@dataclass(frozen=True, eq=False)
class Finding:
    """What one method found for one ask: scores over units, and how they came about."""

    said: Said
    scores: Scores
    cost: Cost
    settings: Any  # as run: the removal by its full name
    attention: str  # by which path the attention was computed


Findings = dict[str, Finding | Exception]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of one ask: attributions, the methods that do not fit, and the passes paid.

    ``plan`` is what was made smaller to keep the cost within bounds. ``games`` are kept where
    somebody plays on: they remember what was paid for.
    """

    attributions: dict[str, Attribution]
    failed: dict[str, Exception]
    cost: Cost
    plan: Plan = field(default_factory=Plan)
    games: Games | None = None
