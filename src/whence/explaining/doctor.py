"""Examine a model before trusting it with work: what it is, which methods work, whether its attention is seen rightly, what it costs.

Nothing is looked up in a list of families: every method is tried on a short text, and the attention that whence captures is compared
with what the model itself returns under eager attention.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from whence.core.errors import Unsupported, WhenceError
from whence.core.passage import Passage, truncate
from whence.core.registry import Needs, find_method, methods
from whence.explaining.workflow import compare
from whence.models.lxmert import reads_regions
from whence.models.model import Model
from whence.models.texts import tokenize
from whence.trace.attention import BLOCK_BYTES, can_observe
from whence.trace.trace import Trace, trace

PROMPT = "The quick brown fox didn't jump over the lazy dog, and nobody minded."
TOLERANCE = (
    1e-6  # of captured attention against eager's, in float32; half precision gets its own rounding
)
MEASURED = (16, 48, 112)  # tokens
FORECAST = (32, 128, 512, 2048, 8192, 32768, 131072)
UNLIMITED = 4096  # tokens up to which a model without an end of its positions is forecast
REPEATS = 3
FEW_MASKS = 200  # of a method that samples: whether it works is asked, not how well
SLOW = 2.0  # seconds of one pass after which no longer text is tried


@dataclass(frozen=True)
class Attempt:
    """One method, tried; ``reason`` says why it does not work."""

    method: str
    works: bool
    reason: str = ""


@dataclass(frozen=True)
class SelfCheck:
    """Captured attention against eager ``output_attentions``: the largest difference of any weight, and of any logit."""

    passed: bool | None  # None where there is nothing to compare with
    attention_difference: float | None = None
    logit_difference: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Forecast:
    """What a text of so many tokens will take: seconds fitted to short texts, bytes counted."""

    tokens: int
    forward_seconds: float
    gradient_seconds: float | None  # forward and backward
    maps_bytes: int
    maps_and_gradients_bytes: int
    head_mean_bytes: int


@dataclass(frozen=True)
class Report:
    """The findings."""

    model: str
    architecture: str
    family: str
    task: str
    parameters: int
    weights_bytes: int
    dtype: str
    device: str
    limit: int | None
    attention_path: str  # "interface" or "output"
    attention: dict[str, dict[str, int]]  # kind: layers and heads
    self_check: SelfCheck
    methods: tuple[Attempt, ...]
    measured_tokens: tuple[int, ...]
    forecast: tuple[Forecast, ...]
    threads: int
    versions: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def examine(model: Model, progress: Callable[[str], None] | None = None) -> Report:
    """Try everything that can be tried in a few seconds.

    >>> import whence
    >>> examine(whence.load("sentiment")).self_check.passed
    True
    """
    say = progress or (lambda _: None)
    say("self-check")
    check, maps = self_check(model)
    attempts = []
    for name in methods():
        say(name)
        attempts.append(attempt(model, name))
    say("timing")
    measured, forecasts = forecast(model, maps)
    parameters = list(model.hf.parameters())
    return Report(
        model=model.name,
        architecture=type(model.hf).__name__,
        family=str(model.config.model_type),
        task=model.task,
        parameters=sum(p.numel() for p in parameters),
        weights_bytes=sum(p.numel() * p.element_size() for p in parameters),
        dtype=str(model.dtype).removeprefix("torch."),
        device=str(model.device),
        limit=model.limit,
        attention_path="interface" if can_observe(model.hf) else "output",
        attention=maps,
        self_check=check,
        methods=tuple(attempts),
        measured_tokens=measured,
        forecast=forecasts,
        threads=torch.get_num_threads(),
        versions=_versions(),
    )


def _versions() -> dict[str, str]:
    import transformers

    from whence import __version__

    return {
        "whence": __version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "python": platform.python_version(),
    }


def sample(model: Model, reply: bool = False) -> Passage:
    """A short input that the model can read; with ``reply``, also a text for the decoder's side."""
    if not model.kind.reads_text:
        return model.encode(_picture(model))
    if model.kind.reads_image:
        return model.encode(PROMPT, image=_picture(model), overflow="truncate")
    two_sided = reply and model.is_encoder_decoder and not model.kind.reads_twice
    passage = model.encode(PROMPT, reply=PROMPT if two_sided else None, overflow="truncate")
    return model.fill(passage, 1) if model.kind.fills_a_mask else passage


def _picture(model: Model) -> Any:
    rng = np.random.default_rng(0)
    if reads_regions(model):
        boxes = np.tile(np.array([0.0, 0.0, 1.0, 1.0], dtype=np.float32), (4, 1))
        return {
            "features": rng.normal(size=(4, model.config.visual_feat_dim)).astype(np.float32),
            "boxes": boxes,
        }
    size = model.config.image_size
    high, wide = size if isinstance(size, (tuple, list)) else (size, size)
    return rng.normal(size=(getattr(model.config, "num_channels", 3), high, wide)).astype(
        np.float32
    )


def attempt(model: Model, method: str) -> Attempt:
    """Really run a method; whatever it raises is the answer, not an accident."""
    fewer = (
        {"budget": FEW_MASKS}
        if "budget" in {f.name for f in fields(find_method(method).settings)}
        else {}
    )
    try:
        compare(model, sample(model), {method: fewer}, evidence=False)
    except WhenceError as problem:
        return Attempt(method, False, str(problem))
    except Exception as problem:
        return Attempt(method, False, f"{type(problem).__name__}: {problem}")
    return Attempt(method, True)


