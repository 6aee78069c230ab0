"""Peak memory against the length of the text: eager attention kept whole, and ours reduced on the way. Each run is a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from whence.core.sizes import human

LENGTHS = (512, 1024, 2048, 4096)
SHORT = LENGTHS[:2]  # of a run that is not about memory
LIMIT = 2 * 10**9  # of ours, at the longest
EAGER, MEAN, ROLLOUT = "eager, output_attentions", "attend(heads='mean')", "explain(…, 'rollout')"
FIGURE = Path(__file__).parents[1] / "docs" / "assets" / "memory.svg"


@dataclass(frozen=True)
class Peak:
    """Bytes above the loaded model at the highest moment, and seconds; of a run that was left out, what it was forecast to need."""

    what: str
    tokens: int
    bytes: int
    seconds: float
    skipped: bool = False

    @property
    def holds(self) -> bool | None:
        return None if self.what == EAGER or self.tokens < LENGTHS[-1] else self.bytes < LIMIT


CHILD = """
import resource, sys, time
import torch, transformers as tf
what, tokens, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(threads)
from bench import memory
from tests.tokenizers import wordpiece
import whence
from whence.trace.memory import available
from whence.core.registry import Needs
from whence.trace.forecast import forecast_trace
torch.manual_seed(0)
config = tf.BertConfig(vocab_size=len(wordpiece()), hidden_size=96, num_hidden_layers=12, num_attention_heads=12, intermediate_size=192,
                       max_position_embeddings=max(memory.LENGTHS), pad_token_id=0)
model = whence.load(tf.BertForSequenceClassification(config).eval(), tokenizer=wordpiece())
passage = model.encode("the " * (tokens - 2), units="token")
assert len(passage) == tokens

def run(passage):
    if what == memory.EAGER:
        with torch.no_grad():
            return model.hf(**model.batch([passage]).inputs, output_attentions=True)
    if what == memory.MEAN:
        return whence.attend(model, passage, units="token", heads="mean")
    return whence.explain(model, passage, "rollout", units="token")

if what == memory.EAGER:
    model.hf.set_attn_implementation("eager")
    needed = forecast_trace(model, passage, Needs.ATTENTION).total
    if needed > available() / 2:
        print("skipped", needed, 0)
        sys.exit()
run(model.encode("the food", units="token"))
before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
kept = run(passage)
print("ran", (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024, time.perf_counter() - started)
"""


def peak(what: str, tokens: int, threads: int = 1) -> Peak:
    command = [sys.executable, "-c", CHILD, what, str(tokens), str(threads)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1]
    )
    if done.returncode:
        raise RuntimeError(
            f"{what} at {tokens} tokens: {(done.stderr.strip().splitlines() or ['killed'])[-1]}"
        )
    how, size, seconds = done.stdout.split()[-3:]
    return Peak(what, tokens, int(size), float(seconds), how == "skipped")


def shown(p: Peak) -> str:
    line = f"{p.what:<46} {p.tokens:>5} tokens  "
    if p.skipped:
        return line + f"left out: {human(p.bytes)} forecast, over half of what is free"
    verdict = "" if p.holds is None else f"below {human(LIMIT)}: {'yes' if p.holds else 'NO'}"
    return line + f"{human(p.bytes):>8} {p.seconds:6.1f} s  {verdict}"


def draw(peaks: Sequence[Peak], path: Path = FIGURE) -> Path:
    """Curves on two logarithmic axes; a forecast is a hollow dot."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(
        {
            "svg.hashsalt": "whence",
            "svg.fonttype": "none",
            "font.family": "sans-serif",
            "font.size": 10,
        }
    ):
        figure = Figure(figsize=(6.4, 4.0), layout="constrained")
        ax = figure.subplots()
        for what, colour, mark in (
            (EAGER, "#ef6c00", "o"),
            (MEAN, "#7e57c2", "s"),
            (ROLLOUT, "#00838f", "^"),
        ):
            ran = [p for p in peaks if p.what == what and not p.skipped]
            forecast = [p for p in peaks if p.what == what and p.skipped]
            ax.plot(
                [p.tokens for p in ran],
                [p.bytes / 1e9 for p in ran],
                color=colour,
                marker=mark,
                label=what,
            )
            if forecast:
                tail = [*ran[-1:], *forecast]
                ax.plot(
                    [p.tokens for p in tail],
                    [p.bytes / 1e9 for p in tail],
                    color=colour,
                    linestyle=":",
                )
                at, size = [p.tokens for p in forecast], [p.bytes / 1e9 for p in forecast]
                ax.plot(
                    at,
                    size,
                    color=colour,
                    marker=mark,
                    markerfacecolor="white",
                    linestyle="",
                    label="the same, forecast only",
                )
        ax.axhline(LIMIT / 1e9, color="#888", linestyle="--", linewidth=1)
        ax.text(LENGTHS[0], LIMIT / 1e9 * 1.1, "2 GB, our limit at 4,096 tokens", color="#555")
        ax.set(
            xscale="log", yscale="log", xlabel="tokens", ylabel="peak above the loaded model, GB"
        )
        ax.set_xticks(LENGTHS, [f"{n:,}" for n in LENGTHS])
        ax.minorticks_off()
        ticks = [
            t for t in (0.01, 0.03, 0.1, 0.3, 1, 3, 10) if ax.get_ylim()[0] <= t <= ax.get_ylim()[1]
        ]
        ax.set_yticks(ticks, [f"{t:g}" for t in ticks])
        ax.grid(alpha=0.3)
        ax.legend(frameon=False, loc="lower right")
        ax.set_title("Attention of 12 layers × 12 heads", fontsize=11)
        figure.savefig(path, metadata={"Date": None})
    return path
