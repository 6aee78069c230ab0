"""From texts to attributions: windows, one trace for a group of passages, every method on it, and the windows joined again."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from whence.core.attribution import Attribution, Cost, Error
from whence.core.errors import InputError, TargetError, Unsupported
from whence.core.memory import check
from whence.core.passage import Passage
from whence.core.provenance import Provenance
from whence.core.registry import ANY_ATTENTION, GRADIENTS, MethodInfo, Needs, settings_dict
from whence.core.scores import Scores
from whence.core.target import Target
from whence.core.units import UnitKind
from whence.models.model import Model, Overflow
from whence.trace.forecast import forecast_trace
from whence.trace.lxmert import is_lxmert
from whence.trace.trace import Trace, Via, trace

Progress = Callable[[str], None]
OPTIONS = "rollout, value-weighted and gradient methods hold no whole maps, overflow='truncate' or 'window' or a shorter text"
TRACE_TOKENS = 4096  # of one traced batch: maps and gradients are held for all of it


@dataclass(frozen=True)
class Asked:
    """One method with its settings, ready to be called."""

    info: MethodInfo
    settings: Any


@dataclass(frozen=True, eq=False)
class _Raw:
    """What one method gave for one passage, before windows are joined."""

    scores: Float[np.ndarray, " unit"]
    jackknife: Float[np.ndarray, "left_out unit"] | None
    change: float | None
    note: str
    cost: Cost
    extra: tuple[int, int]  # forwards and backwards beyond the shared trace's
    target: Target
    value: float
    logits: Float[np.ndarray, " label"]
    via: str
    evidence: Mapping[str, Any] | None = None


def run(
    model: Model,
    texts: Sequence[Any],
    asked: Sequence[Asked],
    pair: str | None,
    target: Target,
    units: UnitKind | Sequence[int],
    seed: int,
    overflow: Overflow,
    via: Via,
    progress: Progress | None,
    memory: str | int | float | None = None,
) -> list[tuple[dict[str, Attribution], dict[str, Exception], tuple[int, int]]]:
    """Attributions, the errors of methods that do not fit, and the passes paid in all, for each text."""
    if model.task == "bare":
        raise Unsupported(f"{type(model.hf).__name__} has no head, so there is no number to explain; use whence.attend.")
    wholes = [_encode(model, t, pair, units, overflow, target) for t in texts]
    pieces = [model.windows(w) for w in wholes]
    flat = [p for ps in pieces for p in ps]
    targets, looks = _targets_of_windows(model, pieces, target)
    raw: dict[int, dict[str, _Raw | Exception]] = {}
    needs = Needs.NOTHING
    for a in asked:
        needs |= a.info.needs
    groups = model.groups(flat, TRACE_TOKENS)
    for group in groups:
        longest = max((flat[i] for i in group), key=len)
        check(forecast_trace(model, longest, needs, len(group)), memory, OPTIONS)
    for group in groups:
        for i, found in _trace_group(model, flat, group, [targets[i] for i in group], needs, asked, via, progress).items():
            raw[i] = {n: _with_look(r, looks[i]) for n, r in found.items()}
    results, first = [], 0
    for whole, ps in zip(wholes, pieces, strict=True):
        rows = [raw[i] for i in range(first, first + len(ps))]
        first += len(ps)
        good = {a.info.name: a for a in asked if not any(isinstance(r[a.info.name], Exception) for r in rows)}
        failed = {
            a.info.name: next(e for r in rows if isinstance(e := r[a.info.name], Exception)) for a in asked if a.info.name not in good
        }
        made = {
            n: _attribution(model, whole, a, [r for row in rows if isinstance(r := row[n], _Raw)], seed, len(asked) > 1)
            for n, a in good.items()
        }
        extra = np.array([r.extra for row in rows for r in row.values() if isinstance(r, _Raw)]).reshape(-1, 2).sum(0)
        traced = len(ps) + sum(looks[first - len(ps) : first]), len(ps) if needs & GRADIENTS else 0
        results.append((made, failed, (traced[0] + int(extra[0]), traced[1] + int(extra[1]))))
    return results


def _own_units(passage: Passage, units: Any) -> Passage:
    if units not in ("word", passage.kind):
        raise InputError(f"this passage was cut into units of kind {passage.kind!r}; encode its text with units={units!r} instead.")
    return passage


def _encode(model: Model, text: Any, pair: str | None, units: Any, overflow: Overflow, target: Target) -> Passage:
    if isinstance(text, Passage):
        passage = model.fitted(_own_units(text, units), overflow)
    else:
        passage = model.encode(text, pair, units=units, overflow=overflow)
    return placed(model, passage, target)


def placed(model: Model, passage: Passage, target: Target) -> Passage:
    """The passage with the target's unit under the mask token, where the model is one that fills it; else as it is."""
    if model.task != "masked":
        if target.at is not None:
            raise TargetError("at= names the unit that a masked language model fills; this model is not one.")
        return passage
    if target.at is None and passage.readout is None:
        some = ", ".join(f"{i} {n!r}" for i, n in enumerate(passage.names[:8]))
        raise TargetError(f"a masked language model predicts at a masked unit: say which, Target(label, at=…). Units: {some} …")
    return passage if target.at is None else model.fill(passage, target.at)


