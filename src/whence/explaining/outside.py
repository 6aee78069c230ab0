"""Methods that look from outside, and the evidence: both play games on one passage.

There is one game for each removal; every method and all evidence share its memory.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from whence.core.attribution import Attribution, Cost
from whence.core.errors import ModelError, Unsupported
from whence.core.evidence import STILL
from whence.core.passage import Passage
from whence.core.registry import as_unit_scores
from whence.core.scores import Scores
from whence.core.target import Target
from whence.explaining.inside import memory_above, memory_mark, own_attention
from whence.explaining.job import Finding, Findings, Job, MethodCall, Said
from whence.explaining.meter import Meter, Progress, as_meter
from whence.games.contrast import RivalGame
from whence.games.game import TOKENS_AT_ONCE, Game, game_on, remover_of
from whence.games.removals import chosen_removal, second_removal
from whence.metrics.evidence import STEPS, Control, control, judged
from whence.models.model import Model
from whence.models.passing import in_one_line

# Said of scores of texts whose gaps a model has filled.
ONE_FILL = (
    "a model filled in other words for what was removed; another seed would fill in others and "
    "change the scores, which no standard error counts"
)


@dataclass(eq=False)
class Games:
    """The games on one passage by removal, made when first asked for.

    ``targets`` are all that will be asked about; ``say`` is told which step is running, and
    ``label`` is its name.
    """

    model: Model
    passage: Passage
    targets: tuple[Target, ...]
    seed: int
    say: Progress | Meter
    tokens_at_once: int = TOKENS_AT_ONCE  # of one batch; a budget of memory may ask for fewer
    label: str = ""
    told: int = 0  # passes that were told so far
    by_removal: dict[str, Game] = field(default_factory=dict)
    controls: dict[tuple[str, int, int, Target], Control] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.meter = as_meter(self.say)

    def begin(self, step: str) -> None:
        """A method, or the evidence, begins to play."""
        self.label = step
        self.meter.begin(step)

    def serve(self, passage: Passage) -> bool:
        """Whether these games are played on the passage, or on more units of the same text."""
        if passage is self.passage:
            return True
        return passage.written is not None and passage.input_key == self.passage.input_key

    def game(self, removal: str, target: Target) -> Game | RivalGame:
        """The game about a target, under a removal."""
        name = chosen_removal(self.model, removal)
        if name not in self.by_removal:
            remover = remover_of(self.model, self.passage, name, self.seed)
            self.by_removal[name] = game_on(remover, self.targets, self._tick, self.tokens_at_once)
        return self.by_removal[name].about(target)

    def _tick(self, done: int, of: int) -> None:
        paid = self.cost.forwards
        self.meter.paid(paid - self.told, f"{self.label}: {done:,} of {of:,} passes")
        self.told = paid

    @property
    def cost(self) -> Cost:
        """Passes that all games paid for, and those that were remembered instead."""
        costs = [game.cost for game in self.by_removal.values()]
        return Cost(
            forwards=sum(cost.forwards for cost in costs),
            saved=sum(cost.saved for cost in costs),
        )

    def control(self, removal: str, rankings: int, target: Target, steps: int = STEPS) -> Control:
        """Random rankings and their curves, drawn once for all methods."""
        key = (removal, rankings, steps, target)
        if key not in self.controls:
            self.controls[key] = control(self.game(removal, target), rankings, self.seed, steps)
        return self.controls[key]


def look_from_outside(job: Job, games: Games, target: Target) -> Findings:
    """What every method that plays says of one ask."""
    findings: Findings = {}
    for call in job.playing:
        try:
            with in_one_line(job.model.hf, call.name, call.settings):
                findings[call.name] = _play(call, games, target)
        except (Unsupported, ModelError) as problem:
            findings[call.name] = problem
    return findings


def _play(call: MethodCall, games: Games, target: Target) -> Finding:
    games.begin(call.name)
    begun = time.perf_counter()
    mark = memory_mark(games.model)
    paid_before = games.cost
    game = games.game(call.settings.removal, target)
    scores = as_unit_scores(call.settings(game), call.name, game.units.names)
    if game.is_still:
        scores = _of_rounding(scores)
    if game.removal.startswith("infill"):
        scores = replace(scores, note=f"{scores.note}; {ONE_FILL}".removeprefix("; "))
    if game.remover.note:
        note = f"{scores.note}; {game.remover.note}".removeprefix("; ")
        scores = replace(scores, note=note)
    cost = Cost(
        forwards=games.cost.forwards - paid_before.forwards,
        seconds=time.perf_counter() - begun,
        peak_bytes=memory_above(games.model, mark),
        saved=games.cost.saved - paid_before.saved,
    )
    settings = replace(call.settings, removal=game.removal)
    said = Said(game.target, game.full, game.logits_read)
    return Finding(said, scores, cost, settings, own_attention(games.model))


def _of_rounding(scores: Scores) -> Scores:
    """Where the output stayed the same whatever was taken out, scores are rounding: they are 0."""
    if scores.units is None or not scores.units.any():
        return scores
    errors = scores.standard_error
    return replace(
        scores,
        units=np.zeros_like(scores.units),
        standard_error=None if errors is None else np.zeros_like(errors),
        note=f"{scores.note}; {STILL}".removeprefix("; "),
    )


def with_evidence(
    attributions: Sequence[Attribution],
    games: Games,
    rankings: int,
    removals: Sequence[str] | None = None,
    steps: int = STEPS,
) -> list[Attribution]:
    """Attributions of one passage with their evidence, all beside the same random rankings."""
    games.begin("evidence")
    if removals is None:
        removals = usual_removals(games.model)
    judged_ones = []
    for attribution in attributions:
        target = attribution.target
        controls = [games.control(removal, rankings, target, steps) for removal in removals]
        evidence = judged(attribution, controls, games.seed)
        judged_ones.append(replace(attribution, evidence=evidence))
    return judged_ones


def usual_removals(model: Model) -> list[str]:
    """Two removals, as what holds under one alone may be about that removal."""
    first = chosen_removal(model, "auto")
    second = second_removal(model, first)
    return [first] if second is None else [first, second]
