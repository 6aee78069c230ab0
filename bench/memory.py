"""Peak memory against the length of the text: eager attention kept whole, and ours.

Ours is reduced on the way. Each run is a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whence.core.sizes import human

LENGTHS = (512, 1024, 2048, 4096)
SHORT = LENGTHS[:2]  # of a run that is not about memory
LIMIT = 2 * 10**9  # of ours, at the longest
EAGER, MEAN, ROLLOUT = "eager, output_attentions", "attend(heads='mean')", "explain(…, 'rollout')"
FIGURE = Path(__file__).parents[1] / "docs" / "assets" / "memory.svg"
CURVES = ((EAGER, "#ef6c00", "o"), (MEAN, "#7e57c2", "s"), (ROLLOUT, "#00838f", "^"))
STYLE = {
    "svg.hashsalt": "whence",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
}


@dataclass(frozen=True)
class Peak:
    """Bytes above the loaded model at the highest moment, and seconds.

    Of a run that was left out (``skipped``), the bytes that it was forecast to need.
    """

    what: str
    tokens: int
    bytes: int
    seconds: float
    skipped: bool = False

    @property
    def holds(self) -> bool | None:
        if self.what == EAGER or self.tokens < LENGTHS[-1]:
            return None
        return self.bytes < LIMIT


CHILD = """
import sys
import time

import torch
import transformers as tf

what, tokens, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(threads)
from bench import memory
from bench.status import status
from tests.tokenizers import wordpiece
import whence
from whence.core.registry import Needs
from whence.trace.forecast import forecast_trace
from whence.trace.memory import available

torch.manual_seed(0)
config = tf.BertConfig(
    vocab_size=len(wordpiece()),
    hidden_size=96,
    num_hidden_layers=12,
    num_attention_heads=12,
    intermediate_size=192,
    max_position_embeddings=max(memory.LENGTHS),
    pad_token_id=0,
)
model = whence.load(tf.BertForSequenceClassification(config).eval(), tokenizer=wordpiece())
passage = model.encode("the " * (tokens - 2), units="token")
assert len(passage) == tokens

def run(passage):
    if what == memory.EAGER:
        with torch.no_grad():
            return model.hf(**model.batch([passage]).inputs, output_attentions=True)
    if what == memory.MEAN:
        return whence.attend(model, passage, units="token", heads="mean")
    return whence.explain(model, passage, "rollout", units="token", evidence=False)

if what == memory.EAGER:
    model.hf.set_attn_implementation("eager")
    needed = forecast_trace(model, passage, Needs.ATTENTION).total
    if needed > available() / 2:
        print("skipped", needed, 0)
        sys.exit()
run(model.encode("the food", units="token"))

before, started = status("VmHWM"), time.perf_counter()
result = run(passage)
print("ran", status("VmHWM") - before, time.perf_counter() - started)
"""


def peak(what: str, tokens: int, threads: int = 1) -> Peak:
    command = [sys.executable, "-c", CHILD, what, str(tokens), str(threads)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1]
    )
    if done.returncode:
        complaints = done.stderr.strip().splitlines() or ["killed"]
        raise RuntimeError(f"{what} at {tokens} tokens: {complaints[-1]}")
    how, size, seconds = done.stdout.split()[-3:]
    return Peak(what, tokens, int(size), float(seconds), how == "skipped")


def shown(p: Peak) -> str:
    line = f"{p.what:<46} {p.tokens:>5} tokens  "
    if p.skipped:
        return line + f"left out: {human(p.bytes)} forecast, over half of what is free"
    verdict = ""
    if p.holds is not None:
        verdict = f"below {human(LIMIT)}: {'yes' if p.holds else 'NO'}"
    return line + f"{human(p.bytes):>8} {p.seconds:6.1f} s  {verdict}"


def draw(peaks: Sequence[Peak], path: Path = FIGURE) -> Path:
    """Curves on two logarithmic axes; a forecast is a hollow dot."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(6.4, 4.0), layout="constrained")
        ax = figure.subplots()
        for what, colour, mark in CURVES:
            _draw_curve(ax, peaks, what, colour, mark)
        ax.axhline(LIMIT / 1e9, color="#888", linestyle="--", linewidth=1)
        ax.text(LENGTHS[0], LIMIT / 1e9 * 1.1, "2 GB, our limit at 4,096 tokens", color="#555")
        ax.set(
            xscale="log", yscale="log", xlabel="tokens", ylabel="peak above the loaded model, GB"
        )
        ax.set_xticks(LENGTHS, [f"{n:,}" for n in LENGTHS])
        ax.minorticks_off()
        low, high = ax.get_ylim()
        ticks = [t for t in (0.01, 0.03, 0.1, 0.3, 1, 3, 10) if low <= t <= high]
        ax.set_yticks(ticks, [f"{t:g}" for t in ticks])
        ax.grid(alpha=0.3)
        ax.legend(frameon=False, loc="lower right")
        ax.set_title("Attention of 12 layers × 12 heads", fontsize=11)
        figure.savefig(path, metadata={"Date": None})
    return path


def _draw_curve(ax: Any, peaks: Sequence[Peak], what: str, colour: str, mark: str) -> None:
    peaks = [peak for peak in peaks if peak.what == what]
    ran = [peak for peak in peaks if not peak.skipped]
    forecast = [peak for peak in peaks if peak.skipped]
    ax.plot(*_points(ran), color=colour, marker=mark, label=what)
    if not forecast:
        return
    ax.plot(*_points([*ran[-1:], *forecast]), color=colour, linestyle=":")
    ax.plot(
        *_points(forecast),
        color=colour,
        marker=mark,
        markerfacecolor="white",
        linestyle="",
        label="the same, forecast only",
    )


def _points(peaks: Sequence[Peak]) -> tuple[list[int], list[float]]:
    """Tokens, and gigabytes."""
    return [peak.tokens for peak in peaks], [peak.bytes / 1e9 for peak in peaks]
