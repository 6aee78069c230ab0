"""Two processes that share each batch see what one process with the whole batch sees."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.features.two_processes import CASES, seen

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.slow
def test_two_processes_have_the_losses_of_one(tmp_path: Path) -> None:
    # a wrong version: means over processes of losses of shares that differ in size; the largest
    # k · n of each share, and not of the batch; a guess of the batch's bound, or a threshold, that
    # is each process's own
    out = tmp_path / "losses.json"
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    script = ["--nproc-per-node=2", "-m", "tests.features.two_processes", str(out)]
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    subprocess.run([*torchrun, *script], check=True, env=environment, cwd=ROOT, timeout=100)
    theirs = json.loads(out.read_text())
    for name, settings in CASES.items():
        for one, two in zip(seen(settings, 12), theirs[name], strict=True):
            assert two == pytest.approx(one, rel=1e-4, abs=1e-5), name
