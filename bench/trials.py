"""What metrics save by playing together: passes of an evaluation over those of each metric alone.

    python -m bench.trials                     # 100 sentences, all methods, all metrics that remove
    python -m bench.trials --texts 6 --words 8 --methods lime,occlusion

A metric alone would run each distinct mask that it asks for. Together, what one has asked the
others know, and so does what the methods asked to explain. Explaining is counted once on both
sides; a second ratio leaves it out. In a third one each metric is a command of its own, which has
to explain the texts, too, and knows what was asked for that.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

import whence
from whence.core.attribution import Cost
from whence.core.registry import Needs
from whence.core.target import Target
from whence.core.units import Units
from whence.explaining.data_set import request_of
from whence.explaining.evaluate import trial_rows
from whence.explaining.job import Outcome
from whence.explaining.rows import ExplainRows
from whence.explaining.trials import RANKINGS, TrialRows
from whence.games.protocol import AnyGame
from whence.metrics.control import Subject
from whence.metrics.several import Candidate, values_of_several
from whence.runs.data import Row

SENTENCES = Path(__file__).parent / "sentences.tsv"
LIMIT = 0.35
TOLD_EVERY = 5  # texts: all of them take minutes


@dataclass(frozen=True)
class Recording:
    """A game that notes every mask it is asked for; it answers as the game does."""

    game: AnyGame
    asked: set[bytes] = field(default_factory=set)

    @property
    def size(self) -> int:
        return self.game.size

    @property
    def units(self) -> Units:
        return self.game.units

    @property
    def target(self) -> Target:
        return self.game.target

    @property
    def removal(self) -> str:
        return self.game.removal

    @property
    def digest(self) -> bytes:
        return self.game.digest

    @property
    def full(self) -> float:
        self._note(np.ones((1, self.size), dtype=bool))
        return self.game.full

    @property
    def empty(self) -> float:
        self._note(np.zeros((1, self.size), dtype=bool))
        return self.game.empty

    @property
    def label(self) -> int | None:
        self._note(np.ones((1, self.size), dtype=bool))
        return self.game.label

    @property
    def cost(self) -> Cost:
        return self.game.cost

    def __call__(self, masks: Any, /) -> Float[np.ndarray, " mask"]:
        self._note(masks)
        return self.game(masks)

    def labels(self, masks: Any, /) -> Int[np.ndarray, " mask"]:
        self._note(masks)
        return self.game.labels(masks)

    def about(self, target: Any, /) -> Recording:
        return Recording(self.game.about(target), self.asked)

    def _note(self, masks: Any) -> None:
        rows = np.packbits(np.atleast_2d(np.asarray(masks, dtype=bool)), axis=1)
        self.asked.update(row.tobytes() for row in rows)  # as a game's memory has them


@dataclass
class Counted:
    """Passes over all texts."""

    explaining: int = 0
    together: int = 0
    alone: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)  # to whoever has explained the text
    texts: int = 0

    @property
    def of_metrics(self) -> float:
        """Passes of the metrics together over those of each alone."""
        return self.together / self.alone.total()

    @property
    def with_explaining(self) -> float:
        """The same, where explaining is paid once on both sides."""
        return (self.explaining + self.together) / (self.explaining + self.alone.total())

    @property
    def by_commands(self) -> float:
        """The passes of one command over those of a command for each metric."""
        each = [self.explaining + passes for passes in self.unknown.values()]
        return (self.explaining + self.together) / sum(each)


def main() -> None:
    """Print passes alone for each metric, and the ratios."""
    parser = argparse.ArgumentParser(description="What metrics save by playing together.")
    parser.add_argument("--texts", type=int, default=100)
    parser.add_argument("--words", type=int, default=0, help="only texts of at most so many words")
    parser.add_argument("--methods", default="", help="separated by commas; all without")
    parser.add_argument("--rankings", type=int, default=RANKINGS)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    methods = [name for name in asked.methods.split(",") if name] or None
    counted = measured(texts_of(asked.texts, asked.words), methods, asked.rankings)
    _print(counted)


def texts_of(count: int, words: int = 0) -> list[str]:
    """The first sentences of the bench, or the first that are short."""
    lines = SENTENCES.read_text(encoding="utf-8").splitlines()
    _heading, *rows = [line for line in lines if not line.startswith("#")]
    texts = [row.partition("\t")[2] for row in rows]
    return [text for text in texts if not words or len(text.split()) <= words][:count]


def measured(texts: Sequence[str], methods: Sequence[str] | None, rankings: int) -> Counted:
    """Explain each text by each method, and let every metric that removes words play on."""
    model = whence.load("sentiment")
    request = request_of(model, methods, evidence=False)
    work = trial_rows(ExplainRows(model, request), None, None, None, rankings)
    counted = Counted()
    for number, text in enumerate(texts):
        (explained,) = work.explain.explained([Row(number, text)], keep_games=True)
        if isinstance(explained.outcome, Exception):
            raise explained.outcome
        _count(counted, work, explained.outcome)
        if counted.texts % TOLD_EVERY == 0:
            ratios = (counted.with_explaining, counted.of_metrics, counted.by_commands)
            so_far = ", ".join(f"{ratio:.3f}" for ratio in ratios)
            print(f"{counted.texts} texts: {so_far}", file=sys.stderr, flush=True)
    return counted


def _count(counted: Counted, work: TrialRows, outcome: Outcome) -> None:
    games = outcome.games
    assert games is not None
    target = next(iter(outcome.attributions.values())).target
    candidates = [Candidate(a.scores, a.signed) for a in outcome.attributions.values()]
    before = games.cost.forwards
    for removal in work.removals:
        game = games.game(removal, replace(target, read=work.read))
        known = set(game.memory.row_of_mask)
        for call in work.metrics:
            if not call.needs & Needs.GAME or call.needs & (Needs.AGAIN | Needs.GOLD):
                continue
            recording = Recording(game)
            subject = Subject(recording, None, work.explain.request.seed)
            values_of_several(call.settings, call.name, subject, candidates, work.rankings)
            counted.alone[call.name] += len(recording.asked)
            counted.unknown[call.name] += len(recording.asked - known)
    counted.together += games.cost.forwards - before
    counted.explaining += outcome.cost.forwards + outcome.cost.backwards
    counted.texts += 1


def _print(counted: Counted) -> None:
    for name, passes in counted.alone.most_common():
        print(f"{name:32}{passes / counted.texts:10,.1f} passes a text, alone")
    print(f"{'all of them alone':32}{counted.alone.total() / counted.texts:10,.1f}")
    print(f"{'all of them together':32}{counted.together / counted.texts:10,.1f}")
    print(f"{'explaining':32}{counted.explaining / counted.texts:10,.1f}")
    print(f"together over alone: {counted.with_explaining:.3f} (asked: at most {LIMIT})")
    print(f"without explaining: {counted.of_metrics:.3f}")
    print(f"one command over a command for each metric: {counted.by_commands:.3f}")


if __name__ == "__main__":
    main()