def self_check(model: Model) -> tuple[SelfCheck, dict[str, dict[str, int]]]:
    """Compare what is captured with what the model returns, and count layers and heads on the way."""
    passage = sample(model, reply=True)
    try:
        ours = trace(model, [passage], needs=Needs.ATTENTION)
    except Unsupported as problem:
        return SelfCheck(None, note=str(problem)), {}
    counts = {
        kind: {"layers": len(maps), "heads": int(maps[0].shape[1])}
        for kind, maps in ours.attentions.items()
    }
    if ours.attention_via == "output":
        return SelfCheck(
            None,
            note="eager output_attentions is the path itself, so there is nothing to compare it with",
        ), counts
    try:
        eager = trace(model, [passage], needs=Needs.ATTENTION, attention_via="output")
    except Unsupported as problem:
        return SelfCheck(None, note=f"the model returns no attention of its own: {problem}"), counts
    difference = _largest_difference(ours, eager)
    logits = None
    if ours.head is not None and eager.head is not None:
        logits = float((ours.logits - eager.logits).abs().max())
    if difference is None:
        return SelfCheck(False, note="the captured maps and eager's have different layers"), counts
    allowed = max(TOLERANCE, 4 * torch.finfo(model.dtype).eps)
    return SelfCheck(difference <= allowed, difference, logits), counts


def _largest_difference(ours: Trace, eager: Trace) -> float | None:
    """By kind; a model with one kind of attention is compared layer by layer, whatever either path calls it."""
    if set(ours.attentions) == set(eager.attentions):
        pairs = [(ours.attentions[k], eager.attentions[k]) for k in ours.attentions]
    elif len(ours.attentions) == len(eager.attentions) == 1:
        pairs = [(*ours.attentions.values(), *eager.attentions.values())]
    else:
        return None
    if any(len(a) != len(b) for a, b in pairs):
        return None
    return max(
        float((x.float() - y.float()).abs().max())
        for a, b in pairs
        for x, y in zip(a, b, strict=True)
    )


def forecast(
    model: Model, maps: dict[str, dict[str, int]]
) -> tuple[tuple[int, ...], tuple[Forecast, ...]]:
    """Times at a few short lengths, continued by a·T + b·T²; bytes of the maps at the model's own dtype."""
    passages = _of_lengths(model)
    forward = _times(model, passages, Needs.NOTHING)
    gradient = None
    if model.kind.has_head:
        gradient = _times(model, passages, Needs.EMBEDDING_GRADIENTS)
    lengths = [len(p) for p in passages[: len(forward)]]
    cell = torch.empty((), dtype=model.dtype).element_size()
    layers = sum(m["layers"] for m in maps.values())
    rows = []
    for tokens in _lengths_to_forecast(model, lengths):
        whole = sum(m["layers"] * m["heads"] for m in maps.values()) * tokens**2 * cell
        block = min(
            max((m["heads"] for m in maps.values()), default=0) * tokens**2 * cell, BLOCK_BYTES
        )
        rows.append(
            Forecast(
                tokens=tokens,
                forward_seconds=_continued(lengths, forward, tokens),
                gradient_seconds=None
                if gradient is None
                else _continued(lengths[: len(gradient)], gradient, tokens),
                maps_bytes=whole,
                maps_and_gradients_bytes=2 * whole,
                head_mean_bytes=layers * tokens**2 * cell + block,
            )
        )
    return tuple(lengths), tuple(rows)


def _of_lengths(model: Model) -> list[Passage]:
    if model.kind.reads_image:
        return [sample(model)]
    words = " ".join([PROMPT] * 12)
    whole = tokenize(model, words, None, "token")
    limit = model.limit or MEASURED[-1]
    cut = {len(p): p for p in (truncate(whole, min(n, limit)) for n in MEASURED)}
    return [model.fill(p, 1) if model.kind.fills_a_mask else p for p in cut.values()]


def _lengths_to_forecast(model: Model, measured: Sequence[int]) -> list[int]:
    if model.kind.reads_image:
        return list(measured)
    end = model.limit or UNLIMITED
    return [*(n for n in FORECAST if n < end), end]


def _times(model: Model, passages: Sequence[Passage], needs: Needs) -> list[float]:
    """The best of a few runs at each length; a slow model is not asked for the longer ones."""
    out: list[float] = []
    for passage in passages:
        best = float("inf")
        for _ in range(REPEATS):
            started = time.perf_counter()
            trace(model, [passage], needs=needs)
            best = min(best, time.perf_counter() - started)
            if best > SLOW:
                break
        out.append(best)
        if best > SLOW:
            break
    return out


def _continued(lengths: Sequence[int], seconds: Sequence[float], tokens: int) -> float:
    """The least-squares a·T + b·T² with neither below zero, at another length."""
    t = np.asarray(lengths, dtype=np.float64)
    y: Float[np.ndarray, " length"] = np.asarray(seconds, dtype=np.float64)
    a, b = (
        np.linalg.lstsq(np.stack([t, t**2], 1), y, rcond=None)[0]
        if len(t) > 1
        else (y[0] / t[0], 0.0)
    )
    if b < 0:
        a, b = float(t @ y / (t @ t)), 0.0
    elif a < 0:
        a, b = 0.0, float(t**2 @ y / (t**2 @ t**2))
    return float(a * tokens + b * tokens**2)
