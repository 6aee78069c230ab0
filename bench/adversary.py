"""Adversarial attention beside the floor of its own passes: bare forwards and backwards.

    python -m bench.adversary

The floor runs the same batches through the model with eager attention, as often forwards as the
search does, and backwards to the embeddings. (The search goes back only as far as the layer whose
attention it moves; the joint search goes back through all of them.)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

import whence
from bench.timing import Ratio, interleaved
from whence.audits.adversary import Adversary
from whence.audits.case import Case
from whence.core.target import Target
from whence.games.game import TOKENS_AT_ONCE
from whence.models.model import Model

TEXTS = 8
ROUNDS = 5
LIMIT = 1.3


def sentences(count: int) -> list[str]:
    """Sentences of 10 to 40 words, from shortest to longest."""
    lines = (Path(__file__).parent / "sentences.tsv").read_text().splitlines()
    texts = [line.split("\t")[1] for line in lines if line[:1] in "01"][:30]
    return texts[:: len(texts) // count][:count]


def floor(model: Model, cases: Sequence[Case], test: Adversary) -> Callable[[], None]:
    """The bare passes of a search, in the batches of the search."""
    layers = model.config.num_hidden_layers
    passages = [case.passage for case in cases for _ in range(test.restarts)]
    batches = []
    for group in model.groups([*passages], TOKENS_AT_ONCE):
        batches.append(model.batch([passages[i] for i in group]).inputs)
    table = model.input_embeddings

    def run() -> None:
        own = model.config._attn_implementation
        model.hf.set_attn_implementation("eager")
        for inputs in batches:
            others = {name: x for name, x in inputs.items() if name != "input_ids"}
            embeddings = table(inputs["input_ids"]).detach()
            with torch.no_grad():
                for _ in range(layers + 1 + 1):  # the last looks, and the text as it is
                    model.hf(inputs_embeds=embeddings, **others)
            for _ in range((layers + 1) * test.steps):
                leaf = embeddings.clone().requires_grad_()
                logits = model.hf(inputs_embeds=leaf, **others).logits
                torch.autograd.grad(logits[:, 0].sum(), [leaf])
        model.hf.set_attn_implementation(own)

    return run


def adversary_over_floor(model: Model, test: Adversary, rounds: int = ROUNDS) -> Ratio:
    """Seconds of the processor of a search over those of its bare passes."""
    cases = [Case(model.encode(text), Target()) for text in sentences(TEXTS)]
    price = test.passes(heads=0, wholes=model.config.num_hidden_layers + 1)
    return interleaved(
        f"adversarial attention, {TEXTS} texts, {test.restarts} starts of {test.steps} steps",
        lambda: test(model, cases),
        f"{price.forwards} bare forwards and {price.backwards} backwards a text",
        floor(model, cases, test),
        limit=LIMIT,
        rounds=rounds,
        clock=time.process_time,
    )


def of_bundled() -> Ratio:
    """The same, of the bundled sentiment model."""
    model = whence.load("sentiment")
    model.hf.requires_grad_(False)  # the floor saves nothing for parameters either
    return adversary_over_floor(model, Adversary(steps=5))


def main() -> None:
    torch.set_num_threads(1)
    ratio = of_bundled()
    print(f"{ratio.what} over {ratio.over}:")
    print(f"{ratio.ratio:.2f} ({ratio.low:.2f} to {ratio.high:.2f}), at most {ratio.limit}")
    print(f"{ratio.seconds / TEXTS:.2f} seconds of the processor a text")


if __name__ == "__main__":
    main()
