"""Which methods beat random rankings on generated text? On this the default of `generate` rests.

    python -m bench.generated_evidence --csv generated.csv     # about five minutes

The bundled writer goes on with the first ten words of sentences of film reviews (the first ones of
``bench/sentences.tsv`` that are so long, no other choice), and the bundled translator translates
the first texts of its suite, half
of those that need their context and half of those that do not. Up to eight tokens are written,
greedily. Every method is then held against random rankings of the prompt's words, on the
log-probability of all that was written: what `generate` does by itself.

A prompt counts for a method where its ranking is better than random under every removal (p ≤ 0.05):
by chance that is one in twenty at most.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import whence
from whence.core.evidence import Verdict
from whence.models.load import BUNDLED
from whence.models.model import Model

# the cheapest ones, and one that draws
METHODS: dict[str, dict[str, Any]] = {
    "gradient-x-input": {},
    "gradient-l2": {},
    "attn-lrp": {},
    "occlusion": {},
    "integrated-gradients": {},
    "smooth-grad": {},
    "lime": {"samples": 100},
    "random": {},
}
PROMPTS = 30
TOKENS, WORDS, RANKINGS = 8, 10, 199


def prompts_of(name: str, count: int) -> Iterator[str]:
    """The texts that a model goes on with, or translates."""
    if name == "writer":
        lines = Path("bench/sentences.tsv").read_text("utf-8").splitlines()
        texts = [line.split("\t")[1].split() for line in lines if line[:2] in ("0\t", "1\t")]
        long = [words for words in texts if len(words) > WORDS]
        yield from (" ".join(words[:WORDS]) for words in long[:count])
        return
    suite = json.loads((BUNDLED / "translator" / "suite.json").read_text("utf-8"))
    for kind in ("context_needed", "context_idle"):
        for case in suite[kind][: count // 2]:
            yield f"{case['context']} {suite['separator']} {case['sentence']}"


def rows_of(model: Model, name: str, prompts: Sequence[str]) -> Iterator[dict[str, Any]]:
    """A row for each prompt and method."""
    for number, prompt in enumerate(prompts):
        g = whence.generate(model, prompt, METHODS, max_new_tokens=TOKENS, rankings=RANKINGS)
        assert g.chosen is not None
        for method, a in g.chosen.attributions.items():
            evidence = a.evidence
            assert evidence is not None
            yield {
                "model": name,
                "prompt": number,
                "words": len(a.units),
                "method": method,
                "verdict": str(evidence.verdict),
                "beaten": evidence.value,
                "p": evidence.p,
                "forwards": a.cost.forwards,
                "backwards": a.cost.backwards,
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--prompts", type=int, default=PROMPTS)
    arguments = parser.parse_args()
    rows = []
    for name in ("writer", "translator"):
        prompts = list(prompts_of(name, arguments.prompts))
        rows += rows_of(whence.load(name), name, prompts)
        tell(name, [row for row in rows if row["model"] == name])
    if arguments.csv is not None:
        with arguments.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


def tell(name: str, rows: Sequence[dict[str, Any]]) -> None:
    """One line for each method, as a table of the docs."""
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        better = sum(row["verdict"] == str(Verdict.BETTER) for row in own)
        beaten = mean(row["beaten"] for row in own)
        passes = mean(row["forwards"] + row["backwards"] for row in own)
        print(f"| {name} | {method} | {better} of {len(own)} | {beaten:.0%} | {passes:.0f} |")


if __name__ == "__main__":
    main()
