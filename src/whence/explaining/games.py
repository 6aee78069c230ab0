"""The games on one passage, one for each removal: every black-box method, and the evidence of all methods, share their memory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from whence.core.attribution import Attribution, Cost
from whence.core.passage import Passage
from whence.core.registry import as_unit_scores
from whence.core.scores import Scores
from whence.core.target import Target
from whence.games.game import Game, Tick, game_of
from whence.games.removals import chosen_removal, second_removal
from whence.metrics.evidence import Control, control, judged
from whence.models.model import Model

ONE_FILL = "what was removed is filled once for each mask: another seed fills, and scores, otherwise, and no standard error counts that"


@dataclass(eq=False)
class Games:
    """Games by removal, made when first asked for; ``label`` is what a progress bar shows beside the passes."""

    model: Model
    passage: Passage
    target: Target
    seed: int
    say: Any
    label: str = ""
    played: dict[str, Game] = field(default_factory=dict)
    controls: dict[tuple[str, int], Control] = field(default_factory=dict)

    def __getitem__(self, removal: str) -> Game:
        name = chosen_removal(self.model, removal)
        if name not in self.played:
            self.played[name] = game_of(
                self.model, self.passage, self.target, name, self.seed, tick=self._tick
            )
            self.target = self.played[name].target
        return self.played[name]

    @property
    def _tick(self) -> Tick:
        return lambda done, of: self.say(f"{self.label}: {done:,} of {of:,} passes")

    @property
    def forwards(self) -> int:
        """Passes that all of them paid for."""
        return sum(g.cost.forwards for g in self.played.values())

    @property
    def saved(self) -> int:
        """Passes that were remembered instead."""
        return sum(g.cost.saved for g in self.played.values())

    def play(self, name: str, settings: Any) -> tuple[Scores, Game, Cost, Any]:
        """A black-box method on its game; also what it cost, and its settings with the removal by name."""
        self.label = name
        self.say(name)
        begun, paid, saved = time.perf_counter(), self.forwards, self.saved
        game = self[settings.removal]
        scores = as_unit_scores(settings(game), name, game.units.names)
        if game.removal.startswith("infill"):
            scores = replace(scores, note=f"{scores.note}; {ONE_FILL}".removeprefix("; "))
        cost = Cost(
            forwards=self.forwards - paid,
            seconds=time.perf_counter() - begun,
            saved=self.saved - saved,
        )
        return scores, game, cost, replace(settings, removal=game.removal)

    def judge(
        self, attributions: Sequence[Attribution], removals: Sequence[str] | None, rankings: int
    ) -> list[Attribution]:
        """The attributions with their evidence, all beside the same random rankings."""
        self.label = "evidence"
        self.say("evidence")
        controls = self._controls(removals, rankings)
        return [replace(a, evidence=judged(a, controls, self.seed)) for a in attributions]

    def _controls(self, removals: Sequence[str] | None, rankings: int) -> list[Control]:
        if removals is None:
            first = chosen_removal(self.model, "auto")
            removals = [r for r in (first, second_removal(self.model, first)) if r]
        for r in removals:
            if (r, rankings) not in self.controls:
                self.controls[r, rankings] = control(self[r], rankings, self.seed)
        return [self.controls[r, rankings] for r in removals]
