"""evaluate: methods × metrics over a data set, with intervals and the random control."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from whence.core.attribution import Attribution
from whence.core.errors import InputError, WhenceError
from whence.core.evaluation import Evaluation
from whence.core.planted import MECHANISMS, PlantedTruth
from whence.core.registry import METRIC_GROUPS, Needs, find_metric
from whence.core.registry import metrics as all_metrics
from whence.core.registry.names import found, not_found
from whence.core.request import AnyTarget, Overflow, Via, targets_of, units_as_given
from whence.core.target import Reading
from whence.core.units import UnitKind
from whence.core.writing import json_text
from whence.explaining.data_labels import Use, labels_met, warn_of_labels
from whence.explaining.data_set import (
    Methods,
    Order,
    carried_out,
    check_can_be_loaded,
    one_column,
    request_of,
)
from whence.explaining.gauge import removal_gauge
from whence.explaining.outside import usual_removals
from whence.explaining.planted import USUAL_TEXTS, joined, planted_of, suite
from whence.explaining.rows import ExplainRows
from whence.explaining.stored_trials import (
    GAUGES,
    PLANTED,
    evaluation_of,
    stored_planted,
    untried,
)
from whence.explaining.trials import (
    RANKINGS,
    READER,
    WORK,
    TrialRows,
    asked_of_trials,
    metric_calls,
    usual_reading,
)
from whence.games.game import check_is_model
from whence.games.removals import chosen_removal
from whence.models.model import Model
from whence.runs.data import Choice, Data, Row, open_data
from whence.runs.kept_rows import KeptRows
from whence.runs.manner import Engine, Manner
from whence.runs.places import Place, place_for
from whence.runs.run import Progress, Run, Stop, check_engine

ROBUSTNESS, BESIDE_ROBUSTNESS = "robustness", "comprehensiveness"
PART = 8  # texts that are done, written and lost together: each takes seconds
MOST_GAUGED = 500  # texts by which the removals are gauged
# what is measured once, as it is said
# Said of what is left to do where an evaluation was ended.
OF_GAUGES = "how far removal leads out of the data"
# Said of what is left to do where an evaluation was ended.
OF_PLANTED = "the methods where the truth is known"
# names, or names with settings
Metrics = Sequence[str] | Mapping[str, Mapping[str, Any]]


def evaluate(
    model: Model,
    data: str | Path | Sequence[Any],
    methods: Methods | None = None,
    metrics: Metrics | None = None,
    *,
    added: Sequence[Attribution] = (),
    out: str | Path | None = None,
    removals: Sequence[str] | None = None,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    id: str | None = None,
    rationale: str | None = None,
    against: str | None = None,
    labels: Mapping[str, str] | None = None,
    split: str | None = None,
    sample: int | None = None,
    limit: int | None = None,
    gold: bool = False,
    target: AnyTarget = None,
    read: Reading | None = None,
    measured_as: Reading | None = None,
    units: UnitKind = "word",
    seed: int = 0,
    overflow: Overflow = "error",
    attention_via: Via = "auto",
    memory: str | int | float | None = None,
    budget: str | int | None = None,
    rankings: int = RANKINGS,
    planted: int = USUAL_TEXTS,
    part: int = PART,
    engine: Engine | None = None,
    workers: int | None = None,
    address: str | None = None,
    again: bool = False,
    mend: bool = False,
    fail_fast: bool = False,
    progress: Progress | None = None,
    foil: str | None = None,
) -> Evaluation:
    """A table of methods × metrics over the texts of a data set, beside a random control.

    Without ``methods`` every one that fits the model is tried, without ``metrics`` every one there
    is; a name may be that of a group (``faithfulness``, ``gold``, ``again``, ``form``). Metrics
    that remove words do so by each of ``removals`` (two by default: ``mask`` and ``delete`` where
    there is a mask token), and read the target as ``measured_as`` says (a probability, where there
    are classes). ``rationale`` names the column of what people marked. Robustness never
    stands without faithfulness: comprehensiveness is added where no such metric was asked for.

    ``added`` are results of other tools (``Attribution.from_scores``), each of which belongs to the
    text that it explains; they are tried beside the methods.

    Intervals are bootstrap over texts; methods are compared text by text, all pairs of a metric
    together. ``out`` keeps everything in a folder, as ``whence.run`` does: the same call again goes
    on where it was ended. The other keywords are those of ``whence.run``. The methods
    are also tried where the truth is known, on ``planted`` texts of each mechanism
    (``whence.planted``; 0 leaves it out): that leads the report.

    >>> import whence
    >>> model = whence.load("sentiment")
    >>> texts = ["a moving and funny film", "not bad at all", "dull , flat and far too long"] * 2
    >>> table = whence.evaluate(model, texts, ["occlusion"], ["deletion"], planted=0)
    >>> [(c.name, c.best.method) for c in table]
    [('deletion (mask)', 'occlusion'), ('deletion (delete)', 'occlusion')]
    """
    check_is_model(model)
    manner = Manner(engine, workers, address, again, mend, fail_fast)
    check_engine(manner)
    if not manner.is_inline:
        check_can_be_loaded(model)
        check_none_added(added)
    foil = one_column(against, foil)
    columns = {"text": text, "pair": pair, "label": label, "id": id, "foil": foil}
    opened = open_data(data, **columns, rationale=rationale, split=split)
    request = request_of(
        model,
        methods,
        targets=targets_of(target, read),
        units=units_as_given(units),
        seed=seed,
        overflow=overflow,
        attention_via=attention_via,
        memory=memory,
        evidence=False,
        budget=budget,
    )
    work = trial_rows(
        ExplainRows(model, request, gold or foil is not None, tuple(added), labels or {}),
        metrics,
        removals,
        measured_as,
        rankings,
    )
    choice = Choice(sample, seed, limit)
    use = use_of_labels_in_trials(work)
    warn_of_labels(labels_met(model, opened, choice, work.explain.labels, use), use)
    options: dict[str, Any] = {"part": part, "planted": planted, "progress": progress}
    with place_for(out) as place:
        return evaluated(work, opened, choice, place, manner, **options)


def evaluated(
    work: TrialRows,
    data: Data,
    choice: Choice,
    place: Place,
    manner: Manner,
    *,
    part: int = PART,
    planted: int = USUAL_TEXTS,
    stop: Stop | None = None,
    progress: Progress | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Evaluation:
    """The evaluation as asked, begun or continued in a place. ``say`` is told of each step."""
    _check_rationale(work, data)
    gold = work.explain.gold
    order = Order(work, WORK, READER, asked_of_trials(work), gold, needs_labels=gold)
    stop = stop or Stop()
    if manner.again:
        for name in (GAUGES, PLANTED):
            place.remove(name)
    run = carried_out(order, data, choice, place, manner, part=part, stop=stop, progress=progress)

    def measure_once() -> None:
        if run.is_complete and not place.has(GAUGES):
            say(OF_GAUGES)
            _gauge(work, run)
        if planted and not _has_planted(place, planted):
            say(OF_PLANTED)
            _try_planted(work, place, planted)

    stop.at_once(measure_once)
    return evaluation_of(run)


def use_of_labels_in_trials(work: TrialRows) -> Use:
    """What labels of the data are there for in an evaluation."""
    return "needed" if work.explain.gold else "kept"


def _check_rationale(work: TrialRows, data: Data) -> None:
    """Refuse metrics that all need what people marked, where nobody marked anything."""
    if data.columns.rationale is None and all(call.needs & Needs.GOLD for call in work.metrics):
        names = ", ".join(call.name for call in work.metrics)
        raise InputError(
            f"{names}: these compare with what people marked, and the data have no column of it: "
            "name it by rationale= (--rationale COLUMN)."
        )


def is_whole(run: Run, planted: int) -> bool:
    """Whether nothing is left to do: neither texts, nor what is measured once for all of them."""
    return run.is_complete and not left_to_measure(run, planted)


def left_to_measure(run: Run, planted: int) -> list[str]:
    """What is measured once for all texts, and is not yet."""
    left = [] if run.place.has(GAUGES) else [OF_GAUGES]
    if planted and not _has_planted(run.place, planted):
        left.append(OF_PLANTED)
    return left


def _gauge(work: TrialRows, run: Run) -> None:
    """Write how far each removal leads out of the data; nothing where it cannot be said."""
    passages = []
    for row in _some_rows(run):
        try:
            passages.append(work.explain.encoded(row))
        except WhenceError:
            continue  # it is listed among the failures
    model, seed = work.explain.model, work.explain.request.seed
    content: dict[str, Any] = {"gauges": [], "problem": ""}
    try:
        gauges = removal_gauge(model, passages, work.removals, seed=seed)
        content["gauges"] = [gauge.to_dict() for gauge in gauges]
    except WhenceError as problem:  # few texts, or a head that reads no vector of the text
        content["problem"] = str(problem)
    run.place.put(GAUGES, json_text(content).encode())


def _some_rows(run: Run) -> list[Row]:
    return KeptRows(run.place)[range(min(run.manifest.rows, MOST_GAUGED))]


def _has_planted(place: Place, texts: int) -> bool:
    """Whether the methods were tried on so many texts of each mechanism, as far as there are."""
    if not place.has(PLANTED):
        return False
    truth, _ = stored_planted(place)
    if truth is None:  # none of the methods can be tried there
        return True
    return _is_of(truth, texts) and not untried(truth)


def _is_of(truth: PlantedTruth, texts: int) -> bool:
    """Whether so many texts of each of its mechanisms were taken, as far as there are."""
    return all(one.texts == min(texts, len(suite(one.name).texts)) for one in truth.mechanisms)


def _try_planted(work: TrialRows, place: Place, texts: int) -> None:
    """Write what the same methods find where the truth is known, or why none can be tried.

    Each mechanism is kept as soon as it is done, and those that are there are not tried again.
    """
    request = work.explain.request
    truth, _ = stored_planted(place)
    if truth is not None and not _is_of(truth, texts):
        truth = None
    for mechanism in MECHANISMS if truth is None else untried(truth):
        try:
            one = planted_of(request.wishes, [mechanism], texts, request.seed, skip_unfit=True)
        except WhenceError as problem:  # methods for other models than those with a planted truth
            place.put(PLANTED, json_text({"problem": str(problem)}).encode())
            return
        truth = one if truth is None else joined(truth, one)
        place.put(PLANTED, json_text(truth.to_dict()).encode())


def wanted_metrics(metrics: Metrics | None) -> Mapping[str, Mapping[str, Any]]:
    """Metrics with their settings. A name may be that of a group: every metric of it.

    >>> list(wanted_metrics(["form", "deletion"]))
    ['compactness', 'deletion']
    """
    if isinstance(metrics, Mapping):
        return metrics
    names = list(all_metrics()) if metrics is None else metrics
    names = [names] if isinstance(names, str) else names
    known = {name: info.aliases for name, info in all_metrics().items()}
    known |= dict.fromkeys(METRIC_GROUPS, ())
    wanted: dict[str, Mapping[str, Any]] = {}
    for name in names:
        if found(str(name), known) is None:
            raise not_found("metric, or group of metrics,", name, known)
        of_group = [other for other, info in all_metrics().items() if info.group == name]
        wanted |= {one: {} for one in of_group or [find_metric(name).name]}
    return wanted


def never_alone(given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What is measured beside metrics that say nothing by themselves.

    An explanation that is always the same is perfectly robust: beside it stands how faithful it is.

    >>> never_alone({"robustness": {}, "compactness": {}}), never_alone({"deletion": {}})
    ({'comprehensiveness': {}}, {})
    """
    infos = [find_metric(name) for name in given]
    is_robustness_there = any(info.name == ROBUSTNESS for info in infos)
    if is_robustness_there and not any(info.group == "faithfulness" for info in infos):
        return {BESIDE_ROBUSTNESS: {}}
    return {}


