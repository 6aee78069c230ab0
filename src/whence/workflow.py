"""explain, compare and attend: needs → one trace → scores → attributions."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, overload

import numpy as np
import torch
from jaxtyping import Float

from whence.core.attribution import Attribution, Cost, Error
from whence.core.comparison import Comparison
from whence.core.errors import InputError, TargetError, Unsupported
from whence.core.maps import AttentionMaps, axis_of, membership
from whence.core.passage import Passage, windows
from whence.core.provenance import Provenance
from whence.core.registry import GRADIENTS, MethodInfo, Needs, find_method, settings_dict, settings_of
from whence.core.registry import methods as all_methods
from whence.core.scores import Scores
from whence.core.target import Reading, Target, as_target
from whence.core.units import UnitKind
from whence.models.model import Model, Overflow
from whence.trace.reducers import ToUnits
from whence.trace.trace import Trace, Via, trace

Progress = Callable[[str], None]
TRACE_TOKENS = 4096  # of one traced batch: maps and gradients are held for all of it


@dataclass(frozen=True)
class _Asked:
    """One method with its settings, ready to be called."""

    info: MethodInfo
    settings: Any


@dataclass(frozen=True, eq=False)
class _Raw:
    """What one method gave for one passage, before windows are joined."""

    scores: Float[np.ndarray, " unit"]
    jackknife: Float[np.ndarray, "left_out unit"] | None
    gap: float | None
    note: str
    cost: Cost
    extra: tuple[int, int]  # forwards and backwards beyond the shared trace's
    target: Target
    value: float
    logits: Float[np.ndarray, " label"]
    via: str


@overload
def explain(model: Model, text: str | Passage, method: str = ..., **options: Any) -> Attribution: ...
@overload
def explain(model: Model, text: list[Any], method: str = ..., **options: Any) -> list[Attribution]: ...
def explain(
    model: Model,
    text: Any,
    method: str = "integrated-gradients",
    *,
    pair: str | None = None,
    target: Target | str | int | tuple[str | int, str | int] | None = None,
    read: Reading | None = None,
    units: UnitKind | Sequence[int] = "word",
    seed: int = 0,
    overflow: Overflow = "error",
    attention_via: Via = "auto",
    progress: Progress | None = None,
    **settings: Any,
) -> Attribution | list[Attribution]:
    """Explain one target of a model on one text (or on each text of a list) by one method.

    ``target`` is a class by name or index, None for the predicted one, a pair for a contrast (*why A rather than B*), or a Target;
    ``read`` is logit (default), log-probability, probability or margin. Everything after that is a setting of the method.

    >>> import whence
    >>> a = whence.explain(whence.load("sentiment"), "a moving and funny film", "gradient-x-input", target="positive")
    >>> len(a.scores) == len(a.units) == 5
    True
    """
    asked = _Asked(info := find_method(method), settings_of(info, settings, seed))
    texts = text if isinstance(text, list) else [text]
    results = _run(model, texts, [asked], pair, as_target(target, read), units, seed, overflow, attention_via, progress)
    attributions = [_one(r, method) for r in results]
    return attributions if isinstance(text, list) else attributions[0]


def _one(result: tuple[dict[str, Attribution], dict[str, Exception], tuple[int, int]], method: str) -> Attribution:
    attributions, failed, _ = result
    if method in failed:
        raise failed[method]
    return attributions[method]


def compare(
    model: Model,
    text: Any,
    methods: Sequence[str] | Mapping[str, Mapping[str, Any]] | None = None,
    *,
    pair: str | None = None,
    target: Target | str | int | tuple[str | int, str | int] | None = None,
    read: Reading | None = None,
    units: UnitKind | Sequence[int] = "word",
    seed: int = 0,
    overflow: Overflow = "error",
    attention_via: Via = "auto",
    progress: Progress | None = None,
) -> Comparison:
    """Explain one text by several methods on one shared trace. ``methods=None`` takes every method that fits the model.

    A mapping gives settings: ``{"integrated-gradients": {"baseline": "mask"}}``.

    >>> import whence
    >>> c = whence.compare(whence.load("sentiment"), "not bad at all", ["gradient-l2", "random"])
    >>> list(c)
    ['gradient-l2', 'random']
    """
    names = list(all_methods()) if methods is None else list(methods)
    if not names:
        raise InputError("compare needs at least one method; methods=None takes all that fit.")
    given = methods if isinstance(methods, Mapping) else {}
    asked = [_Asked(info := find_method(n), settings_of(info, given.get(n, {}), seed)) for n in names]
    started = time.perf_counter()
    ((attributions, failed, passes),) = _run(
        model, [text], asked, pair, as_target(target, read), units, seed, overflow, attention_via, progress
    )
    if failed and methods is not None:
        raise next(iter(failed.values()))
    if not attributions:
        raise next(iter(failed.values()))
    peaks = [a.cost.peak_bytes for a in attributions.values() if a.cost.peak_bytes is not None]
    total = Cost(*passes, seconds=time.perf_counter() - started, peak_bytes=max(peaks, default=None))
    return Comparison(attributions, total, {n: str(e) for n, e in failed.items()})


def _run(
    model: Model,
    texts: Sequence[Any],
    asked: Sequence[_Asked],
    pair: str | None,
    target: Target,
    units: UnitKind | Sequence[int],
    seed: int,
    overflow: Overflow,
    via: Via,
    progress: Progress | None,
) -> list[tuple[dict[str, Attribution], dict[str, Exception], tuple[int, int]]]:
    """Attributions, the errors of methods that do not fit, and the passes paid in all, for each text."""
    if model.task == "bare":
        raise Unsupported(f"{type(model.hf).__name__} has no head, so there is no number to explain; use whence.attend.")
    wholes = [_encode(model, t, pair, units, overflow, target) for t in texts]
    if overflow == "window" and model.task in ("causal", "seq2seq", "masked"):
        raise InputError("windows average one class over the text; a language model predicts a token after each. Use overflow='truncate'.")
    pieces = [windows(w, model.limit) if model.limit is not None and len(w) > model.limit else [w] for w in wholes]
    flat = [p for ps in pieces for p in ps]
    targets = _targets_of_windows(model, pieces, target)
    raw: dict[int, dict[str, _Raw | Exception]] = {}
    needs = Needs.NOTHING
    for a in asked:
        needs |= a.info.needs
    for group in model.groups(flat, TRACE_TOKENS):
        raw.update(_trace_group(model, flat, group, [targets[i] for i in group], needs, asked, via, progress))
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
        traced = len(ps), len(ps) if needs & GRADIENTS else 0
        results.append((made, failed, (traced[0] + int(extra[0]), traced[1] + int(extra[1]))))
    return results


def _encode(model: Model, text: Any, pair: str | None, units: Any, overflow: Overflow, target: Target) -> Passage:
    passage = text if isinstance(text, Passage) else model.encode(text, pair, units=units, overflow=overflow)
    if model.task != "masked":
        if target.at is not None:
            raise TargetError("at= names the unit that a masked language model fills; this model is not one.")
        return passage
    if target.at is None and passage.readout is None:
        some = ", ".join(f"{i} {n!r}" for i, n in enumerate(passage.names[:8]))
        raise TargetError(f"a masked language model predicts at a masked unit: say which, Target(label, at=…). Units: {some} …")
    return passage if target.at is None else model.fill(passage, target.at)


def _targets_of_windows(model: Model, pieces: Sequence[Sequence[Passage]], target: Target) -> list[Target]:
    """A text in windows has one target: the class that the mean of the windows' logits predicts, unless one was named."""
    targets: list[Target] = []
    for ps in pieces:
        if len(ps) == 1:
            targets.append(target)
        else:
            targets += [model.resolve(target, model.logits(ps).mean(0))] * len(ps)
    return targets


