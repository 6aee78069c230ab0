"""Two processes that share each batch see what one process with the whole batch sees."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.features.two_processes import CASES, losses

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.slow
def test_two_processes_have_the_losses_of_one(tmp_path: Path) -> None:
    # a wrong version: means over processes of losses of shares that differ in size; the largest
    # k · n of each share, and not of the batch
    out = tmp_path / "losses.json"
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    script = ["--nproc-per-node=2", "-m", "tests.features.two_processes", str(out)]
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    subprocess.run([*torchrun, *script], check=True, env=environment, cwd=ROOT, timeout=300)
    seen = json.loads(out.read_text())
    for name, settings in CASES.items():
        expected = losses(settings, 12)
        for ours, theirs in zip(seen[name], expected, strict=True):
            assert ours == pytest.approx(theirs, rel=1e-4, abs=1e-5), name