def check_none_added(added: Sequence[Attribution]) -> None:
    """Results of others are in this process only, and workers do not have them."""
    if added:
        raise InputError(
            "results of other tools are tried in this process: use the engine inline, or leave "
            "them out."
        )


def trial_rows(
    explain: ExplainRows,
    metrics: Metrics | None,
    removals: Sequence[str] | None,
    measured_as: Reading | None,
    rankings: int,
) -> TrialRows:
    """The work of an evaluation, checked before anything is run."""
    if isinstance(removals, str) or (removals is not None and not removals):
        raise InputError(
            f"removals= is a list of names, e.g. ['mask', 'delete'], not {removals!r}."
        )
    if rankings < 1:
        raise InputError(f"a control needs at least one random ranking, not {rankings}.")
    if not explain.request.wishes and not explain.added:
        raise InputError("there are no methods: name some, or leave methods= out for all.")
    given = wanted_metrics(metrics)
    if not given:
        raise InputError("there are no metrics: name some, or leave metrics= out for all.")
    given = {**never_alone(given), **given}
    model = explain.model
    names = usual_removals(model) if removals is None else removals
    chosen = dict.fromkeys(chosen_removal(model, name) for name in names)
    return TrialRows(
        explain,
        metric_calls(given, explain.request.seed),
        tuple(chosen),
        usual_reading(model, measured_as),
        rankings,
    )
