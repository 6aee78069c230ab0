"""What metrics save by playing together: passes of an evaluation over those of each metric alone.

    python -m bench.trials                     # 100 sentences, all methods, all metrics that remove
    python -m bench.trials --texts 6 --words 8 --methods lime,occlusion
    python -m bench.trials --keep counts.jsonl # goes on where it was ended

A metric alone would run each distinct mask that it asks for. Together, what one has asked the
others know, and so does what the methods asked to explain. Explaining is counted once on both
sides; a second ratio leaves it out. In a third one each metric is a command of its own, which has
to explain the texts, too, and knows what was asked for that.
"""

from __future__ import annotations

import argparse
import json
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
    """Passes over some texts."""

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

    def add(self, other: Counted) -> None:
        """Count the texts of another one, too."""
        self.explaining += other.explaining
        self.together += other.together
        self.alone.update(other.alone)
        self.unknown.update(other.unknown)
        self.texts += other.texts

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Counted:
        """What ``vars`` gave, out of JSON."""
        return cls(
            explaining=stored["explaining"],
            together=stored["together"],
            alone=Counter(stored["alone"]),
            unknown=Counter(stored["unknown"]),
            texts=stored["texts"],
        )


@dataclass(frozen=True)
class Kept:
    """What was counted on each text, in a file that grows by a line for each of them."""

    path: Path | None
    asked_for: dict[str, Any]  # what the counts depend on, beside the text

    def read(self) -> dict[str, Counted]:
        """The counts of each text that are there for the same methods, metrics and rankings."""
        if self.path is None or not self.path.exists():
            return {}
        counts = {}
        for line in self.path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if record["asked_for"] == self.asked_for:
                counts[record["text"]] = Counted.from_dict(record["counted"])
        return counts

    def write(self, text: str, counted: Counted) -> None:
        """Add a line for one text."""
        if self.path is None:
            return
        record = {"text": text, "asked_for": self.asked_for, "counted": vars(counted)}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def main() -> None:
    """Print passes alone for each metric, and the ratios."""
    parser = argparse.ArgumentParser(description="What metrics save by playing together.")
    parser.add_argument("--texts", type=int, default=100)
    parser.add_argument("--words", type=int, default=0, help="only texts of at most so many words")
    parser.add_argument("--methods", default="", help="separated by commas; all without")
    parser.add_argument("--rankings", type=int, default=RANKINGS)
    parser.add_argument("--keep", type=Path, help="a file of counts; texts in it are done")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    methods = [name for name in asked.methods.split(",") if name] or None
    texts = texts_of(asked.texts, asked.words)
    counted = measured(texts, methods, asked.rankings, asked.keep)
    _print(counted)


def texts_of(count: int, words: int = 0) -> list[str]:
    """The first sentences of the bench, or the first that are short."""
    lines = SENTENCES.read_text(encoding="utf-8").splitlines()
    _heading, *rows = [line for line in lines if not line.startswith("#")]
    texts = [row.partition("\t")[2] for row in rows]
    return [text for text in texts if not words or len(text.split()) <= words][:count]


def measured(
    texts: Sequence[str], methods: Sequence[str] | None, rankings: int, keep: Path | None = None
) -> Counted:
    """Explain each text by each method, and let every metric that removes words play on."""
    model = whence.load("sentiment")
    request = request_of(model, methods, evidence=False)
    work = trial_rows(ExplainRows(model, request), None, None, None, rankings)
    kept = Kept(keep, _asked_for(work))
    counts = kept.read()
    total = Counted()
    for number, text in enumerate(texts):
        if text not in counts:
            (explained,) = work.explain.explained([Row(number, text)], keep_games=True)
            if isinstance(explained.outcome, Exception):
                raise explained.outcome
            counts[text] = _counted(work, explained.outcome)
            kept.write(text, counts[text])
        total.add(counts[text])
        if total.texts % TOLD_EVERY == 0:
            ratios = (total.with_explaining, total.of_metrics, total.by_commands)
            so_far = ", ".join(f"{ratio:.3f}" for ratio in ratios)
            print(f"{total.texts} texts: {so_far}", file=sys.stderr, flush=True)
    return total


def _asked_for(work: TrialRows) -> dict[str, Any]:
    methods = [f"{wish.method} {dict(wish.settings)}" for wish in work.explain.request.wishes]
    metrics = [f"{call.name} {call.version}" for call in work.metrics]
    return {"methods": methods, "metrics": metrics, "rankings": work.rankings}


def _counted(work: TrialRows, outcome: Outcome) -> Counted:
    counted = Counted(texts=1)
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
    return counted


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
