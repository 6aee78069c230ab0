"""From texts to attributions. This is the way of every text through the house:

text ──► passage ──► asks ──┬─► one trace ─────────► methods that look inside ──┐
                            └─► one game a removal ► methods that play ─────────┤
                                      └────────────► evidence ◄── attributions ◄┘
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from whence.core.attribution import Attribution, Cost, Error
from whence.core.errors import InputError, Unsupported
from whence.core.passage import Passage
from whence.core.plan import Plan
from whence.core.provenance import Provenance
from whence.core.registry import settings_dict
from whence.core.request import Ask, Request
from whence.core.scores import Scores
from whence.core.target import Target
from whence.explaining.added import Added, by_text, joined_with
from whence.explaining.inside import Look, look_inside
from whence.explaining.job import Finding, Findings, Job, MethodCall, Outcome, Progress, job_of
from whence.explaining.outside import Games, look_from_outside
from whence.explaining.planning import Text, planned_jobs
from whence.explaining.room import room_for
from whence.explaining.windows import (
    asks_of_windows,
    joined,
    with_evidence_in_windows,
    with_windows,
)
from whence.games.game import check_has_head
from whence.metrics.evidence import untested
from whence.models.model import Model
from whence.trace.guard import check_repeats

NO_COST = Cost()
NOTHING = 1e-12  # a change smaller than this is none, and a gap is not divided by it


def run(
    model: Model,
    texts: Sequence[Any],
    request: Request,
    progress: Progress | None = None,
    added: Added = (),
    keep_games: bool = False,
    plan: Plan | None = None,
) -> list[list[Outcome]]:
    """What came of each text, for each target of the request.

    ``added`` are attributions that were made before; each is judged beside those of its text.
    With ``keep_games`` the games of each text are kept for whoever plays on. A ``plan`` is given
    where several runs share a budget.
    """
    check_has_head(model)
    job = job_of(model, request, progress)
    check_repeats(model)
    passages = [_encoded(job, text) for text in texts]
    windows_of = [model.windows(passage) for passage in passages]
    added_of = by_text(model, added, passages)
    # before anything is run: what does not fit the memory is refused here
    every_window = [window for windows in windows_of for window in windows]
    room = room_for(job, every_window, max(map(len, added_of), default=0))
    job = replace(job, room=room)

    jobs = planned_jobs(job, _texts(windows_of, added_of), plan)

    outcomes: dict[int, list[Outcome]] = {}
    for alike in _texts_by_plan(jobs):
        job = jobs[alike[0]]
        short = [i for i in alike if len(windows_of[i]) == 1]
        asks = []
        for i in short:
            for target in request.targets:
                asks.append(_ask(model, passages[i], target))
        added_to_asks = [added_of[i] for i in short for _ in request.targets]
        of_asks = iter(_explain(job, asks, added_to_asks, keep_games))
        for i in alike:
            if i in short:
                outcomes[i] = [next(of_asks) for _ in request.targets]
            else:
                windows = windows_of[i]
                outcomes[i] = _explain_in_windows(job, passages[i], windows, added_of[i])
    return [outcomes[i] for i in range(len(texts))]


def _ask(model: Model, passage: Passage, target: Target) -> Ask:
    """Of a written text, units are what stands before the output that the target is about."""
    target = model.located(target, passage)
    if passage.written is not None:
        passage = passage.before(target.steps.start)
    return Ask(passage, target)


def _texts(windows_of: Sequence[Sequence[Passage]], added_of: Sequence[Added]) -> list[Text]:
    """What is known of each text before the work."""
    pairs = zip(windows_of, added_of, strict=True)
    return [Text(windows, len(added)) for windows, added in pairs]


def _texts_by_plan(jobs: Sequence[Job]) -> list[list[int]]:
    """The texts with equal plans, which may share a trace."""
    groups: list[list[int]] = []
    for i, job in enumerate(jobs):
        for group in groups:
            if jobs[group[0]].plan == job.plan:
                group.append(i)
                break
        else:
            groups.append([i])
    return groups


def _encoded(job: Job, text: Any) -> Passage:
    request = job.request
    if isinstance(text, Passage):
        if request.units not in ("word", text.kind):
            raise InputError(
                f"this passage was cut into units of kind {text.kind!r}; "
                f"encode its text with units={request.units!r} instead."
            )
        has_this_reply = text.reply is not None and text.reply.text == request.reply
        if request.reply is not None and not has_this_reply:
            raise InputError(
                "this passage was encoded without the reply; "
                f"use model.encode(text, reply={request.reply!r:.40})."
            )
        passage = job.model.fitted(text, request.overflow)
    else:
        passage = job.model.encode(
            text,
            request.pair,
            units=request.units,
            reply=request.reply,
            overflow=request.overflow,
        )
    if passage.written is not None:
        return passage
    places = {target.at for target in request.targets}
    if len(places) > 1:
        raise InputError("the targets of one run are read at one place: give all the same at=.")
    return job.model.placed(passage, request.targets[0])


def _explain(
    job: Job, asks: Sequence[Ask], added_to_asks: Sequence[Added], keep_games: bool
) -> list[Outcome]:
    """Asks whose passages fit the model."""
    outcomes = []
    games: Games | None = None
    provenance = provenance_of(job)
    for ask, look, added in zip(asks, _looks(job, asks), added_to_asks, strict=True):
        if games is None or not games.serve(ask.passage):
            games = _games(job, _whole(ask, asks), keep_games)
        paid_before = NO_COST if games is None else games.cost
        findings = _findings(job, ask, look, games)
        attributions, failed = attributions_of(job, ask.passage, findings, provenance)
        cost_of_target = NO_COST
        if added:
            target, cost_of_target = _resolved(job, ask, attributions)
            attributions = joined_with(attributions, added, target)
        if job.request.evidence and games is not None:
            attributions = _judged(job, attributions, [games])
        paid = total_cost([cost_of_target, _paid(look, games, paid_before)])
        kept = games if keep_games else None
        outcomes.append(Outcome(attributions, failed, paid, job.plan, kept))
    return outcomes


def _resolved(job: Job, ask: Ask, attributions: dict[str, Attribution]) -> tuple[Target, Cost]:
    """The target of an ask, with its indices, and the pass that this took if no method ran."""
    for attribution in attributions.values():
        return attribution.target, NO_COST
    if ask.passage.written is not None:
        logits = job.model.output_logits(ask.passage)
    else:
        logits = job.model.logits([ask.passage])[0]
    return job.model.resolve(ask.target, logits, ask.passage), Cost(forwards=1)


def _explain_in_windows(
    job: Job, passage: Passage, windows: Sequence[Passage], added: Added
) -> list[Outcome]:
    """A text that is longer than the model's positions, for each target."""
    outcomes = []
    provenance = provenance_of(job)
    games_of_windows = [_games(job, window) for window in windows]
    for target in job.request.targets:
        paid_before = [NO_COST if games is None else games.cost for games in games_of_windows]
        asks, looks_for_target = asks_of_windows(job.model, windows, target)
        looks = _looks(job, asks)
        findings_of_windows = []
        for ask, look, games in zip(asks, looks, games_of_windows, strict=True):
            findings_of_windows.append(_findings(job, ask, look, games))
        findings = joined(findings_of_windows, looks_for_target)
        attributions, failed = attributions_of(job, passage, findings, provenance)
        attributions = with_windows(attributions, windows, findings_of_windows)
        if added:
            attributions = joined_with(attributions, added, asks[0].target)
        if job.request.evidence:
            played = [games for games in games_of_windows if games is not None]
            attributions = _judged(job, attributions, played)
        costs = [Cost(forwards=looks_for_target * len(windows))]
        for look, games, before in zip(looks, games_of_windows, paid_before, strict=True):
            costs.append(_paid(look, games, before))
        outcomes.append(Outcome(attributions, failed, total_cost(costs), job.plan))
    return outcomes