def _targets_of_windows(model: Model, pieces: Sequence[Sequence[Passage]], target: Target) -> tuple[list[Target], list[int]]:
    """The target of each window, and the forwards paid to find it.

    A text in windows has one target: the class that the mean of the windows' logits predicts, unless one was named.
    """
    targets: list[Target] = []
    looks: list[int] = []
    named = target.label is not None and (target.read != "margin" or target.against is not None)
    for ps in pieces:
        if len(ps) == 1:
            targets.append(target)
            looks.append(0)
        else:
            logits = np.zeros(len(model.labels)) if named else model.logits(ps).mean(0)
            targets += [model.resolve(target, logits)] * len(ps)
            looks += [int(not named)] * len(ps)
    return targets, looks


def _with_look(raw: _Raw | Exception, forwards: int) -> _Raw | Exception:
    return replace(raw, cost=replace(raw.cost, forwards=raw.cost.forwards + forwards)) if forwards and isinstance(raw, _Raw) else raw


def _trace_group(
    model: Model,
    passages: Sequence[Passage],
    group: Sequence[int],
    targets: Sequence[Target],
    needs: Needs,
    asked: Sequence[Asked],
    via: Via,
    progress: Progress | None,
) -> dict[int, dict[str, _Raw | Exception]]:
    """One trace for all methods, then each method on it."""
    say = progress or (lambda _: None)
    say("trace")
    started, memory = time.perf_counter(), _memory(model)
    label = ["trace"]
    t = trace(model, [passages[i] for i in group], list(targets), needs, attention_via=via, tick=lambda: say(label[0]))
    traced = (time.perf_counter() - started) / len(group)
    out: dict[int, dict[str, _Raw | Exception]] = {i: {} for i in group}
    logits = t.logits.double().cpu().numpy()
    base = list(zip(t.passes.forwards, t.passes.backwards, strict=True))
    for a in asked:
        label[0] = a.info.name
        say(a.info.name)
        t.passes.forwards, t.passes.backwards = [f for f, _ in base], [b for _, b in base]
        begun = time.perf_counter()
        try:
            _refuse_half(a, t)
            scores = a.settings(t)
        except Unsupported as problem:
            for i in group:
                out[i][a.info.name] = problem
            continue
        scores = scores if isinstance(scores, Scores) else Scores(scores)
        seconds = traced + (time.perf_counter() - begun) / len(group)
        peak = _memory(model, memory)
        for k, i in enumerate(group):
            extra = t.passes.forwards[k] - base[k][0], t.passes.backwards[k] - base[k][1]
            own = base[k][1] if a.info.needs & GRADIENTS else 0  # others in the comparison may have asked for the trace's backward pass
            cost = Cost(base[k][0] + extra[0], own + extra[1], seconds, peak, shared=len(asked) > 1)
            out[i][a.info.name] = _raw(t, k, scores, getattr(a.settings, "merge", "sum"), cost, extra, logits[k])
    return out


def _refuse_half(a: Asked, t: Trace) -> None:
    """A method that sees only the text, where there is an image too, would have half an answer."""
    if a.info.needs & (Needs.EMBEDDINGS | Needs.EMBEDDING_GRADIENTS | Needs.RERUNS):
        t.check_embeddings()
    if is_lxmert(t.model.hf) and a.info.needs & ANY_ATTENTION and not getattr(a.settings, "two_streams", False):
        raise Unsupported(
            f"{a.info.name} follows one stream of tokens, and {type(t.model.hf).__name__} has two that look at each other; "
            "use generic-attention."
        )


