"""Train sparse autoencoders: several on one pass over the activations of a corpus.

Whatever ends it, the same call goes on where it was: the cache keeps its shards, a checkpoint keeps
every number that training changes, and the rows of each step follow from the step alone. So the
weights are those of a training that was never interrupted, to the last bit.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import count, product
from math import sqrt
from pathlib import Path
from typing import Any, TypeGuard

import torch

from whence import __version__
from whence.core.errors import InputError, LoadError
from whence.core.features import About
from whence.core.features_quality import Quality
from whence.core.once import once
from whence.core.progress import Step
from whence.core.provenance import Provenance
from whence.core.writing import json_text, remove_unfinished, write_json, write_text
from whence.features.autoencoder import Autoencoder
from whence.features.cache import Cache, Moments, fill, open_cache
from whence.features.card import card
from whence.features.checkpoint import NAME as CHECKPOINT
from whence.features.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from whence.features.corpus import LENGTH, Corpus, Piece, open_corpus
from whence.features.fitting import Report, State, begin, finished, step
from whence.features.forecast import Forecast, asleep, should_centre
from whence.features.order import Rows
from whence.features.processes import Processes, processes
from whence.features.quality import TOKENS, held_out_pieces, quality, usage
from whence.features.saving import load, save
from whence.features.settings import Settings, Statistics
from whence.features.timing import seconds_of_a_step, seconds_of_measuring
from whence.features.variants import variant_named
from whence.models.blocks import block_at, side_of
from whence.models.model import Model

REQUEST = "request.json"
METRICS = "metrics.json"
CARD = "README.md"
ACTIVATIONS = "activations"
SPARSITY = 4.0  # λ, where none is given
K = 32
FEWEST_STEPS = 1000
POINTS = 100  # of the history of a training
CHECKPOINT_SECONDS = 60.0
MOST_DIFFERENCES = 5


@dataclass(frozen=True, eq=False)
class Trained:
    """An autoencoder with its quality, and the folder where both are."""

    autoencoder: Autoencoder
    quality: Quality
    folder: Path


@dataclass(frozen=True)
class Request:
    """Everything that the weights depend on. A training is continued only if this is the same."""

    model: str
    fingerprint: str
    layer: int
    kind: str
    data: str
    documents: int
    rows: int
    length: int
    special: bool
    tokens: int | None
    dtype: str
    centre: bool | None
    arms: tuple[dict[str, Any], ...]

    @property
    def digest(self) -> str:
        """Short, and another one for any other request."""
        written = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(written.encode()).hexdigest()[:16]


def train(
    model: Model,
    layer: int,
    data: Any,
    *,
    out: str | Path,
    variant: str = "relu",
    size: int | Sequence[int] = 4096,
    sparsity: float | Sequence[float] | None = None,
    k: int | Sequence[int] | None = None,
    seeds: int | Sequence[int] = 0,
    steps: int | None = None,
    batch: int = 4096,
    learning_rate: float = 1e-3,
    tokens: int | None = None,
    text: str | None = None,
    kind: str | None = None,
    length: int = LENGTH,
    special: bool | None = None,
    centre: bool | None = None,
    dtype: str = "float32",
    cache: str | Path | None = None,
    restart: bool = False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    held_out: int = TOKENS,
    progress: Callable[[Step], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[Trained, ...]:
    """Train an autoencoder for each size, λ (or k) and seed, all on the same rows in one pass.

    ``data`` is a file, a folder or a list of texts; every twentieth document is held out, and the
    quality is measured there. ``out`` gets the weights, the description, the metrics and a card;
    of several, each in a folder of its own. ``cache`` is where activations are kept; trainings
    that name the same one share them. ``special`` says whether special tokens are learned from:
    unless it is said, they are by a model that reads both ways, whose special tokens hold what it
    knows of a text. ``centre`` takes the mean activation away; unless it is said, where features
    would be dead without that. ``held_out`` is the number of held-out tokens that quality is
    measured on. ``stop`` is asked after each step; where it says so, a checkpoint
    is written and KeyboardInterrupt raised.

    >>> import tempfile, whence
    >>> texts = ["It was a dark night.", "The sea was calm and the wind was low."] * 4
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (one,) = train(whence.load("writer"), 2, texts, out=folder, size=8, steps=3, batch=16)
    ...     one.autoencoder.size, one.quality.documents
    (8, 1)
    """
    block_at(model, layer, kind)
    folder = _made(Path(out))
    together = processes()
    say = progress if progress is not None and together.is_first else _say_nothing
    corpus = open_corpus(data, text=text)
    learns_special = (not model.is_causal) if special is None else special
    opened = partial(
        open_cache,
        model,
        corpus,
        layer,
        folder / ACTIVATIONS if cache is None else cache,
        kind=kind,
        length=length,
        special=learns_special,
        tokens=tokens,
        dtype=dtype,
    )
    kept = together.first_then_others(opened)
    if kept.rows < batch:
        raise InputError(
            f"the corpus {corpus.name} has {kept.rows:,} tokens to learn from, and a batch has "
            f"{batch:,}: take a longer corpus, or a batch of at most {kept.rows:,} (--batch)."
        )
    if steps is None:
        steps = max(FEWEST_STEPS, kept.rows // batch)
    arms = arms_of(
        variant,
        _several(size),
        _several(sparsity),
        _several(k),
        _several(seeds),
        steps=steps,
        batch=batch,
        learning_rate=learning_rate,
    )
    request = Request(
        model=model.name,
        fingerprint=model.fingerprint,
        layer=layer,
        kind=side_of(model, kind),
        data=corpus.digest,
        documents=corpus.number,
        rows=kept.rows,
        length=length,
        special=learns_special,
        tokens=tokens,
        dtype=dtype,
        centre=centre,
        arms=tuple(arm.to_dict() for arm in arms),
    )
    if together.is_first:
        _check_same(folder, request, restart)
    together.wait()
    done = _already(folder, arms)
    if done is not None:
        return done

    if together.is_first:
        fill(kept, partial(_tell_activations, say, stop))
    together.wait()
    if not together.is_first:
        kept = opened()  # which now knows every shard
    work = _Work(model, corpus, kept, folder, request, arms, together, say, stop, held_out)
    return work.carry_out(checkpoint_seconds)


def _say_nothing(_step: Step) -> None:
    """Of several processes that share a batch, the first tells of progress."""


def arms_of(
    variant: str,
    sizes: Sequence[int],
    sparsities: Sequence[float],
    ks: Sequence[int],
    seeds: Sequence[int],
    *,
    steps: int,
    batch: int,
    learning_rate: float,
) -> list[Settings]:
    """The settings of every arm.

    >>> arms = arms_of("topk", [64], [], [8, 16], [0], steps=9, batch=4, learning_rate=1e-3)
    >>> [arm_name(arm) for arm in arms]
    ['topk-64-k8-seed0', 'topk-64-k16-seed0']
    """
    by_k = variant_named(variant).needs_k
    if by_k and sparsities:
        raise InputError(f"{variant} is told how many features are active, k, and no sparsity.")
    if not by_k and ks:
        raise InputError(f"{variant} is told its sparsity, λ, and no k.")
    arms = []
    for size, dose, seed in product(
        sizes, (ks or [K]) if by_k else (sparsities or [SPARSITY]), seeds
    ):
        arms.append(
            Settings(
                variant,
                size=size,
                sparsity=None if by_k else float(dose),
                k=int(dose) if by_k else None,
                seed=seed,
                steps=steps,
                batch=batch,
                learning_rate=learning_rate,
                dead_after=max(batch, min(1_000_000, steps * batch // 10)),
            )
        )
    names = [arm_name(arm) for arm in arms]
    if len(set(names)) < len(names):
        raise InputError(f"two arms are the same: {', '.join(names)}.")
    return arms


def arm_name(arm: Settings) -> str:
    """What tells an arm apart from the others of its training."""
    dose = f"k{arm.k}" if arm.k is not None else f"l{arm.sparsity:g}"
    return f"{arm.variant}-{arm.size}-{dose}-seed{arm.seed}"


def _tell_activations(
    say: Callable[[Step], None], stop: Callable[[], bool], done: int, of: int
) -> None:
    say(Step(f"activations of {done:,} of {of:,} tokens", done, of))
    if stop():
        raise KeyboardInterrupt


def _several(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, Sequence) else [value]


@dataclass(eq=False)
class _Work:
    """A training that is to be done, or to be gone on with."""

    model: Model
    corpus: Corpus
    cache: Cache
    folder: Path
    request: Request
    arms: list[Settings]
    together: Processes
    say: Callable[[Step], None]
    stop: Callable[[], bool]
    held_out: int

    def carry_out(self, checkpoint_seconds: float) -> tuple[Trained, ...]:
        """Steps, as far as they are left; then what was trained is measured and saved."""
        self.say(Step("looking at the activations"))
        moments = self.cache.moments()
        rows = Rows(self.cache, self.arms[0].batch)
        checkpoint = read_checkpoint(self.folder, self.arms, self.request.digest)
        if checkpoint is None:
            checkpoint = self._begun(moments, rows)
        self._learn(checkpoint, rows, checkpoint_seconds)
        if not self.together.is_first:
            return ()
        return self._end(checkpoint, moments)

    def _begun(self, moments: Moments, rows: Rows) -> Checkpoint:
        """First states, after a forecast of what they will come to."""
        some = self.cache.states(0)
        centred = self.request.centre
        if centred is None:
            centred = should_centre(some, moments)
        dim = len(moments.mean)
        # each arm has statistics of its own, as no two tensors of a checkpoint may share memory
        states = [begin(arm, dim, statistics_of(moments, centred)) for arm in self.arms]
        tried = [begin(arm, dim, statistics_of(moments, centred)) for arm in self.arms]
        numbers = count()

        def one() -> None:
            batch = self.together.share(rows.at(next(numbers)))
            for state, arm in zip(tried, self.arms, strict=True):
                step(state, arm, batch, self.together.group)

        self.say(Step("timing some steps"))
        seconds = seconds_of_a_step(one, self.arms[0].steps) * self.arms[0].steps
        measuring = 0.0
        if self.together.is_first:
            measuring = self._seconds_of_measuring(tried, moments)
        parameters = sum(value.numel() for state in states for value in state.parameters.values())
        forecast = Forecast(
            rows=self.cache.rows,
            ratio=moments.ratio,
            asleep=asleep(some),
            asleep_centred=asleep(some, moments.mean),
            centred=centred,
            seconds=seconds,
            bytes_of_activations=sum(f.stat().st_size for f in self.cache.folder.iterdir()),
            bytes_of_training=3 * 4 * parameters,
            seconds_of_measuring=measuring,
        )
        self.say(Step(str(forecast), 0, self.arms[0].steps, forecast))
        if self.together.is_first:
            write_json(self.folder / "forecast.json", forecast.to_dict())
        return Checkpoint(states, [[] for _ in self.arms])

    def _seconds_of_measuring(self, tried: Sequence[State], moments: Moments) -> float:
        """Of all arms, from the first directions of one of each size."""
        by_size: dict[int, float] = {}
        for state, arm in zip(tried, self.arms, strict=True):
            if arm.size in by_size:
                continue
            self.say(Step(f"timing the measuring of quality, of {arm.size:,} features"))
            autoencoder = finished(state, arm, self._about(arm, state.statistics))
            active = arm.k or len(moments.mean) // 4
            by_size[arm.size] = seconds_of_measuring(
                self.model, autoencoder, self.cache, moments, self.pieces, active
            )
        return sum(by_size[arm.size] for arm in self.arms)

    @once
    def pieces(self) -> list[Piece]:
        """The held-out passages that every arm is measured on."""
        return held_out_pieces(self.model, self.corpus, self.request.length, self.held_out)

    def _learn(self, checkpoint: Checkpoint, rows: Rows, checkpoint_seconds: float) -> None:
        """The steps that are left."""
        steps = self.arms[0].steps
        written = time.monotonic()
        pace = _Pace(self.arms[0].batch)
        every = max(1, steps // POINTS)
        for number in range(checkpoint.states[0].steps, steps):
            batch = self.together.share(rows.at(number))
            reports = []
            for state, arm in zip(checkpoint.states, self.arms, strict=True):
                reports.append(step(state, arm, batch, self.together.group))
            if number % every == 0 or number == steps - 1:
                for history, report in zip(checkpoint.history, reports, strict=True):
                    history.append({"step": number, **asdict(report)})
            self.say(Step(_words(number + 1, steps, reports, pace.rate()), number + 1, steps))
            stops = self.together.any(self.stop())
            is_time = time.monotonic() - written >= checkpoint_seconds
            if number == steps - 1 or stops or is_time:
                if self.together.is_first:
                    write_checkpoint(self.folder, checkpoint, self.request.digest)
                written = time.monotonic()
            if stops and number < steps - 1:
                raise KeyboardInterrupt

    def _end(self, checkpoint: Checkpoint, moments: Moments) -> tuple[Trained, ...]:
        """Save each arm, then measure it; the checkpoint goes last, so that nothing is lost before.

        Weights are there before anything is measured: measuring may take longer than the steps.
        """
        raw = []
        for number, (state, arm) in enumerate(zip(checkpoint.states, self.arms, strict=True)):
            raw.append(finished(state, arm, self._about(arm, state.statistics)))
            folder = folder_of(self.folder, self.arms, arm)
            save(raw[-1], folder)
            write_json(folder / "history.json", checkpoint.history[number])
        trained = []
        for number, arm in enumerate(self.arms):
            others = [
                (self.arms[i].seed, raw[i]) for i in range(len(raw)) if self._differ_in_seed(i, arm)
            ]
            trained.append(self._measured(arm, raw[number], moments, others))
        (self.folder / CHECKPOINT).unlink(missing_ok=True)
        return tuple(trained)

    def _measured(
        self,
        arm: Settings,
        autoencoder: Autoencoder,
        moments: Moments,
        others: Sequence[tuple[int, Autoencoder]],
    ) -> Trained:
        """An arm with its quality, saved with what was seen of its features."""
        name = f"{arm_name(arm)}: " if len(self.arms) > 1 else ""
        counting = f"{name}the weights are written; counting how often features are active"
        measuring = f"{name}measuring its quality beside components, directions and neurons"
        used = usage(autoencoder, self.cache, tell=partial(self._tell, counting, "tokens"))
        peak = tuple(float(value) for value in used.peak)
        autoencoder = replace(autoencoder, about=replace(autoencoder.about, peak=peak))
        measured = quality(
            self.model,
            autoencoder,
            self.corpus,
            self.cache,
            moments,
            used=used,
            others=others,
            pieces=self.pieces,
            tell=partial(self._tell, measuring, "held-out tokens"),
        )
        folder = folder_of(self.folder, self.arms, arm)
        save(autoencoder, folder, {"frequency": used.frequency})
        write_text(folder / CARD, card(autoencoder, measured))
        write_json(folder / METRICS, measured.to_dict())  # its being there says: all is done
        return Trained(autoencoder, measured, folder)

    def _tell(self, work: str, things: str, done: int, of: int) -> None:
        self.say(Step(f"{work}, {done:,} of {of:,} {things}", done, of))

    def _differ_in_seed(self, number: int, arm: Settings) -> bool:
        other = self.arms[number]
        return other.seed != arm.seed and replace(other, seed=arm.seed) == arm

    def _about(self, arm: Settings, statistics: Statistics) -> About:
        return About(
            model=self.model.name,
            fingerprint=self.model.fingerprint,
            layer=self.request.layer,
            kind=self.request.kind,
            variant=arm.variant,
            size=arm.size,
            dim=len(statistics.centre),
            settings={"centred": bool(statistics.centre.any())},
            data={
                "name": self.corpus.name,
                "digest": self.corpus.digest,
                "documents": self.corpus.number,
                "tokens": self.cache.rows,
                "length": self.request.length,
                "special": self.request.special,
                "provenance": Provenance.of(self.model, "own", "safetensors").to_dict(),
            },
            version=__version__,
        )


def statistics_of(moments: Moments, centred: bool) -> Statistics:
    """Rows are scaled so that their mean length is √dim, after centring if that is asked for."""
    dim = len(moments.mean)
    length = moments.centred_length if centred else moments.length
    if length == 0:
        raise InputError("all activations are the same: there is nothing to learn from them.")
    centre = moments.mean if centred else torch.zeros_like(moments.mean)
    return Statistics(centre.float(), sqrt(dim) / length)


@dataclass
class _Pace:
    """Rows a second, over the last steps."""

    batch: int
    first: float | None = None
    steps: int = 0

    def rate(self) -> float | None:
        """Told after each step; None after the first."""
        now = time.monotonic()
        if self.first is None:
            self.first = now
            return None
        self.steps += 1
        return self.steps * self.batch / max(1e-9, now - self.first)


def _words(done: int, of: int, reports: Sequence[Report], rate: float | None) -> str:
    """A line about a step: of the first arm, where there are several."""
    one = reports[0]
    words = (
        f"step {done:,} of {of:,}: loss {one.loss:.4g}, L0 {one.l0:.3g}, "
        f"variance explained {one.variance_explained:.3f}, {one.dead:,} dead"
    )
    if len(reports) > 1:
        words += f" (the first of {len(reports)})"
    return words if rate is None else f"{words}, {rate:,.0f} tokens/s"


# ---------------------------------------------------------------------- the folder


def folder_of(folder: Path, arms: Sequence[Settings], arm: Settings) -> Path:
    """Where an arm is saved: the folder itself, where there is only one."""
    return folder if len(arms) == 1 else folder / arm_name(arm)


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(
            f"cannot make the folder {str(folder)!r}: {problem.strerror or problem}."
        ) from problem
    return folder


def _check_same(folder: Path, request: Request, restart: bool) -> None:
    """Note the request, or refuse to go on with another one."""
    remove_unfinished(folder)
    file = folder / REQUEST
    if restart:
        _forget(folder)
    if not file.exists():
        if (folder / METRICS).exists() or (folder / CHECKPOINT).exists():
            raise InputError(
                f"{str(folder)!r} holds another autoencoder: name another folder (--out), or "
                "begin anew with --restart."
            )
        write_json(file, asdict(request))
        return
    try:
        before = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise LoadError(
            f"{str(file)!r} is damaged: {problem}. Begin anew with --restart."
        ) from problem
    now = json.loads(json_text(asdict(request)))
    differences = _differences(before, now)
    if differences:
        left = len(differences) - MOST_DIFFERENCES
        more = f"; and {left} more" if left > 0 else ""
        raise InputError(
            f"the training in {str(folder)!r} was asked for something else. "
            f"{'; '.join(differences[:MOST_DIFFERENCES])}{more}. Ask for the same, name another "
            "folder (--out), or begin anew with --restart."
        )


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs between two requests, in words; of arms, the settings that do.

    >>> _differences({"layer": 2, "arms": [{"k": 4}]}, {"layer": 2, "arms": [{"k": 8}]})
    ['k: 4 there, 8 asked for now']
    """
    told = []
    for name in sorted(now.keys() | before.keys()):
        there, here = before.get(name), now.get(name)
        if there == here:
            continue
        if name != "arms" or not _are_records(there) or not _are_records(here):
            told.append(f"{name}: {_short(there)} there, {_short(here)} asked for now")
        elif len(there) != len(here):
            told.append(f"autoencoders: {len(there)} there, {len(here)} asked for now")
        else:
            for one, other in zip(there, here, strict=True):
                told += _differences(one, other)
    return list(dict.fromkeys(told))


def _are_records(value: Any) -> TypeGuard[list[dict[str, Any]]]:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


def _short(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 60 else f"{shown[:60]}…"


def _forget(folder: Path) -> None:
    """What an earlier training left there; its activations are kept, which others may use."""
    for name in (REQUEST, CHECKPOINT, METRICS):
        (folder / name).unlink(missing_ok=True)
    for arm in folder.iterdir():
        if arm.is_dir() and (arm / METRICS).exists():
            shutil.rmtree(arm)


def _already(folder: Path, arms: Sequence[Settings]) -> tuple[Trained, ...] | None:
    """What was trained before by the same request; None where something is missing."""
    trained = []
    for arm in arms:
        own = folder_of(folder, arms, arm)
        if not (own / METRICS).exists():
            return None
        stored = json.loads((own / METRICS).read_text(encoding="utf-8"))
        trained.append(Trained(load(own), Quality.from_dict(stored), own))
    return tuple(trained)
