"""Draw the three curves of the docs, from the real program: ``python docs/assets/curves.py``.

Plain SVG, no library.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForSequenceClassification

import whence
from whence.core.registry import Needs
from whence.methods.integrated_gradients import PER_PANEL, SCOUTS, lay_panels
from whence.trace.baselines import baseline_embeddings
from whence.trace.trace import trace

HERE = Path(__file__).parent
TEXT = "the service is not bad"
WIDE, HIGH, MARGIN = 520, 220, 40
INK, SOFT, LINE, DOT = "#333", "#888", "#7e57c2", "#ef6c00"


def draw(
    name: str,
    x: Sequence[float],
    y: Sequence[float],
    below: str,
    dots: Sequence[tuple[float, float]] = (),
) -> None:
    """One curve, with dots on it, its axes labelled at their ends."""
    low, high = min(0.0, min(y)), max(y)

    def place(a: float, b: float) -> str:
        across = MARGIN + (a - x[0]) / (x[-1] - x[0]) * (WIDE - 2 * MARGIN)
        down = HIGH - MARGIN - (b - low) / (high - low) * (HIGH - 2 * MARGIN)
        return f"{across:.1f},{down:.1f}"

    def label(at: str, text: str, anchor: str, dx: int, dy: int) -> str:
        left, top = (float(n) for n in at.split(","))
        where = f'x="{left + dx:.1f}" y="{top + dy:.1f}"'
        return f'<text {where} text-anchor="{anchor}" fill="{INK}">{text}</text>'

    def circle(at: str) -> str:
        left, top = at.split(",")
        return f'<circle cx="{left}" cy="{top}" r="3.5" fill="{DOT}"/>'

    zero, end, top = place(x[0], 0.0), place(x[-1], 0.0), place(x[0], high)
    curve = " ".join(place(a, b) for a, b in zip(x, y, strict=True))
    middle = f'x="{WIDE / 2}" y="{HIGH - 8}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" width="{WIDE}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDE}" height="{HIGH}" fill="#fff"/>',
        f'<polyline points="{place(x[0], low)} {top}" stroke="{SOFT}"/>'
        f'<polyline points="{zero} {end}" stroke="{SOFT}"/>',
        f'<polyline points="{curve}" fill="none" stroke="{LINE}" stroke-width="2"/>',
        *(circle(place(a, b)) for a, b in dots),
        label(top, f"{high:.2g}", "end", -5, 4),
        label(zero, "0", "end", -5, 4),
        label(end, f"{x[-1]:g}", "middle", 0, 16),
        f'<text {middle} text-anchor="middle" fill="{INK}">{below}</text></svg>',
    ]
    (HERE / f"{name}.svg").write_text("\n".join(parts) + "\n", encoding="utf-8")


def saturation() -> None:
    """A function that rises and then is flat."""
    x = np.linspace(0, 3, 4)
    y = 1 - np.maximum(1 - x, 0)
    below = "x; the dot is the input, where the slope is zero"
    draw("saturation", x.tolist(), y.tolist(), below, [(2.0, 1.0)])


def path() -> None:
    """The bundled model along the path from the mean embedding to the text.

    The dots are the nodes that integrated gradients begin with.
    """
    model = whence.load("sentiment")
    t = trace(model, [model.encode(TEXT)], "positive", Needs.EMBEDDINGS | Needs.RERUNS)
    start = baseline_embeddings(t, 0, "mean")
    way = t.embeddings_of(0) - start

    def values(places: np.ndarray) -> list[float]:
        points = start + torch.from_numpy(places).float()[:, None, None] * way
        return t.values_at(0, points).tolist()

    scouts = np.arange(SCOUTS + 1) / SCOUTS
    scouted = dict(zip(scouts.tolist(), values(scouts), strict=True))
    panels = lay_panels(scouted, 16 // PER_PANEL)
    nodes = (np.polynomial.legendre.leggauss(PER_PANEL)[0] + 1) / 2
    places = np.concatenate([a + (b - a) * nodes for a, b in panels])
    dots = list(zip(places.tolist(), values(places), strict=True))
    x = np.linspace(0, 1, 101)
    draw("path", x.tolist(), values(x), "from the baseline (0) to the text (1)", dots)


def rms_norm() -> None:
    """A small Llama along the path from the zero embedding: the model of the page on traps."""
    torch.manual_seed(0)
    sizes = {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "max_position_embeddings": 128,
    }
    config = LlamaConfig(vocab_size=4500, num_labels=2, pad_token_id=0, **sizes)
    hf = LlamaForSequenceClassification(config)
    with torch.no_grad():
        hf.model.embed_tokens.weight.mul_(50)
    llama = whence.load(hf, tokenizer=whence.load("sentiment").tokenizer)
    t = trace(llama, [llama.encode(TEXT)], needs=Needs.EMBEDDINGS | Needs.RERUNS)
    x = np.concatenate([[0.0], np.geomspace(1e-5, 0.1, 80), np.linspace(0.11, 1, 60)])
    points = torch.from_numpy(x).float()[:, None, None] * t.embeddings_of(0)
    y = t.values_at(0, points)
    draw("rms-norm", x.tolist(), y.tolist(), "from the zero embedding (0) to the text (1)")


if __name__ == "__main__":
    saturation()
    path()
    rms_norm()
