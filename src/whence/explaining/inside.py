"""Methods that look inside the model: one trace for a group of asks, then each method on it."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from whence.core.attribution import Cost
from whence.core.errors import ModelError, Unsupported
from whence.core.passage import Passage
from whence.core.registry import ANY_ATTENTION, GRADIENTS, Needs, as_scores
from whence.core.registry.passes import BACKWARD
from whence.core.request import Ask
from whence.explaining.job import (
    TRACE_TOKENS,
    Finding,
    Findings,
    Job,
    MethodCall,
    Room,
    Said,
)
from whence.explaining.meter import Meter
from whence.models.model import Model
from whence.models.passing import in_one_line
from whence.trace.lxmert import is_lxmert
from whence.trace.routers import chooses
from whence.trace.trace import Passes, Trace, trace

# Outputs for each passage that would fit a trace. A gradient is one row of embeddings, and a graph
# holds dozens of such rows for each layer.
OUTPUTS_FOR_ONE = 8

# Said of gradients of a model with experts.
OF_ROUTERS = (
    "the model chooses among experts by size (top-k): slopes hold for the experts that it chose, "
    "and say nothing of a switch to others"
)


@dataclass(frozen=True, eq=False)
class Look:
    """What the methods found inside for one ask, and the passes that this took in all."""

    said: Said
    findings: Findings
    cost: Cost


def look_inside(job: Job, asks: Sequence[Ask]) -> list[Look]:
    """What every method that looks inside says of each ask."""
    groups = _groups(job, asks)
    look_of: dict[int, Look] = {}
    for group in groups:
        looks = _look_at_group(job, [asks[i] for i in group])
        look_of.update(zip(group, looks, strict=True))
    return [look_of[i] for i in range(len(asks))]


def _groups(job: Job, asks: Sequence[Ask]) -> list[list[int]]:
    """Asks that share a trace.

    Outputs of one written text share its forward pass, and each adds a gradient of its own: a small
    part of what the graph holds, unless there are gradients of the maps too.
    """
    if not asks or asks[0].passage.written is None:
        return job.model.groups([ask.passage for ask in asks], job.room.trace_tokens)
    of_text: dict[Any, list[int]] = {}
    for i, ask in enumerate(asks):
        of_text.setdefault(ask.passage.input_key, []).append(i)
    groups = []
    for same in of_text.values():
        at_once = outputs_at_once(asks[same[0]].passage, job.needs, job.room)
        groups += [same[first : first + at_once] for first in range(0, len(same), at_once)]
    return groups


def outputs_at_once(passage: Passage, needs: Needs, room: Room) -> int:
    """How many outputs of a written text may share a trace.

    >>> import whence
    >>> passage = whence.load("writer").encode("Once upon a time")
    >>> outputs_at_once(passage, Needs.EMBEDDING_GRADIENTS, Room(outputs=3))
    3
    """
    usual = max(1, TRACE_TOKENS // len(passage))
    if not needs & Needs.ATTENTION_GRADIENTS:
        usual *= OUTPUTS_FOR_ONE
    return min(room.outputs, usual)


def _look_at_group(job: Job, asks: Sequence[Ask]) -> list[Look]:
    def traced(tick: Callable[[], None]) -> Trace:
        return trace(
            job.model,
            asks,
            needs=job.needs,
            attention_via=job.request.attention_via,
            tick=tick,
        )

    return look_on(job, len(asks), traced)


def look_on(job: Job, asks: int, traced_with: Callable[[Callable[[], None]], Trace]) -> list[Look]:
    """What every method that looks inside says on a trace of so many asks.

    ``traced_with`` makes the trace, and is given what to call after each batch of it.
    """
    job.meter.begin("trace", asks)
    told = Told(job.meter, Passes([], []))
    begun = time.perf_counter()
    mark = memory_mark(job.model)
    traced = replace(traced_with(told.tick), rerun_tokens=job.room.rerun_tokens)
    told.passes = traced.passes
    told.tick()
    seconds = (time.perf_counter() - begun) / asks
    shared = Shared(traced, _copy(traced.passes), seconds, mark, len(job.request.wishes) > 1)
    saids = _what_was_said(traced)
    findings: list[Findings] = [{} for _ in range(asks)]
    forwards, backwards = list(traced.passes.forwards), list(traced.passes.backwards)
    for call in job.looking:
        job.meter.begin(call.name, asks)
        told.weight = weight_of(shared.passes)
        try:
            with in_one_line(job.model.hf, call.name, call.settings):
                each_ask = _call(call, shared, saids)
        except (Unsupported, ModelError) as problem:
            for of_ask in findings:
                of_ask[call.name] = problem
            continue
        for i, finding in enumerate(each_ask):
            findings[i][call.name] = finding
            forwards[i] += traced.passes.forwards[i] - shared.passes.forwards[i]
            backwards[i] += traced.passes.backwards[i] - shared.passes.backwards[i]
    looks = []
    for i, said in enumerate(saids):
        cost = Cost(forwards=forwards[i], backwards=backwards[i])
        looks.append(Look(said, findings[i], cost))
    return looks


@dataclass(eq=False)
class Told:
    """How many of a trace's passes the meter was told of."""

    meter: Meter
    passes: Passes
    weight: int = 0

    def tick(self) -> None:
        """Some passes were run since the last time."""
        weight = weight_of(self.passes)
        self.meter.paid(weight - self.weight)
        self.weight = weight


