"""Run by torchrun, in two processes: each has a part of every batch; the first writes what it saw.

What it writes: the losses of each step, and what the autoencoder is after the last one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from torch import distributed

from tests.features.planted import DIM, batches
from whence.features.fitting import Settings, begin, finished, step
from whence.features.rules import Threshold


def seen(settings: Settings, steps: int, share: int = 0, shares: int = 1) -> list[list[float]]:
    group = distributed.group.WORLD if shares > 1 else None
    state = begin(settings, DIM)
    numbers = []
    for rows, _ in zip(batches(90), range(steps), strict=False):
        # shares that differ in size, 50 rows and 40, and in how much is in a row
        rows[50:] *= 0.3
        mine = rows if shares == 1 else rows.split([50, 40])[share]
        report = step(state, settings, mine, group=group)
        numbers.append([report.loss, report.l0, report.variance_explained, float(report.dead)])
    trained = finished(state, settings)
    numbers.append(trained.encoder_bias.tolist())
    if isinstance(trained.rule, Threshold):
        numbers.append(trained.rule.thresholds.tolist())
    return numbers


CASES = {
    "relu": Settings("relu", size=40, sparsity=2.0, steps=12, warm_up=0.0),
    "topk": Settings("topk", size=40, k=3, steps=12, dead_after=180),
    "batch-topk": Settings("batch-topk", size=40, k=3, steps=12, dead_after=180),
    # so many that some processes guess a bound above zero, and others do not
    "batch-topk, many": Settings("batch-topk", size=40, k=14, steps=12),
    "matryoshka": Settings("matryoshka", size=40, k=3, steps=12, prefixes=(10, 40)),
    "jump-relu": Settings("jump-relu", size=40, sparsity=2.0, steps=12, warm_up=0.0),
    "gated": Settings("gated", size=40, sparsity=2.0, steps=12, warm_up=0.0),
}


if __name__ == "__main__":
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    all_seen = {name: seen(case, 12, rank, 2) for name, case in CASES.items()}
    if rank == 0:
        Path(sys.argv[1]).write_text(json.dumps(all_seen))
    distributed.destroy_process_group()