def _trace_group(
    model: Model,
    passages: Sequence[Passage],
    group: Sequence[int],
    targets: Sequence[Target],
    needs: Needs,
    asked: Sequence[_Asked],
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


def _raw(t: Trace, k: int, scores: Scores, merge: str, cost: Cost, extra: tuple[int, int], logits: np.ndarray) -> _Raw:
    passage = t.passages[k]
    n = len(passage)
    left_out = None
    if scores.jackknife is not None:
        left_out = np.stack([passage.merge(row[:n], merge) for row in scores.jackknife[:, k].double().cpu().numpy()])
    return _Raw(
        scores=passage.merge(scores.tokens[k, :n].double().cpu().numpy(), merge),
        jackknife=left_out,
        gap=None if scores.gap is None else float(scores.gap[k]),
        note=scores.notes[k] if scores.notes else "",
        cost=cost,
        extra=extra,
        target=t.targets[k],
        value=float(t.values[k]),
        logits=logits,
        via=t.attention_via,
    )


def _attribution(model: Model, passage: Passage, a: _Asked, rows: Sequence[_Raw], seed: int, shared: bool) -> Attribution:
    """Join the windows: the target is the mean over windows, so each window's scores count one part in so many."""
    w = len(rows)
    error = None
    if rows[0].jackknife is not None or rows[0].gap is not None or any(r.note for r in rows):
        spread = None
        if rows[0].jackknife is not None:
            spread = np.concatenate([_jackknife_error(r.jackknife) for r in rows if r.jackknife is not None]) / w
        gaps = [r.gap for r in rows if r.gap is not None]
        error = Error(spread, max(gaps) if gaps else None, next((r.note for r in rows if r.note), ""))
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
        scores=np.concatenate([r.scores for r in rows]) / w,
        target=rows[0].target,
        value=float(np.mean([r.value for r in rows])),
        method=a.info.name,
        version=a.info.version,
        settings=settings_dict(a.settings),
        seed=seed,
        signed=a.settings.signed,
        cost=cost,
        provenance=_provenance(model, rows[0].via),
        error=error,
        prediction=dict(model.prediction(np.mean([r.logits for r in rows], 0)).probabilities),
    )