def weight_of(passes: Passes) -> int:
    """The passes of all asks as one number, a backward pass as two."""
    return sum(passes.forwards) + BACKWARD * sum(passes.backwards)


@dataclass(frozen=True, eq=False)
class Shared:
    """The trace that all methods share, and what it cost before any of them was called."""

    trace: Trace
    passes: Passes
    seconds: float  # for each ask
    memory_mark: Mark
    by_several_methods: bool


def _call(call: MethodCall, shared: Shared, saids: Sequence[Said]) -> list[Finding]:
    """One method on the trace. What it runs beyond the trace is counted from the trace's passes."""
    traced = shared.trace
    fresh = _copy(shared.passes)
    traced.passes.forwards, traced.passes.backwards = fresh.forwards, fresh.backwards
    begun = time.perf_counter()
    _refuse_half(call, traced)
    scores = as_scores(call.settings(traced), call.name, traced.passages)
    seconds = shared.seconds + (time.perf_counter() - begun) / len(saids)
    peak = memory_above(traced.model, shared.memory_mark)
    merge = getattr(call.settings, "merge", "sum")
    attention = _attention(traced.model, _path_of(call, traced.attention_via))
    settings = call.settings
    if hasattr(settings, "as_run"):
        settings = replace(settings, **settings.as_run(traced))
    findings = []
    for i, said in enumerate(saids):
        own_forwards = traced.passes.forwards[i] - shared.passes.forwards[i]
        own_backwards = traced.passes.backwards[i] - shared.passes.backwards[i]
        # the trace's backward pass may have been asked for by other methods
        uses_backward = bool(call.needs & GRADIENTS)
        cost = Cost(
            forwards=1 + own_forwards,
            backwards=int(uses_backward) + own_backwards,
            seconds=seconds,
            peak_bytes=peak,
            shared=shared.by_several_methods or shared.passes.forwards[i] == 0,
        )
        on_units = scores[i].on_units(traced.passages[i], merge)
        if cost.backwards and not on_units.note and chooses(traced.model.hf):
            on_units = replace(on_units, note=OF_ROUTERS)
        findings.append(Finding(said, on_units, cost, settings, attention))
    return findings


def _what_was_said(traced: Trace) -> list[Said]:
    logits = traced.logits.double().cpu().numpy()
    values = traced.values.tolist()
    saids = []
    for target, value, row in zip(traced.targets, values, logits, strict=True):
        saids.append(Said(target, value, row))
    return saids


def _copy(passes: Passes) -> Passes:
    return Passes(list(passes.forwards), list(passes.backwards))


def _refuse_half(call: MethodCall, traced: Trace) -> None:
    """A method that sees only the text, where there is an image too, would have half an answer."""
    needs = call.needs
    if needs & (Needs.EMBEDDINGS | Needs.EMBEDDING_GRADIENTS | Needs.RERUNS):
        traced.check_embeddings()
    follows_two_streams = getattr(call.settings, "two_streams", False)
    if needs & ANY_ATTENTION and not follows_two_streams and is_lxmert(traced.model.hf):
        raise Unsupported(
            f"{call.name} follows one stream of tokens, and {type(traced.model.hf).__name__} has "
            "two that look at each other; use generic-attention."
        )


def _path_of(call: MethodCall, traced_via: str) -> str:
    """Whose attention the numbers come from.

    Reruns leave the model its own, unless relevance runs through the captured one.
    """
    needs = call.needs
    if needs & Needs.ATTENTION_GRAPH:
        return "interface" if traced_via == "own" else traced_via
    if needs & Needs.RERUNS and not needs & ANY_ATTENTION:
        return "own"
    return traced_via


def _attention(model: Model, via: str) -> str:
    """The path by which attention was computed, in words."""
    if via == "own":
        return own_attention(model)
    return {"interface": "captured (eager)", "output": "eager", "hooks": "captured (hooks)"}[via]


def own_attention(model: Model) -> str:
    """The name of the attention that the model uses by itself."""
    return str(getattr(model.config, "_attn_implementation", "eager"))


@dataclass(frozen=True)
class Mark:
    """Bytes in use at some moment, and the most that were ever in use before it."""

    in_use: int
    highest: int


def memory_mark(model: Model) -> Mark:
    """The memory at this moment, from which a run is counted."""
    if model.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(model.device)
        return Mark(torch.cuda.memory_allocated(model.device), 0)
    return Mark(_in_use(), _high_water())


def memory_above(model: Model, mark: Mark) -> int | None:
    """By how much the memory rose above an earlier ``mark`` at its peak.

    None where that is not known: the process once held more, and its peak of then hides this one.
    """
    if model.device.type == "cuda":
        return torch.cuda.max_memory_allocated(model.device) - mark.in_use
    highest = _high_water()
    if highest <= mark.highest or not mark.in_use:
        return None
    # the two are read from different counters, which may differ by some pages
    return max(0, highest - mark.in_use)


def _high_water() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _in_use() -> int:
    """Zero where the system does not tell."""
    try:
        resident = Path("/proc/self/statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0
    return int(resident) * resource.getpagesize()
