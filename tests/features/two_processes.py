"""Run by torchrun, in two processes: each has a part of every batch; the first writes losses."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from torch import distributed

from tests.features.planted import DIM, batches
from whence.features.fitting import Settings, begin, step


def losses(settings: Settings, steps: int, share: int = 0, shares: int = 1) -> list[list[float]]:
    group = distributed.group.WORLD if shares > 1 else None
    state = begin(settings, DIM)
    seen = []
    for rows, _ in zip(batches(90), range(steps), strict=False):
        # shares of different sizes: 50 rows and 40
        mine = rows if shares == 1 else rows.split([50, 40])[share]
        report = step(state, settings, mine, group=group)
        seen.append([report.loss, report.l0, report.variance_explained, float(report.dead)])
    return seen


CASES = {
    "relu": Settings("relu", size=40, sparsity=2.0, steps=12, warm_up=0.0),
    "topk": Settings("topk", size=40, k=3, steps=12, dead_after=180),
    "batch-topk": Settings("batch-topk", size=40, k=3, steps=12, dead_after=180),
    "gated": Settings("gated", size=40, sparsity=2.0, steps=12, warm_up=0.0),
}


if __name__ == "__main__":
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    seen = {name: losses(case, 12, rank, 2) for name, case in CASES.items()}
    if rank == 0:
        Path(sys.argv[1]).write_text(json.dumps(seen))
    distributed.destroy_process_group()
