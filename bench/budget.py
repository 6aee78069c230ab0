"""A budget of memory just below what a run needs, and just above: refused before, kept after.

Below, nothing of the run may be allocated, and the model may read short texts only. Above, what is
measured may not exceed the budget.

The process is as a user's: the C library is as it comes, and its heap has the holes that loading a
model left there. They count as held before, so a run may not fill them with pages that stay.

    python -m bench.budget bert 256 1024
"""

from __future__ import annotations

import argparse
import sys
from functools import partial

import torch

from bench.forecast import (
    EVIDENCE,
    FAMILIES,
    forked,
    job_for,
    measured,
    run,
    text_of,
    warm_up,
)
from whence.core.errors import TooLarge
from whence.core.passage import Passage
from whence.core.sizes import human
from whence.explaining.job import Room
from whence.explaining.room import forecast_memory
from whence.models.model import Model
from whence.trace.footprint import LENGTHS
from whence.trace.memory import can_be_held

METHODS = (
    "gradient-l2",
    "attention-mean",
    "rollout",
    "generic-attention",
    "attn-lrp",
    "smooth-grad",
    "integrated-gradients",
    "occlusion",
    EVIDENCE,
)
JUST = 0.01  # of the budget, by which it is below or above


def least(model: Model, passage: Passage, method: str) -> int:
    """The least that a run can need: in the smallest batches."""
    smallest = Room(len(passage), len(passage), len(passage), outputs=1)
    return forecast_memory(job_for(model, method), passage, smallest).total


def least_and_refusal(model: Model, passage: Passage, method: str) -> tuple[int, list[str]]:
    """The least that a run can need, and what is wrong with the refusal of a budget below."""
    needed = least(model, passage, method)
    return needed, refused(model, passage, method, _below(needed))


def _below(needed: int) -> int:
    return int((1 - JUST) * needed)


def refused(model: Model, passage: Passage, method: str, budget: int) -> list[str]:
    """What is wrong with the refusal; nothing where it is right."""
    read: list[int] = []
    model.input_embeddings.register_forward_hook(
        lambda _module, given, _output: read.append(given[0].shape[-1])
    )
    try:
        run(model, passage, method, budget)
    except TooLarge as refusal:
        words = str(refusal)
        if "\n" in words or "Options:" not in words:
            return [f"no clear line: {words}"]
        if max(read, default=0) > max(LENGTHS):
            return [f"{max(read)} tokens were run before it"]
        return []
    return ["it ran"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("width", type=int)
    parser.add_argument("tokens", type=int)
    parser.add_argument("--methods", type=lambda given: given.split(","), default=METHODS)
    options = parser.parse_args()
    if not can_be_held():
        sys.exit("this C library cannot be asked to give memory back")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = FAMILIES[options.family](options.width)

    passage = text_of(model, options.tokens)
    warm_up(model, options.methods)
    failures = 0
    for method in options.methods:
        needed, problems = forked(partial(least_and_refusal, model, passage, method))
        below, above = _below(needed), int((1 + JUST) * needed)
        (peak,) = forked(partial(measured, model, [passage], method, above, trims=False))
        is_kept = peak <= above
        failures += len(problems) + (not is_kept)
        print(
            f"{method:<24}budget {human(below):>9}: {', '.join(problems) or 'refused'}; "
            f"budget {human(above):>9}: {human(peak)} measured{'' if is_kept else '  EXCEEDED'}",
            flush=True,
        )
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
