"""From texts to attributions: windows, one trace for a group of passages and one game for each removal, every method on them, and the
windows joined again."""

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
from whence.core.errors import InputError, Unsupported
from whence.core.evidence import Evidence
from whence.core.passage import Passage
from whence.core.provenance import Provenance
from whence.core.registry import (
    ANY_ATTENTION,
    GRADIENTS,
    MethodInfo,
    Needs,
    as_scores,
    settings_dict,
)
from whence.core.scores import Scores
from whence.core.target import Target
from whence.core.units import UnitKind
from whence.explaining.games import Games
from whence.metrics.evidence import OF_WINDOWS, RANKINGS
from whence.models.model import Model, Overflow
from whence.trace.forecast import forecast_trace
from whence.trace.lxmert import is_lxmert
from whence.trace.memory import check
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
    spread: Float[np.ndarray, " unit"] | None
    change: float | None
    note: str
    cost: Cost
    extra: tuple[int, int]  # forwards and backwards beyond the shared trace's
    target: Target
    value: float
    logits: Float[np.ndarray, " label"]
    via: str
    evidence: Evidence | None = None
    detail: Mapping[str, Any] | None = None
    settings: Any = None  # where the run filled some in: the removal by its full name


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of one text: attributions, the errors of methods that do not fit, and what all of it cost together."""

    attributions: dict[str, Attribution]
    failed: dict[str, Exception]
    forwards: int
    backwards: int
    saved: int


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
    evidence: bool = False,
) -> list[Outcome]:
    """What came of each text."""
    if model.task == "bare":
        raise Unsupported(
            f"{type(model.hf).__name__} has no head, so there is no number to explain; use whence.attend."
        )
    wholes = [_encode(model, t, pair, units, overflow, target) for t in texts]
    pieces = [model.windows(w) for w in wholes]
    flat = [p for ps in pieces for p in ps]
    targets, looks = _targets_of_windows(model, pieces, target)
    inside = [a for a in asked if not a.info.needs & Needs.GAME]
    raw: dict[int, dict[str, _Raw | Exception]] = {i: {} for i in range(len(flat))}
    needs = Needs.NOTHING
    for a in inside:
        needs |= a.info.needs
    groups = model.groups(flat, TRACE_TOKENS) if inside else []
    for group in groups:
        longest = max((flat[i] for i in group), key=len)
        check(forecast_trace(model, longest, needs, len(group)), memory, OPTIONS)
    for group in groups:
        for i, found in _trace_group(
            model, flat, group, [targets[i] for i in group], needs, asked, via, progress
        ).items():
            raw[i] = {n: _with_look(r, looks[i]) for n, r in found.items()}
    results, first = [], 0
    for whole, ps in zip(wholes, pieces, strict=True):
        numbers = range(first, first + len(ps))
        first += len(ps)
        games = [_games(model, flat[i], targets[i], raw[i], seed, progress) for i in numbers]
        for i, g in zip(numbers, games, strict=True):
            raw[i] |= {n: _with_look(r, looks[i]) for n, r in _play(model, g, asked).items()}
        rows = [raw[i] for i in numbers]
        made, failed = _joined(model, whole, asked, rows, seed)
        extra = (
            np.array([r.extra for row in rows for r in row.values() if isinstance(r, _Raw)])
            .reshape(-1, 2)
            .sum(0)
        )
        if evidence and made:
            made = (
                _with_evidence(games[0], made)
                if len(ps) == 1
                else {n: replace(a, evidence=OF_WINDOWS) for n, a in made.items()}
            )
        outside = sum(g.forwards for g in games)
        traced = (
            (len(ps) if inside else 0) + sum(looks[i] for i in numbers),
            len(ps) if needs & GRADIENTS else 0,
        )
        saved = sum(g.saved for g in games)
        results.append(
            Outcome(
                made, failed, traced[0] + int(extra[0]) + outside, traced[1] + int(extra[1]), saved
            )
        )
    return results


def _joined(
    model: Model,
    whole: Passage,
    asked: Sequence[Asked],
    rows: Sequence[dict[str, _Raw | Exception]],
    seed: int,
) -> tuple[dict[str, Attribution], dict[str, Exception]]:
    """Attributions over all windows of a text, and the errors of methods that failed on one of them."""
    failed = {
        a.info.name: e
        for a in asked
        for row in rows
        if isinstance(e := row[a.info.name], Exception)
    }
    made = {
        a.info.name: _attribution(
            model, whole, a, [r for row in rows if isinstance(r := row[a.info.name], _Raw)], seed
        )
        for a in asked
        if a.info.name not in failed
    }
    return made, failed


def _games(
    model: Model,
    passage: Passage,
    target: Target,
    found: Mapping[str, _Raw | Exception],
    seed: int,
    progress: Progress | None,
) -> Games:
    """No game is played yet; the target is what the trace resolved, if there was one."""
    resolved = next((r.target for r in found.values() if isinstance(r, _Raw)), target)
    return Games(model, passage, resolved, seed, progress or (lambda _: None))


def _play(model: Model, games: Games, asked: Sequence[Asked]) -> dict[str, _Raw | Exception]:
    """Every black-box method on the games of one passage."""
    out: dict[str, _Raw | Exception] = {}
    for a in asked:
        if not a.info.needs & Needs.GAME:
            continue
        memory = _memory(model)
        try:
            scores, game, cost, settings = games.play(a.info.name, a.settings)
        except Unsupported as problem:
            out[a.info.name] = problem
            continue
        out[a.info.name] = _Raw(
            scores=scores.units,
            spread=scores.standard_error,
            change=scores.change,
            note=scores.note,
            cost=replace(cost, peak_bytes=_memory(model, memory)),
            extra=(0, 0),  # the games count for themselves
            target=game.target,
            value=game.full,
            logits=game.logits,
            via="own",
            detail=scores.detail,
            settings=settings,
        )
    return out


def _with_evidence(games: Games, made: dict[str, Attribution]) -> dict[str, Attribution]:
    try:
        judged = games.judge(list(made.values()), None, RANKINGS)
    except Unsupported:  # nothing can be removed from this input: a text beside an image
        return made
    return dict(zip(made, judged, strict=True))


def _own_units(passage: Passage, units: Any) -> Passage:
    if units not in ("word", passage.kind):
        raise InputError(
            f"this passage was cut into units of kind {passage.kind!r}; encode its text with units={units!r} instead."
        )
    return passage


def _encode(
    model: Model, text: Any, pair: str | None, units: Any, overflow: Overflow, target: Target
) -> Passage:
    if isinstance(text, Passage):
        passage = model.fitted(_own_units(text, units), overflow)
    else:
        passage = model.encode(text, pair, units=units, overflow=overflow)
    return model.placed(passage, target)


def _targets_of_windows(
    model: Model, pieces: Sequence[Sequence[Passage]], target: Target
) -> tuple[list[Target], list[int]]:
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
    return (
        replace(raw, cost=replace(raw.cost, forwards=raw.cost.forwards + forwards))
        if forwards and isinstance(raw, _Raw)
        else raw
    )


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
    t = trace(
        model,
        [passages[i] for i in group],
        list(targets),
        needs,
        attention_via=via,
        tick=lambda: say(label[0]),
    )
    traced = (time.perf_counter() - started) / len(group)
    out: dict[int, dict[str, _Raw | Exception]] = {i: {} for i in group}
    logits = t.logits.double().cpu().numpy()
    base = list(zip(t.passes.forwards, t.passes.backwards, strict=True))
    for a in asked:
        if a.info.needs & Needs.GAME:
            continue
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
        scores = as_scores(scores, a.info.name, t.passages)
        seconds = traced + (time.perf_counter() - begun) / len(group)
        peak = _memory(model, memory)
        for k, i in enumerate(group):
            extra = t.passes.forwards[k] - base[k][0], t.passes.backwards[k] - base[k][1]
            own = (
                base[k][1] if a.info.needs & GRADIENTS else 0
            )  # others in the comparison may have asked for the trace's backward pass
            cost = Cost(base[k][0] + extra[0], own + extra[1], seconds, peak, shared=len(asked) > 1)
            out[i][a.info.name] = _raw(
                t, k, scores[k], getattr(a.settings, "merge", "sum"), cost, extra, logits[k]
            )
    return out


def _refuse_half(a: Asked, t: Trace) -> None:
    """A method that sees only the text, where there is an image too, would have half an answer."""
    if a.info.needs & (Needs.EMBEDDINGS | Needs.EMBEDDING_GRADIENTS | Needs.RERUNS):
        t.check_embeddings()
    if (
        is_lxmert(t.model.hf)
        and a.info.needs & ANY_ATTENTION
        and not getattr(a.settings, "two_streams", False)
    ):
        raise Unsupported(
            f"{a.info.name} follows one stream of tokens, and {type(t.model.hf).__name__} has two that look at each other; "
            "use generic-attention."
        )


def _raw(
    t: Trace,
    k: int,
    scores: Scores,
    merge: str,
    cost: Cost,
    extra: tuple[int, int],
    logits: np.ndarray,
) -> _Raw:
    scores = scores.on_units(t.passages[k], merge)
    assert scores.units is not None
    return _Raw(
        scores=scores.units,
        spread=scores.standard_error,
        change=scores.change,
        note=scores.note,
        cost=cost,
        extra=extra,
        target=t.targets[k],
        value=float(t.values[k]),
        logits=logits,
        via=t.attention_via,
        evidence=scores.evidence,
    )


def _attribution(
    model: Model, passage: Passage, a: Asked, rows: Sequence[_Raw], seed: int
) -> Attribution:
    """Join the windows: the target is the mean over windows, so each window's scores count one part in so many."""
    w = len(rows)
    joined = np.concatenate([r.scores for r in rows]) / w
    peaks = [r.cost.peak_bytes for r in rows if r.cost.peak_bytes is not None]
    cost = Cost(
        sum(r.cost.forwards for r in rows),
        sum(r.cost.backwards for r in rows),
        sum(r.cost.seconds for r in rows),
        max(peaks) if peaks else None,
        rows[0].cost.shared,
        sum(r.cost.saved for r in rows),
    )
    return Attribution(
        passage=passage,
        scores=joined,
        target=rows[0].target,
        value=float(np.mean([r.value for r in rows])),
        method=a.info.name,
        version=a.info.version,
        settings=settings_dict(rows[0].settings or a.settings),
        seed=seed,
        signed=a.settings.signed,
        cost=cost,
        provenance=Provenance.of(model, _attention(model, _ran_by(a, rows[0].via))),
        error=_error(joined, rows),
        evidence=rows[0].evidence
        if w == 1
        else None,  # of windows each has its own, and no rule joins them
        detail=rows[0].detail if w == 1 else None,
        prediction=dict(model.prediction(np.mean([r.logits for r in rows], 0)).probabilities),
    )