def _looks(job: Job, asks: Sequence[Ask]) -> Sequence[Look | None]:
    if job.looking and asks:
        return look_inside(job, asks)
    return [None] * len(asks)


def _whole(ask: Ask, asks: Sequence[Ask]) -> Passage:
    """The passage of an ask; of a written text with the units of all asks about it."""
    passage = ask.passage
    if passage.written is None:
        return passage
    same = [other.passage for other in asks if other.passage.input_key == passage.input_key]
    return max(same, key=lambda passage: len(passage.unit_spans))


def _games(job: Job, passage: Passage, are_wanted: bool = False) -> Games | None:
    """The games on a passage, where a method or the evidence plays; none has run yet."""
    if not job.playing and not job.request.evidence and not are_wanted:
        return None
    request, room = job.request, job.room
    return Games(job.model, passage, request.targets, request.seed, job.meter, room.game_tokens)


def _findings(job: Job, ask: Ask, look: Look | None, games: Games | None) -> Findings:
    """What all methods found for one ask, from inside and from outside."""
    findings: Findings = dict(job.unfit)
    if look is not None:
        findings |= look.findings
    if games is None or not job.playing:
        return findings
    # a target is resolved once, and the trace may have done so already
    target = ask.target if look is None else look.said.target
    return findings | look_from_outside(job, games, target)


