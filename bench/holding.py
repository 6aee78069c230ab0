"""What it costs in time that the C library is held to giving memory back at once.

Each run has a fork of a process that has run every method on a short text, so that its heap has no
large holes. One half of the forks hold the C library, as a run near its budget does, the other half
leave it as it is; they take turns. Processor time of one thread, of the program and of the system,
after two runs that do not count; and page faults, which no neighbour changes.

    python -m bench.holding bert 128,512
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from functools import partial

import torch

import whence
from bench.forecast import FAMILIES, forked, run, text_of, warm_up
from whence.core.passage import Passage
from whence.models.model import Model
from whence.trace.memory import give_back_at_once

METHODS = ("gradient-l2", "attention-mean", "integrated-gradients", "occlusion")
BUNDLED = "sentiment"
WIDTH = 256
ROUNDS = 5
LEAST = 0.3  # seconds of one measurement, so that a short run is repeated


def paid(model: Model, passage: Passage, method: str, is_held: bool) -> tuple[float, float]:
    """Seconds and page faults of one run."""
    if is_held and not give_back_at_once():
        raise RuntimeError("this C library cannot be asked to give memory back")
    for _ in range(2):
        run(model, passage, method)
    before, started = _faults(), time.process_time()
    runs = 0
    while time.process_time() - started < LEAST:
        run(model, passage, method)
        runs += 1
    return (time.process_time() - started) / runs, (_faults() - before) / runs


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def line(model: Model, passage: Passage, method: str, rounds: int) -> str:
    """Medians of both, and the median of the ratios of each round."""
    costs: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for number in range(rounds):
        for is_held in (False, True) if number % 2 else (True, False):
            costs[is_held].append(forked(partial(paid, model, passage, method, is_held)))
    ratios = [held[0] / free[0] for free, held in zip(costs[False], costs[True], strict=True)]
    words = f"{len(passage):>5} tokens  {method:<22}"
    for is_held, name in ((False, "as it comes"), (True, "held")):
        milliseconds = 1000 * statistics.median(seconds for seconds, _ in costs[is_held])
        faults = statistics.median(faults for _, faults in costs[is_held])
        words += f"{name} {milliseconds:7.1f} ms {faults:9,.0f} faults  "
    return words + f"{statistics.median(ratios):.2f} times ({min(ratios):.2f} to {max(ratios):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family", choices=[BUNDLED, *FAMILIES])
    parser.add_argument("tokens", type=lambda given: [int(part) for part in given.split(",")])
    parser.add_argument("--methods", type=lambda given: given.split(","), default=METHODS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    is_bundled = options.family == BUNDLED
    model = whence.load(BUNDLED) if is_bundled else FAMILIES[options.family](WIDTH)
    warm_up(model, options.methods)
    print(options.family)
    for tokens in options.tokens:
        passage = text_of(model, tokens)
        for method in options.methods:
            print(line(model, passage, method, options.rounds), flush=True)


if __name__ == "__main__":
    main()