def _error(joined: Float[np.ndarray, " unit"], rows: Sequence[_Raw]) -> Error | None:
    w = len(rows)
    spread = [r.spread for r in rows if r.spread is not None]
    changes = [r.change for r in rows if r.change is not None]
    notes = [r.note for r in rows if r.note]
    if not spread and not changes and not notes:
        return None
    change = sum(changes) / w
    gap = abs(float(joined.sum()) - change) / max(abs(change), 1e-12) if changes else None
    note = f"{len(notes)} of {w} windows: {notes[0]}" if notes and w > 1 else "".join(notes)
    return Error(np.concatenate(spread) / w if spread else None, gap, note)


def _ran_by(a: Asked, traced: str) -> str:
    """Whose attention the numbers come from: reruns leave the model its own, unless relevance runs through the captured one."""
    if a.info.needs & Needs.ATTENTION_GRAPH:
        return "interface" if traced == "own" else traced
    return "own" if a.info.needs & Needs.RERUNS and not a.info.needs & ANY_ATTENTION else traced


def _attention(model: Model, via: str) -> str:
    """By which path the attention was computed."""
    own = str(getattr(model.config, "_attn_implementation", "eager"))
    return {
        "own": own,
        "interface": "captured (eager)",
        "output": "eager",
        "hooks": "captured (hooks)",
    }[via]


def _memory(model: Model, since: int | None = None) -> int:
    """Bytes at the high-water mark; with ``since``, how far above it."""
    if model.device.type == "cuda":
        if since is None:
            torch.cuda.reset_peak_memory_stats(model.device)
            return torch.cuda.memory_allocated(model.device)
        return torch.cuda.max_memory_allocated(model.device) - since
    mark = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return mark if since is None else mark - since