def _raw(t: Trace, k: int, scores: Scores, merge: str, cost: Cost, extra: tuple[int, int], logits: np.ndarray) -> _Raw:
    passage = t.passages[k]
    n = len(passage)
    left_out = None
    if scores.jackknife is not None:
        left_out = np.stack([passage.merge(row[:n], merge) for row in scores.jackknife[:, k].double().cpu().numpy()])
    return _Raw(
        scores=passage.merge(scores.tokens[k, :n].double().cpu().numpy(), merge),
        jackknife=left_out,
        change=None if scores.change is None else float(scores.change[k]),
        note=scores.notes[k] if scores.notes else "",
        cost=cost,
        extra=extra,
        target=t.targets[k],
        value=float(t.values[k]),
        logits=logits,
        via=t.attention_via,
        evidence=scores.evidence[k] if scores.evidence else None,
    )


def _attribution(model: Model, passage: Passage, a: Asked, rows: Sequence[_Raw], seed: int, shared: bool) -> Attribution:
    """Join the windows: the target is the mean over windows, so each window's scores count one part in so many."""
    w = len(rows)
    joined = np.concatenate([r.scores for r in rows]) / w
    peaks = [r.cost.peak_bytes for r in rows if r.cost.peak_bytes is not None]
    cost = Cost(
        sum(r.cost.forwards for r in rows),
        sum(r.cost.backwards for r in rows),
        sum(r.cost.seconds for r in rows),
        max(peaks) if peaks else None,
        shared,
    )
    return Attribution(
        passage=passage,
        scores=joined,
        target=rows[0].target,
        value=float(np.mean([r.value for r in rows])),
        method=a.info.name,
        version=a.info.version,
        settings=settings_dict(a.settings),
        seed=seed,
        signed=a.settings.signed,
        cost=cost,
        provenance=_provenance(model, _ran_by(a, rows[0].via)),
        error=_error(joined, rows),
        evidence=rows[0].evidence if w == 1 else None,  # of windows each has its own, and no rule joins them
        prediction=dict(model.prediction(np.mean([r.logits for r in rows], 0)).probabilities),
    )


def _error(joined: Float[np.ndarray, " unit"], rows: Sequence[_Raw]) -> Error | None:
    w = len(rows)
    spread = [_jackknife_error(r.jackknife) for r in rows if r.jackknife is not None]
    changes = [r.change for r in rows if r.change is not None]
    notes = [r.note for r in rows if r.note]
    if not spread and not changes and not notes:
        return None
    change = sum(changes) / w
    gap = abs(float(joined.sum()) - change) / max(abs(change), 1e-12) if changes else None
    note = f"{len(notes)} of {w} windows: {notes[0]}" if notes and w > 1 else "".join(notes)
    return Error(np.concatenate(spread) / w if spread else None, gap, note)


def _jackknife_error(left_out: Float[np.ndarray, "left_out unit"]) -> Float[np.ndarray, " unit"]:
    n = len(left_out)
    return np.sqrt((n - 1) / n * ((left_out - left_out.mean(0)) ** 2).sum(0))


def _ran_by(a: Asked, traced: str) -> str:
    """Whose attention the numbers come from: reruns leave the model its own, unless relevance runs through the captured one."""
    if a.info.needs & Needs.ATTENTION_GRAPH:
        return "interface" if traced == "own" else traced
    return "own" if a.info.needs & Needs.RERUNS and not a.info.needs & ANY_ATTENTION else traced


def _provenance(model: Model, via: str) -> Provenance:
    import transformers

    from whence import __version__

    own = str(getattr(model.config, "_attn_implementation", "eager"))
    return Provenance(
        model=model.name,
        architecture=type(model.hf).__name__,
        fingerprint=model.fingerprint,
        revision=model.revision,
        dtype=str(model.dtype).removeprefix("torch."),
        device=str(model.device),
        attention={"own": own, "interface": "captured (eager)", "output": "eager", "hooks": "captured (hooks)"}[via],
        versions={"whence": __version__, "torch": torch.__version__, "transformers": transformers.__version__},
    )


def _memory(model: Model, since: int | None = None) -> int:
    """Bytes at the high-water mark; with ``since``, how far above it."""
    if model.device.type == "cuda":
        if since is None:
            torch.cuda.reset_peak_memory_stats(model.device)
            return torch.cuda.memory_allocated(model.device)
        return torch.cuda.max_memory_allocated(model.device) - since
    mark = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return mark if since is None else mark - since
