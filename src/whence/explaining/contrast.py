"""Why this rather than that: words, or whole texts, each of so many tokens as it has.

The number is log P(this | before) − log P(that | before), where ``before`` is the prompt and what
was written up to there. Its units are scored. Tokens with which both begin cancel out, so that it
is the difference from where they part.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from whence.core.attribution import Cost
from whence.core.comparison import Comparison
from whence.core.errors import TargetError, Unsupported
from whence.core.passage import SPECIAL, Passage, first_tokens
from whence.core.plan import Plan
from whence.core.registry import Needs
from whence.core.request import Ask, Request
from whence.core.target import Target
from whence.explaining.inside import Look, look_on
from whence.explaining.job import Findings, Job, Progress, job_of
from whence.explaining.outside import Games, look_from_outside, with_evidence
from whence.explaining.planning import Text, planned_jobs
from whence.explaining.room import room_for
from whence.explaining.run import attributions_of, provenance_of, total_cost
from whence.games.contrast import RivalGame
from whence.games.game import game_on, remover_of
from whence.games.removals import chosen_removal
from whence.models.model import Model
from whence.models.writing import only_prompt, written_after
from whence.trace.contrast import Contrast, contrast_of
from whence.trace.guard import check_repeats
from whence.trace.trace import trace

# what a trace over two texts has: slopes along embeddings, and values at others
OF_CONTRASTS = Needs.EMBEDDINGS | Needs.EMBEDDING_GRADIENTS | Needs.RERUNS


@dataclass(frozen=True, eq=False)
class Sides:
    """What was written, and what could have stood in the place of some of its tokens.

    Both passages have units only of what stands before. ``before`` ends there; ``ends`` are the
    outputs at which what is compared ends, in the one text and in the other.
    """

    before: Passage
    first: Passage
    second: Passage
    start: int
    ends: tuple[int, int]

    @property
    def passages(self) -> list[Passage]:
        """Both texts."""
        return [self.first, self.second]


def sides_of(
    model: Model,
    prompt: Passage,
    whole: Passage,
    steps: range,
    other: Sequence[int],
    only_of_prompt: bool = False,
) -> Sides:
    """The written tokens of ``steps``, and other ones in their place; refused where they are alike.

    ``only_of_prompt`` leaves what was written before them without units.

    >>> import whence
    >>> model = whence.load("writer")
    >>> prompt = model.encode("the cat")
    >>> whole = written_after(model, prompt, model.encode(" sat down").ids)
    >>> there = model.encode(" there").ids.tolist()
    >>> sides = sides_of(model, prompt, whole, range(1, 2), there)
    >>> sides.second.pair
    ' sat there'
    """
    place, first_place = whole.output_place(steps.start), whole.output_place(0)
    written = whole.ids[first_place:].tolist()
    if written[steps.start : steps.stop] == list(other):
        raise TargetError(
            "a contrast needs two, and both are the same tokens: "
            f"“{whole.outputs_text(steps).strip()}” is what stands there."
        )
    rival = written_after(model, prompt, [*written[: steps.start], *other])
    is_at_prompt = steps.start == 0
    first = only_prompt(whole) if is_at_prompt or only_of_prompt else whole.before(steps.start)
    unit_of = np.full(len(rival), SPECIAL)
    unit_of[:place] = first.unit_of[:place]
    second = replace(rival, unit_of=unit_of, unit_spans=first.unit_spans, kind=first.kind)
    before = replace(prompt, unit_of=first.unit_of[: len(prompt)], unit_spans=first.unit_spans)
    if not is_at_prompt:
        before = first_tokens(first, place)
    return Sides(before, first, second, steps.start, (steps.stop, steps.start + len(other)))


@dataclass(frozen=True)
class Rivals:
    """Two texts, what each is asked, and the difference as one target."""

    before: Passage
    first: Ask
    second: Ask
    target: Target


@dataclass(eq=False)
class RivalGames(Games):
    """Games about the difference: on both texts, under the same masks."""

    rival: Ask | None = None
    pairs: dict[str, RivalGame] = field(default_factory=dict)

    def game(self, removal: str, target: Target) -> RivalGame:
        """The game about the difference, under a removal."""
        assert self.rival is not None
        name = chosen_removal(self.model, removal)
        if name not in self.pairs:
            sides = []
            for ask in (Ask(self.passage, self.targets[0]), self.rival):
                remover = remover_of(self.model, ask.passage, name, self.seed)
                game = game_on(remover, (ask.target,), self._tick, self.tokens_at_once)
                sides.append(game.about(ask.target))
            self.pairs[name] = RivalGame(sides[0], sides[1], target)
        return self.pairs[name]

    @property
    def cost(self) -> Cost:
        """Passes that all games paid for, and those that were remembered instead."""
        return total_cost([pair.cost for pair in self.pairs.values()])


def compare_continuations(
    model: Model,
    sides: Sides,
    request: Request,
    progress: Progress | None = None,
    plan: Plan | None = None,
) -> Comparison:
    """The methods of a request on the difference between two texts, with evidence.

    Methods of attention are refused by name, as attention knows no target; the others go on.
    """
    begun = time.perf_counter()
    rivals = _rivals(model, sides)
    job = job_of(model, replace(request, targets=(rivals.first.target,)), progress)
    check_repeats(model)
    job = _without_attention(job)
    passages = [rivals.first.passage, rivals.second.passage]
    job = replace(job, room=room_for(job, passages))
    # two texts are run for each mask, as two windows would be
    (job,) = planned_jobs(job, [Text(passages)], plan)
    job = _without_attention(job)

    findings: Findings = dict(job.unfit)
    look = _look(job, rivals)
    if look is not None:
        findings |= look.findings
    games = _games(job, rivals)
    findings |= look_from_outside(job, games, rivals.target)
    attributions, failed = attributions_of(job, passages[0], findings, provenance_of(job))
    if not attributions:
        raise next(iter(failed.values()))
    if request.evidence:
        several = list(attributions.values())
        judged = with_evidence(several, games, job.plan.rankings, steps=job.plan.steps)
        attributions = dict(zip(attributions, judged, strict=True))

    costs = [Cost(forwards=2), games.cost]  # the first are the two passes that both texts took
    if look is not None:
        costs.append(look.cost)
    skipped = {name: str(problem) for name, problem in failed.items()}
    return Comparison(
        attributions,
        replace(total_cost(costs), seconds=time.perf_counter() - begun),
        skipped | dict(job.plan.left_out),
        None if job.plan.is_full else job.plan,
    )


def _rivals(model: Model, sides: Sides) -> Rivals:
    asks = []
    for passage, end in zip(sides.passages, sides.ends, strict=True):
        wanted = Target(at=sides.start, until=end, read="log-probability")
        target = model.located(wanted, passage)
        resolved = model.resolve(target, model.output_logits(passage), passage)
        asks.append(Ask(passage, resolved))
    one, other = asks
    target = replace(
        one.target,
        against=other.target.label,
        against_index=other.target.index,
        against_ids=_ids(other),
    )
    return Rivals(sides.before, one, other, target)


def _ids(ask: Ask) -> tuple[int, ...]:
    """The tokens that an ask is about."""
    steps, passage = ask.target.steps, ask.passage
    first, last = passage.output_place(steps.start), passage.output_place(steps.stop)
    return tuple(passage.ids[first:last].tolist())


def _without_attention(job: Job) -> Job:
    """The job without methods that see more than slopes and values, and why these are left out."""
    looking, unfit = [], dict(job.unfit)
    needs = Needs.NOTHING
    for call in job.looking:
        if call.needs & ~OF_CONTRASTS:
            unfit[call.name] = Unsupported(
                f"{call.name} reads attention, which is the same whichever text is asked about, or "
                "runs one text by rules of its own: it cannot say why one text rather than "
                "another. Use a method of gradients, or one that removes words."
            )
        else:
            looking.append(call)
            needs |= call.needs
    return replace(job, looking=tuple(looking), unfit=unfit, needs=needs)


def _look(job: Job, rivals: Rivals) -> Look | None:
    if not job.looking:
        return None

    def traced(tick: Callable[[], None]) -> Contrast:
        sides = []
        for ask in (rivals.first, rivals.second):
            side = trace(job.model, [ask], needs=job.needs, tick=tick)
            sides.append(replace(side, rerun_tokens=job.room.rerun_tokens))
        return contrast_of(rivals.before, rivals.target, sides[0], sides[1])

    (look,) = look_on(job, 1, traced)
    return look


def _games(job: Job, rivals: Rivals) -> RivalGames:
    return RivalGames(
        job.model,
        rivals.first.passage,
        (rivals.first.target,),
        job.request.seed,
        job.meter,
        job.room.game_tokens,
        rival=rivals.second,
    )
