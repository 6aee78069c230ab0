"""Examine a model before trusting it with work: what it is, what works on it, and what it costs.

Nothing is looked up in a list of families. Every method is tried on a short text, and the attention
that whence captures is compared with what the model itself returns under eager attention (the plain
implementation in transformers, which keeps the weights).
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

from whence.core.errors import ModelError, Unsupported, WhenceError
from whence.core.passage import Passage, truncate
from whence.core.registry import Needs, find_method, methods
from whence.explaining.explain import compare
from whence.models.model import Model
from whence.models.sample import PROMPT, QUESTION, read_somewhere, sample
from whence.models.texts import tokenize
from whence.trace.attention import can_observe
from whence.trace.forecast import forecast_trace
from whence.trace.guard import attention, findings
from whence.trace.trace import Trace, trace

# of captured attention against eager's, in float32; half precision gets its own rounding
TOLERANCE = 1e-6
# tokens of the texts that are timed, and of those that are forecast
MEASURED = (16, 48, 112)
FORECAST = (32, 128, 512, 2048, 8192, 32768, 131072)
# tokens up to which a model without an end of its positions is forecast
UNLIMITED = 4096
REPEATS = 3
# of a method that samples: whether it works is asked, not how well
FEW_MASKS = 200
# seconds of one pass after which no longer text is tried
SLOW = 2.0
# kind of attention: how many layers and heads it has
Sizes = dict[str, dict[str, int]]


@dataclass(frozen=True)
class Attempt:
    """One method, tried; ``reason`` says why it does not work.

    ``note`` says of one that works that its scores are zero by construction, if they are.
    """

    method: str
    works: bool
    reason: str = ""
    note: str = ""


@dataclass(frozen=True)
class SelfCheck:
    """Captured attention against eager ``output_attentions``: the largest differences.

    ``passed`` is None where there is nothing to compare with.
    """

    passed: bool | None
    attention_difference: float | None = None
    logit_difference: float | None = None
    note: str = ""


@dataclass(frozen=True)
class CostOfLength:
    """What a text of so many tokens will take, continued from short texts.

    ``gradient_seconds`` are those of a forward and a backward pass. Bytes are those at the peak of
    a run: of gradients, of one that keeps all maps, their gradients too, or their mean over heads.
    None stands for what the model cannot do, or is not known.
    """

    tokens: int
    forward_seconds: float
    gradient_seconds: float | None
    gradient_bytes: int | None
    maps_bytes: int | None
    maps_and_gradients_bytes: int | None
    head_mean_bytes: int | None


@dataclass(frozen=True)
class Report:
    """The findings.

    ``attention_path`` is "interface" where attention is captured inside the graph, and "output"
    where only what the model returns can be read. ``attention`` counts layers and heads by kind.
    ``conduct`` is what the guard found: one entry for each thing that it tried.
    """

    model: str
    architecture: str
    family: str
    task: str
    parameters: int
    weights_bytes: int
    dtype: str
    device: str
    limit: int | None
    attention_path: str
    attention: Sizes
    self_check: SelfCheck
    conduct: tuple[dict[str, Any], ...]
    methods: tuple[Attempt, ...]
    measured_tokens: tuple[int, ...]
    forecast: tuple[CostOfLength, ...]
    threads: int
    versions: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def examine(model: Model, progress: Callable[[str], None] | None = None) -> Report:
    """Try everything that can be tried in a few seconds.

    >>> import whence
    >>> examine(whence.load("single-layer")).self_check.passed
    True
    """
    say = progress or (lambda _: None)

    say("self-check")
    check, sizes = self_check(model)

    say("guard")
    conduct = tuple(finding.to_dict() for finding in findings(model))

    attempts = []
    for name in methods():
        say(name)
        attempts.append(attempt(model, name))

    say("timing")
    measured, forecasts = forecast(model, sizes)

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
        attention_path=_attention_path(model),
        attention=sizes,
        self_check=check,
        conduct=conduct,
        methods=tuple(attempts),
        measured_tokens=measured,
        forecast=forecasts,
        threads=torch.get_num_threads(),
        versions=_versions(),
    )


def _attention_path(model: Model) -> str:
    """By which path attention is seen; "none" where it cannot be."""
    if model.kind.reads_text and model.kind.reads_image:
        return "interface" if can_observe(model.hf) else "output"
    return attention(model).choice or "none"


def _versions() -> dict[str, str]:
    import transformers

    from whence import __version__

    return {
        "whence": __version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "python": platform.python_version(),
    }


def attempt(model: Model, method: str) -> Attempt:
    """Really run a method; whatever it raises is the answer to whether it works."""
    settings = {}
    if "budget" in {f.name for f in fields(find_method(method).settings)}:
        settings["budget"] = FEW_MASKS
    try:
        tried = compare(model, sample(model), {method: settings}, evidence=False)
    except WhenceError as problem:
        return Attempt(method, False, str(problem))
    except Exception as problem:
        return Attempt(method, False, f"{type(problem).__name__}: {problem}")
    first = tried.first
    note = "" if first.error is None or not first.is_zero_by_construction else first.error.note
    return Attempt(method, True, note=note)


def self_check(model: Model) -> tuple[SelfCheck, Sizes]:
    """Compare captured attention with what the model returns; count layers and heads on the way.

    Said where there is nothing to compare captured attention with.

    ``eager output_attentions is the path itself, so there is nothing to compare it with``
    """
    passage = sample(model, reply=True)
    try:
        captured = trace(model, [passage], needs=Needs.ATTENTION)
    except (Unsupported, ModelError) as problem:
        return SelfCheck(None, note=str(problem)), {}

    sizes = {
        kind: {"layers": len(maps), "heads": int(maps[0].shape[1])}
        for kind, maps in captured.attentions.items()
    }
    if captured.attention_via == "output":
        note = "eager output_attentions is the path itself, so there is nothing to compare it with"
        return SelfCheck(None, note=note), sizes
    try:
        eager = trace(model, [passage], needs=Needs.ATTENTION, attention_via="output")
    except (Unsupported, ModelError) as problem:
        note = f"the model returns no attention of its own: {problem}"
        return SelfCheck(None, note=note), sizes
    return _compared(captured, eager, model), sizes


def _compared(captured: Trace, eager: Trace, model: Model) -> SelfCheck:
    """Said where the two have other layers.

    ``the captured maps and eager's have different layers``
    """
    difference = _largest_difference(captured, eager)
    if difference is None:
        return SelfCheck(False, note="the captured maps and eager's have different layers")

    of_logits = None
    if captured.head is not None and eager.head is not None:
        of_logits = float((captured.logits - eager.logits).abs().max())
    allowed = max(TOLERANCE, 4 * torch.finfo(model.dtype).eps)
    return SelfCheck(difference <= allowed, difference, of_logits)


def _largest_difference(captured: Trace, eager: Trace) -> float | None:
    """Of any weight; None where the two have not the same layers.

    Maps are compared by kind. A model with one kind of attention is compared layer by layer,
    whatever either path calls that kind.
    """
    if set(captured.attentions) == set(eager.attentions):
        pairs = [(captured.attentions[k], eager.attentions[k]) for k in captured.attentions]
    elif len(captured.attentions) == len(eager.attentions) == 1:
        pairs = [(*captured.attentions.values(), *eager.attentions.values())]
    else:
        return None
    if any(len(ours) != len(theirs) for ours, theirs in pairs):
        return None

    differences = []
    for ours, theirs in pairs:
        for our_layer, their_layer in zip(ours, theirs, strict=True):
            difference = (our_layer.float() - their_layer.float()).abs().max()
            differences.append(float(difference))
    return max(differences)


def forecast(model: Model, sizes: Sizes) -> tuple[tuple[int, ...], tuple[CostOfLength, ...]]:
    """The lengths that were timed, and a forecast for each length that the model can read.

    Times at a few short lengths are continued by a·T + b·T²; bytes are forecast as for any run.
    """
    passages = _of_lengths(model)
    forward = _times(model, passages, Needs.NOTHING)
    gradient = None
    if model.kind.has_head and model.kind.unseen(model, Needs.EMBEDDING_GRADIENTS) is None:
        gradient = _times(model, passages, Needs.EMBEDDING_GRADIENTS)

    lengths = [len(p) for p in passages[: len(forward)]]
    forecasts = []
    for tokens in _lengths_to_forecast(model, lengths):
        gradient_seconds = None
        if gradient is not None:
            gradient_seconds = _continued(lengths[: len(gradient)], gradient, tokens)

        def most(needs: Needs, tokens: int = tokens) -> int | None:
            return _most_bytes(model, passages[0], needs, tokens)

        forecasts.append(
            CostOfLength(
                tokens=tokens,
                forward_seconds=_continued(lengths, forward, tokens),
                gradient_seconds=gradient_seconds,
                gradient_bytes=most(Needs.EMBEDDING_GRADIENTS) if gradient else None,
                maps_bytes=most(Needs.ATTENTION) if sizes else None,
                maps_and_gradients_bytes=(
                    most(Needs.ATTENTION_GRADIENTS) if sizes and gradient else None
                ),
                head_mean_bytes=most(Needs.HEAD_MEANS) if sizes else None,
            )
        )
    return tuple(lengths), tuple(forecasts)


def _most_bytes(model: Model, passage: Passage, needs: Needs, tokens: int) -> int | None:
    """What a run with these needs holds at its peak; None where it is not known."""
    need = forecast_trace(model, passage, needs, tokens=tokens)
    return need.total if need.is_known else None


def _of_lengths(model: Model) -> list[Passage]:
    """The inputs that are timed, shortest first."""
    if model.kind.reads_image:
        return [sample(model)]
    words = " ".join([PROMPT] * 12)
    if model.kind.offers_choices:
        return [sample(model)]
    if model.kind.second_text:
        whole = tokenize(model, QUESTION, words, "token")
    else:
        whole = tokenize(model, words, None, "token")
    limit = model.limit or MEASURED[-1]

    # by their length: a model with few positions may give the same one several times
    by_length: dict[int, Passage] = {}
    for tokens in MEASURED:
        passage = truncate(whole, min(tokens, limit))
        by_length[len(passage)] = passage

    return [read_somewhere(model, passage) for passage in by_length.values()]


def _lengths_to_forecast(model: Model, measured: Sequence[int]) -> list[int]:
    if model.kind.reads_image:
        return list(measured)
    end = model.limit or UNLIMITED
    return [*(n for n in FORECAST if n < end), end]


def _times(model: Model, passages: Sequence[Passage], needs: Needs) -> list[float]:
    """The best of a few runs at each length; a slow model is not asked for the longer ones."""
    times: list[float] = []
    for passage in passages:
        best = float("inf")
        for _ in range(REPEATS):
            started = time.perf_counter()
            trace(model, [passage], needs=needs)
            best = min(best, time.perf_counter() - started)
            if best > SLOW:
                break
        times.append(best)
        if best > SLOW:
            break
    return times


def _continued(lengths: Sequence[int], seconds: Sequence[float], tokens: int) -> float:
    """The least-squares a·T + b·T² with neither below zero, at another length."""
    t = np.asarray(lengths, dtype=np.float64)
    y: Float[np.ndarray, " length"] = np.asarray(seconds, dtype=np.float64)
    if len(t) == 1:
        return float(y[0] / t[0] * tokens)

    a, b = np.linalg.lstsq(np.stack([t, t**2], 1), y, rcond=None)[0]
    if b < 0:
        a, b = float(t @ y / (t @ t)), 0.0
    elif a < 0:
        a, b = 0.0, float(t**2 @ y / (t**2 @ t**2))
    return float(a * tokens + b * tokens**2)