def _judged(
    job: Job, attributions: dict[str, Attribution], games: Sequence[Games]
) -> dict[str, Attribution]:
    """With evidence; ``games`` are one for each window, and one for a text that fits the model."""
    if not attributions:
        return attributions
    plan = job.plan
    several = list(attributions.values())
    try:
        judged = with_evidence_in_windows(several, games, plan.rankings, steps=plan.steps)
    except Unsupported as problem:  # nothing can be removed: a text beside an image
        judged = [untested(attribution, str(problem)) for attribution in several]
    return dict(zip(attributions, judged, strict=True))


def _paid(look: Look | None, games: Games | None, before: Cost = NO_COST) -> Cost:
    """The passes of one ask: those of its trace, and what the games paid since ``before``."""
    inside = NO_COST if look is None else look.cost
    if games is None:
        return inside
    outside = games.cost
    return Cost(
        forwards=inside.forwards + outside.forwards - before.forwards,
        backwards=inside.backwards,
        saved=outside.saved - before.saved,
    )


def total_cost(costs: Sequence[Cost]) -> Cost:
    """The passes of several asks together."""
    return Cost(
        forwards=sum(cost.forwards for cost in costs),
        backwards=sum(cost.backwards for cost in costs),
        saved=sum(cost.saved for cost in costs),
    )


def provenance_of(job: Job) -> Provenance:
    """Made once for many texts, as a fingerprint looks at all weights."""
    return Provenance.of(job.model, attention="")


def attributions_of(
    job: Job, passage: Passage, findings: Findings, provenance: Provenance
) -> tuple[dict[str, Attribution], dict[str, Exception]]:
    """Attributions in the order in which methods were asked for, and the methods that failed."""
    calls = {call.name: call for call in (*job.looking, *job.playing)}
    attributions, failed = {}, {}
    for wish in job.request.wishes:
        finding = findings[wish.method]
        if isinstance(finding, Exception):
            failed[wish.method] = finding
        else:
            call = calls[wish.method]
            attributions[wish.method] = _attribution(job, passage, call, finding, provenance)
    return attributions, failed


def _attribution(
    job: Job, passage: Passage, call: MethodCall, finding: Finding, provenance: Provenance
) -> Attribution:
    said, scores = finding.said, finding.scores
    assert scores.units is not None
    output = 0 if passage.written is None else said.target.steps.start
    return Attribution(
        passage=passage,
        scores=scores.units,
        target=said.target,
        value=said.value,
        method=call.name,
        version=call.version,
        settings=settings_dict(finding.settings),
        seed=job.request.seed,
        signed=call.settings.signed,
        cost=finding.cost,
        provenance=replace(provenance, attention=finding.attention),
        error=error_of(scores),
        evidence=scores.evidence,
        detail=scores.detail,
        prediction=dict(job.model.prediction(said.logits, passage, output).probabilities),
        several_labels=job.model.several_labels,
        says_tokens=job.model.says_tokens,
    )


def error_of(scores: Scores) -> Error | None:
    """How far the scores may be off, as far as the method told."""
    if scores.standard_error is None and scores.change is None and not scores.note:
        return None
    gap = None
    if scores.change is not None and scores.units is not None:
        missing = abs(float(scores.units.sum()) - scores.change)
        gap = missing / max(abs(scores.change), NOTHING)
    return Error(scores.standard_error, gap, scores.note)
