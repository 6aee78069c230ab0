"""Cost before work: how many passes a run will take, and how long.

Each method declares its passes (``passes(units)``), the evidence follows from the number of random
rankings and steps, and one pass of the model is timed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from whence.core.durations import precise, spoken
from whence.core.errors import Unsupported
from whence.core.passage import Passage
from whence.core.registry import GRADIENTS, Needs, Passes
from whence.explaining.job import Job, MethodCall
from whence.explaining.outside import usual_removals
from whence.games.game import rows_at_once
from whence.games.removals import chosen_removal
from whence.metrics.evidence import control_passes, ranking_passes
from whence.models.model import Model

# of the passes to come: the batch that is timed is no larger, and is run twice
SHARE_OF_TIMING = 0.01
# a forward pass multiplies and adds once for each parameter and token
OPERATIONS = 2
# operations a second of the machine that default plans are made for: two ordinary cores
NOMINAL_RATE = 1e11


@dataclass(frozen=True)
class Forecast:
    """What a run will cost, in passes; a backward pass counts as two.

    ``trace`` is the one pass that all methods share that look inside the model. ``methods`` holds
    what each method adds to that and to the methods before it: masks that several of them draw are
    counted with the first. None stands for a method that does not tell. ``evidence`` counts the
    curves of the random rankings and of each method's.
    ``plan`` says what was made smaller, in words, and is empty where nothing was. ``peak_bytes`` is
    the most memory that the process will take for the run, beside the model; None where it was not
    asked for.

    >>> forecast = Forecast(Passes(1, 1), {"gradient-l2": Passes(), "lime": Passes(200)}, 640)
    >>> forecast.passes, forecast.of_methods
    (843, 203)
    """

    trace: Passes = field(default_factory=Passes)
    methods: Mapping[str, Passes | None] = field(default_factory=dict)
    evidence: int = 0
    seconds_per_pass: float | None = None
    plan: str = ""
    peak_bytes: int | None = None

    @property
    def of_methods(self) -> int:
        """The passes of all methods, with the trace that they share."""
        own = [passes.weight for passes in self.methods.values() if passes is not None]
        return self.trace.weight + sum(own)

    @property
    def passes(self) -> int:
        """All passes."""
        return self.of_methods + self.evidence

    @property
    def seconds(self) -> float | None:
        """How long they will take, where a pass was timed."""
        if self.seconds_per_pass is None:
            return None
        return self.passes * self.seconds_per_pass

    @property
    def at_most(self) -> bool:
        """Whether some method may stop sooner."""
        return any(passes.at_most for passes in self.methods.values() if passes is not None)

    @property
    def unknown(self) -> list[str]:
        """The methods that do not tell what they need."""
        return [name for name, passes in self.methods.items() if passes is None]

    def by_step(self) -> dict[str, int]:
        """The passes of each step of the run."""
        steps = {"trace": self.trace.weight}
        for name, passes in self.methods.items():
            steps[name] = 0 if passes is None else passes.weight
        return steps | {"evidence": self.evidence}

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        by_method = {}
        for name, passes in self.methods.items():
            by_method[name] = None if passes is None else asdict(passes)
        return {
            "passes": self.passes,
            "seconds": self.seconds,
            "seconds_per_pass": self.seconds_per_pass,
            "at_most": self.at_most,
            "trace": asdict(self.trace),
            "methods": by_method,
            "evidence": self.evidence,
            "plan": self.plan,
            "peak_bytes": self.peak_bytes,
        }

    def __str__(self) -> str:
        """Said before a work is begun; "up to" where a method may stop sooner.

        ``up to about 1,200 passes, 12 s (one pass: 10 ms): methods 800, evidence 400; not known of
        mine``
        """
        bound = "up to about" if self.at_most else "about"
        words = f"{bound} {self.passes:,} passes"
        if self.seconds is not None and self.seconds_per_pass is not None:
            one = precise(self.seconds_per_pass)
            words += f", {spoken(self.seconds)} (one pass: {one})"
        words += f": methods {self.of_methods:,}, evidence {self.evidence:,}"
        if self.unknown:
            words += f"; not known of {', '.join(self.unknown)}"
        return f"{words}. {self.plan}".strip()


def forecast_of(job: Job, passage: Passage, added: int = 0) -> Forecast:
    """What a job will cost on a passage that fits the model; nothing is run for it.

    ``added`` are attributions from elsewhere, which are judged as well.
    """
    return _counted(job, passage, added)[0]


def masks_of(job: Job, passage: Passage, added: int = 0) -> dict[str, int]:
    """How many masks the game of each removal will have run, as far as methods tell."""
    return _counted(job, passage, added)[1]


def _counted(job: Job, passage: Passage, added: int) -> tuple[Forecast, dict[str, int]]:
    """The passes of a job, and its masks by removal."""
    units = len(passage.unit_spans)
    targets = len(job.request.targets)
    methods: dict[str, Passes | None] = {}
    for call in job.looking:
        declared = declared_passes(call, units)
        methods[call.name] = declared and _times(declared, targets)

    masks = _Masks(job.model, units)
    for call in job.playing:
        declared = declared_passes(call, units)
        methods[call.name] = declared and masks.added_by(call, declared)
    evidence = 0
    if job.request.evidence:
        rankings = targets * (len(methods) + added)
        evidence = masks.added_by_evidence(job.plan.rankings, job.plan.steps, rankings)
    return Forecast(_trace_of(job), methods, evidence), masks.by_removal


def _trace_of(job: Job) -> Passes:
    if not job.looking:
        return Passes()
    backwards = len(job.request.targets) if job.needs & GRADIENTS else 0
    return Passes(forwards=1, backwards=backwards)


def declared_passes(call: MethodCall, units: int) -> Passes | None:
    """What a method says that it needs beyond the trace; None if it does not say.

    A method that only looks at the trace needs nothing else.
    """
    if hasattr(call.settings, "passes"):
        return call.settings.passes(units)
    if call.needs & (Needs.GAME | Needs.RERUNS | Needs.ATTENTION_GRAPH):
        return None
    return Passes()


def _times(passes: Passes, targets: int) -> Passes:
    return Passes(targets * passes.forwards, targets * passes.backwards, passes.at_most)


class _Masks:
    """The masks that the games will have run, by removal: no more than there are."""

    def __init__(self, model: Model, units: int) -> None:
        self.model = model
        self.units = units
        self.by_removal: dict[str, int] = {}
        self.by_pool: dict[tuple[str, str], int] = {}

    def added_by(self, call: MethodCall, declared: Passes) -> Passes:
        """What a method adds; of a pool, only what those before it did not draw."""
        try:
            removal = chosen_removal(self.model, call.settings.removal)
        except Unsupported:
            return Passes()
        new = declared.forwards
        if declared.pool:
            drawn = self.by_pool.get((removal, declared.pool), 0)
            self.by_pool[removal, declared.pool] = max(drawn, new)
            new = max(0, new - drawn)
        return Passes(self._add(removal, new), at_most=declared.at_most)

    def added_by_evidence(self, rankings: int, steps: int, judged: int) -> int:
        """What the random rankings add, and those of so many attributions."""
        try:
            removals = usual_removals(self.model)
        except Unsupported:
            return 0
        each = control_passes(self.units, rankings, steps)
        each += judged * ranking_passes(self.units, steps)
        return sum(self._add(removal, each) for removal in removals)

    def _add(self, removal: str, masks: int) -> int:
        """So many more masks, and the whole text when the game begins; in passes."""
        before = self.by_removal.get(removal, 0)
        whole_text = 1
        after = min(2**self.units, max(before, whole_text) + masks)
        self.by_removal[removal] = after
        passes_each = 2 if removal.startswith("infill") else 1
        return passes_each * (after - before)


def together(forecasts: Sequence[Forecast]) -> Forecast:
    """The forecast of several texts, or of the windows of one."""
    methods: dict[str, Passes | None] = {}
    for forecast in forecasts:
        for name, passes in forecast.methods.items():
            methods[name] = _sum(methods.get(name, Passes()), passes)
    trace = Passes()
    for forecast in forecasts:
        trace = _sum(trace, forecast.trace) or trace
    evidence = sum(forecast.evidence for forecast in forecasts)
    return Forecast(trace, methods, evidence)


def _sum(one: Passes | None, other: Passes | None) -> Passes | None:
    if one is None or other is None:
        return None
    return Passes(
        one.forwards + other.forwards,
        one.backwards + other.backwards,
        one.at_most or other.at_most,
    )


def timed_pass(job: Job, passage: Passage, passes: int) -> float:
    """The seconds of one pass among many, measured on the unperturbed text.

    Games run batches, in which a pass costs less than alone; so a batch is timed, as large as a
    small part of the ``passes`` to come. Its first run is slow and does not count. A target that
    the model does not have is an error here, before any forecast is told.
    """
    model = job.model
    copies = 1
    if model.shares_batches:
        in_a_batch = min(rows_at_once(model, passage), job.room.game_tokens // len(passage))
        copies = max(1, min(in_a_batch, int(SHARE_OF_TIMING * passes)))
    logits = model.logits([passage] * copies)
    for target in job.request.targets:
        model.resolve(target, logits[0], passage)
    begun = time.perf_counter()
    model.logits([passage] * copies)
    return (time.perf_counter() - begun) / copies


def nominal_seconds(model: Model, passage: Passage, passes: int) -> float:
    """How long so many passes take on a nominal machine: the same number on every real one."""
    operations = OPERATIONS * parameters_of(model) * len(passage)
    return passes * operations / NOMINAL_RATE


def parameters_of(model: Model) -> int:
    """The parameters that every token is multiplied with: all but the input embeddings."""
    embedded: set[int] = set()
    if model.embedded_ids is not None:
        embedded = {id(p) for p in model.input_embeddings.parameters()}
    others = [p.numel() for p in model.hf.parameters() if id(p) not in embedded]
    return sum(others)