def _jackknife_error(left_out: Float[np.ndarray, "left_out unit"]) -> Float[np.ndarray, " unit"]:
    n = len(left_out)
    return np.sqrt((n - 1) / n * ((left_out - left_out.mean(0)) ** 2).sum(0))


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
        attention={"own": own, "interface": "captured (eager)", "output": "eager"}[via],
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


def attend(
    model: Model,
    text: Any,
    *,
    pair: str | None = None,
    reply: str | None = None,
    units: Literal["word", "token", "sentence"] = "word",
    overflow: Overflow = "error",
    attention_via: Via = "auto",
) -> AttentionMaps:
    """The attention of every layer and head on one text, as arrays; sub-words merged into words.

    For an encoder-decoder, ``reply`` is the decoder's text, and there are three kinds of maps: encoder, decoder, cross.

    >>> import whence
    >>> maps = whence.attend(whence.load("sentiment"), "not bad")
    >>> bool(abs(maps.weights["encoder"].sum(-1) - 1).max() < 1e-5)
    True
    """
    if overflow == "window":
        raise InputError("attention maps are of one run; overflow is 'error' or 'truncate'.")
    passage = text if isinstance(text, Passage) else model.encode(text, pair, units=units, reply=reply, overflow=overflow)
    source = torch.from_numpy(membership(passage, units))[None].to(model.device)
    start, side = _decoder_side(model, passage)
    answer = None if side is None else torch.from_numpy(membership(side, units, before=1))[None].to(model.device)
    t = trace(
        model,
        [passage],
        needs=Needs.NOTHING,
        reducer=ToUnits(source.to(model.dtype), None if answer is None else answer.to(model.dtype)),
        attention_via=attention_via,
    )
    own = axis_of(passage, units)
    replied = own if side is None else axis_of(side, units, before=(start,))
    return AttentionMaps(
        passage=passage,
        weights={k: np.stack([m[0].float().cpu().numpy() for m in maps]) for k, maps in t.attentions.items()},
        from_axis={k: own if k == "encoder" or side is None else replied for k in t.attentions},
        to_axis={k: replied if k == "decoder" and side is not None else own for k in t.attentions},
        modules={k: tuple(layer.module for layer in layers) for k, layers in t.layers.items()},
    )


def _decoder_side(model: Model, passage: Passage) -> tuple[str, Passage | None]:
    """What stands on the decoder's side: its start token, and the reply (nothing, or a classifier's own text, moved on by one)."""
    if not model.is_encoder_decoder:
        return "", None
    start = str(model.tokenizer.convert_ids_to_tokens(int(model.decoder_start)))
    if model.task == "classification":
        keep = np.arange(len(passage) - 1)
        moved = replace(
            passage,
            ids=passage.ids[keep],
            tokens=passage.tokens[:-1],
            spans=passage.spans[keep],
            parts=passage.parts[keep],
            unit_of=passage.unit_of[keep],
        )
        return start, moved
    empty = replace(passage, ids=passage.ids[:0], tokens=(), spans=passage.spans[:0], parts=passage.parts[:0], unit_of=passage.unit_of[:0])
    if passage.reply is None:
        return start, empty
    side = passage.reply
    keep = np.flatnonzero(~side.special)
    return start, replace(
        side,
        ids=side.ids[keep],
        tokens=tuple(side.tokens[i] for i in keep),
        spans=side.spans[keep],
        parts=side.parts[keep],
        unit_of=side.unit_of[keep],
    )
