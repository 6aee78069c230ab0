"""Does whence find the pronoun that needs context, and the noun that it stands for?

    python -m bench.context_planted --csv table.csv           # the held-out suite of translator
    python -m bench.context_planted --unchosen 200            # held-out texts as they come
    python -m bench.context_planted --training 20             # texts as it was trained on

The bundled translator was made so that one word of a translation, the pronoun, depends on one noun
of the sentence before; its suite has 200 held-out texts of this kind and 200 that need no context.
Step 1 is right where the pronoun is selected, and raises a false alarm where anything is selected
in a text that needs no context. (The texts of the suite were chosen: those that need context passed
a trial in which each word was hidden and left out, which is what occlusion does. So there is
``--unchosen``.) Step 2 is right where the noun is the strongest unit of the context
for the pronoun. What came out is in docs/context.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

import whence
from whence.core.context_use import MEASURES, OF_TOKENS, Measure, selected, usual_floor

TRAINING = Path(__file__).resolve().parent.parent / "training"
METHODS = (
    "occlusion",
    "shapley",
    "lime",
    "integrated-gradients",
    "gradient-x-input",
    "gradient-l2",
    "attn-lrp",
    "generic-attention",
    "attention-mean",
    "random",
)
SEED_OF_DRAWN = 1


@dataclass(frozen=True)
class Suite:
    """Texts that need context, and texts that do not."""

    separator: str
    needed: Sequence[dict[str, Any]]
    idle: Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Count:
    """How often: so many of so many."""

    what: str
    right: int
    of: int

    @property
    def share(self) -> float:
        """The share."""
        return self.right / self.of


def held_out(model: whence.Model) -> Suite:
    """The suite that lies beside the model."""
    folder = Path(str(model.hf.config._name_or_path))
    stored = json.loads((folder / "suite.json").read_text(encoding="utf-8"))
    return Suite(stored["separator"], stored["context_needed"], stored["context_idle"])


def drawn(count: int, like_training: bool) -> Suite:
    """Texts by the grammar of the training, none of them chosen for what the model does with it.

    They hold no pair that was held out, as in training; or else each holds one.
    """
    sys.path.insert(0, str(TRAINING))
    import translator as grammar  # pyright: ignore[reportMissingImports]

    rng = random.Random(SEED_OF_DRAWN)
    accept = grammar.Text.is_for_training if like_training else grammar.Text.is_for_trial
    needed = [grammar.entry_of(text) for text in grammar.held_out("context", count, rng, accept)]
    idle = []
    for kind in ("plain", "own", "person"):
        texts = grammar.held_out(kind, -(-count // 3), rng, accept)
        idle += [grammar.entry_of(text) for text in texts]
    return Suite(grammar.SEPARATOR, needed, idle[:count])


def used(
    model: whence.Model, suite: Suite, text: dict[str, Any], methods: Sequence[str]
) -> whence.ContextUse:
    """What of the model's translation came from the context."""
    return whence.context(
        model,
        text["sentence"],
        text["context"],
        methods,
        separator=f" {suite.separator} ",
        evidence=False,
    )


def scores_by(use: whence.ContextUse, measure: Measure) -> Float[np.ndarray, " output"]:
    """The scores of another measure, from both runs as they are stored."""
    if measure == use.selection.measure:
        return use.scores
    without = np.log([output.without for output in use.outputs])
    with_context = np.log([output.probability for output in use.outputs])
    return OF_TOKENS[measure](without, with_context)


def first_step(
    suite: Suite,
    needed: Sequence[whence.ContextUse],
    idle: Sequence[whence.ContextUse],
    measure: Measure,
    least: float,
) -> list[Count]:
    """How often the pronoun is found, alone, and how often something is found for nothing."""
    found = alone = alarms = 0
    for text, use in zip(suite.needed, needed, strict=True):
        outputs = np.flatnonzero(selected(scores_by(use, measure), least=least)).tolist()
        found += text["pronoun"] in outputs
        alone += outputs == [text["pronoun"]]
    for use in idle:
        alarms += bool(selected(scores_by(use, measure), least=least).any())
    return [
        Count("pronoun found", found, len(needed)),
        Count("pronoun found, and nothing else", alone, len(needed)),
        Count("false alarms", alarms, len(idle)),
    ]


def second_step(suite: Suite, needed: Sequence[whence.ContextUse], method: str) -> list[Count]:
    """How often the pronoun is found and its noun is the strongest for it."""
    first = only = 0
    for text, use in zip(suite.needed, needed, strict=True):
        pronoun, noun = text["pronoun"], text["antecedent"]
        if pronoun in use.selected:
            sources = use.sources(pronoun, method)
            first += sources[:1] == (noun,)
            only += sources == (noun,)
    return [
        Count("pronoun found, and its noun first", first, len(needed)),
        Count("pronoun found, and its noun alone kept", only, len(needed)),
    ]


def chance(suite: Suite) -> float:
    """How often a word of the context by lot is the noun."""
    return sum(1 / len(text["context"].split()) for text in suite.needed) / len(suite.needed)


def table(model: whence.Model, suite: Suite, methods: Sequence[str]) -> list[dict[str, Any]]:
    """All counts."""
    needed = [used(model, suite, text, methods) for text in suite.needed]
    idle = [used(model, suite, text, ["random"]) for text in suite.idle]
    records = []
    for measure in MEASURES:
        floors = {"usual floor": usual_floor(measure), "no floor": 0.0}
        for name, least in floors.items():
            for count in first_step(suite, needed, idle, measure, least):
                records.append(_record(f"{measure}, {name}", count))
    for method in methods:
        records += [_record(method, count) for count in second_step(suite, needed, method)]
    largest = [float(use.scores.max()) for use in idle]
    print(f"largest divergence where no context is needed: {max(largest):.4f} nats")
    least_needed = [
        float(use.scores[text["pronoun"]]) for text, use in zip(suite.needed, needed, strict=True)
    ]
    print(f"smallest divergence of a pronoun that needs it: {min(least_needed):.4f} nats")
    return records


def _record(by: str, count: Count) -> dict[str, Any]:
    return {"by": by, "what": count.what, "right": count.right, "of": count.of}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m bench.context_planted")
    parser.add_argument("--training", type=int, metavar="N", help="N texts as it was trained on")
    parser.add_argument("--unchosen", type=int, metavar="N", help="N held-out texts as they come")
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    model = whence.load("translator")
    suite = held_out(model)
    if options.training or options.unchosen:
        count = options.training or options.unchosen
        suite = drawn(count, like_training=bool(options.training))
    records = table(model, suite, options.methods)
    for record in records:
        share = record["right"] / record["of"]
        print(
            f"{share:7.1%}  {record['right']:4} of {record['of']}  {record['by']}: {record['what']}"
        )
    print(f"a word of the context by lot is the noun in {chance(suite):.1%}")
    if options.csv:
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(records[0]))
            writer.writeheader()
            writer.writerows(records)


if __name__ == "__main__":
    main()
