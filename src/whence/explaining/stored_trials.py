"""What the parts of an evaluation hold, made into one table of methods × metrics."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from whence.core.evaluation import (
    MOST_FAILURES,
    Column,
    Evaluation,
    MeanCurves,
    Measured,
    column_of,
)
from whence.core.gauge import Gauge
from whence.core.many import Failure
from whence.core.planted import MECHANISMS, PlantedTruth
from whence.core.registry import Needs, find_metric, settings_of
from whence.core.stored import Stored, parsed_json
from whence.explaining.data_labels import label_lines, labels_in
from whence.explaining.stored_rows import TABLES as TABLES_OF_RUNS
from whence.runs.data import named_row
from whence.runs.places import Place

if TYPE_CHECKING:
    from whence.runs.run import Run

# The tables of an evaluation, for DuckDB. ``rows`` are the run's own, ``parts`` hold a record for
# each row that is done.
TABLES = {
    "texts": """
        select rows.row, rows.number, rows.id, rows.text, rows.pair, rows.label,
               parts.prediction[1].label as predicted,
               parts.prediction[1].probability as probability, parts.target,
               parts.tokens, len(parts.units) as units,
               parts.explaining, parts.backwards, parts.measuring
        from parts join rows using (row)
        where parts.failure is null
    """,
    "values": """
        select row, item.metric, item.removal, item.method, item.value, item.control, item.beaten
        from (select row, unnest("values") as item from parts)
    """,
    "scores": """
        select row, method, position, unit, gold, score
        from (
            select row, result.method as method,
                   unnest(range(len(units))) as position,
                   unnest(units) as unit,
                   unnest(coalesce(gold, list_transform(units, lambda unit: null::boolean)))
                       as gold,
                   unnest(result.scores) as score
            from (select row, units, gold, unnest(results) as result from parts)
        )
    """,
    "curves": """
        select row, curve.method, curve.removal, curve.deletion, curve.insertion
        from (select row, unnest(curves) as curve from parts)
    """,
    "failures": TABLES_OF_RUNS["failures"],
}

# beside the parts: what is measured once, and not for each text
READER_NAME = __name__
FAILED_TEXTS = """
    select rows.number, rows.id, failure.kind, failure.message
    from parts join rows using (row)
    where failure is not null
    order by row limit {most}
"""
# baselines that are removals, too; a pad token that the model sees is none
REMOVING_BASELINES = ("mask", "mean", "zero")
GAUGES = "gauges.json"
PLANTED = "planted.json"
QUESTIONS = {"table": "whence.explaining.stored_trials:table_of"}
OVERVIEW = "whence.explaining.stored_trials:evaluation_of"


def table_of(run: Run) -> Any:
    """The table of methods × metrics as Arrow, a row for each cell."""
    from whence.runs.arrow import arrow

    return arrow().Table.from_pylist(evaluation_of(run).records())


def evaluation_of(run: Run) -> Evaluation:
    """The table of what is done of an evaluation, with bootstrap intervals over texts."""
    asked = run.manifest.asked
    methods = [method["name"] for method in asked["methods"]]
    records = [record for record in run.records() if record["failure"] is None]
    added = [result["method"] for record in records for result in record["results"]]
    methods = list(dict.fromkeys([*methods, *added]))
    seed = int(asked["request"]["seed"])
    state = run.state
    forwards = 0
    for record in records:
        forwards += record["explaining"] + record["measuring"] + (record["again"] or 0)
    gauges, no_gauges = _gauges(run.place)
    planted, no_planted = stored_planted(run.place)
    return Evaluation(
        model=asked["model"]["model"],
        data=run.manifest.data["source"],
        texts=state.done - state.failed,
        failed=state.failed,
        seed=seed,
        methods=tuple(methods),
        columns=tuple(_columns(asked, records, methods, seed)),
        curves=tuple(_curves(records, methods, asked["removals"])),
        gauges=gauges,
        planted=planted,
        skipped=_skipped(records, methods),
        notes=(
            *_notes(run, no_gauges, planted, no_planted),
            *_not_measured(asked, records),
            *_repeated(records),
            *_of_labels(run),
        ),
        forwards=forwards,
        failures=failed_texts(run, MOST_FAILURES) if state.failed else (),
    )


def failed_texts(run: Run, most: int) -> tuple[Failure, ...]:
    """The first texts of which nothing came: their rows, their ids, and why."""
    failures = []
    for record in run.query(FAILED_TEXTS.format(most=most)).to_pylist():
        where = named_row(record["number"], record["id"])
        failures.append(Failure(where, f"{record['kind']}: {record['message']}"))
    return tuple(failures)


def _gauges(place: Place) -> tuple[tuple[Gauge, ...], str]:
    """How far removals lead out of the data, or why that could not be measured."""
    if not place.has(GAUGES):
        return (), ""
    stored = Stored(parsed_json(place.get(GAUGES).decode()), f"{place.name}/{GAUGES}")
    gauges = tuple(gauge.record(Gauge) for gauge in stored["gauges"].items())
    return gauges, stored["problem"].text()


def stored_planted(place: Place) -> tuple[PlantedTruth | None, str]:
    """What the methods find where the truth is known, or why none of them could be tried."""
    if not place.has(PLANTED):
        return None, ""
    stored = Stored(parsed_json(place.get(PLANTED).decode()), f"{place.name}/{PLANTED}")
    problem = stored.get("problem")
    if problem is not None:
        return None, problem.text()
    return PlantedTruth.from_dict(stored), ""


def untried(truth: PlantedTruth) -> list[str]:
    """The mechanisms that were left out, as somebody asked to stop."""
    tried = {planted.name for planted in truth.mechanisms}
    return [name for name in MECHANISMS if name not in tried]


def _columns(
    asked: Mapping[str, Any], records: list[dict[str, Any]], methods: list[str], seed: int
) -> list[Column]:
    """A column for each metric and removal that was measured, in the order of the request."""
    by_column: dict[tuple[str, str], dict[int, list[dict[str, Any]]]] = {}
    for place, record in enumerate(records):
        for item in record["values"]:
            key = (item["metric"], item["removal"])
            by_column.setdefault(key, {}).setdefault(place, []).append(item)
    made_by = _removals_of_methods(records)

    columns = []
    for metric in asked["metrics"]:
        info = find_metric(metric["name"])
        for removal in ("", *asked["removals"]):
            by_text = by_column.get((metric["name"], removal))
            if by_text is None:
                continue
            own = _empty(len(records), len(methods))
            control, beaten, spread = own.copy(), own.copy(), own.copy()
            random = np.full(len(records), np.nan)
            for place, items in by_text.items():
                for item in items:
                    if not item["method"]:
                        random[place] = item["value"]
                        continue
                    number = methods.index(item["method"])
                    own[place, number] = item["value"]
                    if item["control"] is not None:
                        control[place, number] = item["control"]
                        beaten[place, number] = item["beaten"]
                        if item.get("spread") is not None:  # parts of before have none
                            spread[place, number] = item["spread"]
            instance = settings_of(info, metric["settings"])
            built_in = {name for name, used in made_by.items() if removal and used == removal}
            columns.append(
                column_of(
                    Measured(
                        metric=metric["name"],
                        version=metric["version"],
                        settings=metric["settings"],
                        better=instance.better,
                        kind=info.group,
                        removal=removal,
                        own=own,
                        random=random,
                        control=control,
                        beaten=beaten,
                        built_in=frozenset(built_in),
                        range=_range(instance, asked),
                        spread=spread,
                    ),
                    methods,
                    seed,
                )
            )
    return columns


def _range(metric: Any, asked: Mapping[str, Any]) -> tuple[float, float]:
    """What a metric can be: of a game it is declared for values between 0 and 1."""
    is_contrast = any(target["against"] is not None for target in asked["request"]["targets"])
    is_share = asked["read"] == "probability" and not is_contrast
    return metric.range if is_share or not metric.needs & Needs.GAME else (-inf, inf)


def _empty(texts: int, methods: int) -> Float[np.ndarray, "text method"]:
    return np.full((texts, methods), np.nan)


def _removals_of_methods(records: list[dict[str, Any]]) -> dict[str, str]:
    """The removal by which each method was made: it plays itself, or starts from a baseline."""
    made_by = {}
    for record in records:
        for result in record["results"]:
            baseline = json.loads(result["settings"]).get("baseline")
            used = result["removal"] or baseline
            if result["removal"] or baseline in REMOVING_BASELINES:
                made_by[result["method"]] = used
    return made_by


def _curves(
    records: list[dict[str, Any]], methods: list[str], removals: list[str]
) -> list[MeanCurves]:
    by_name: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in records:
        for curve in record["curves"]:
            by_name.setdefault((curve["removal"], curve["method"]), []).append(curve)
    means = []
    for removal in removals:
        for method in (*methods, ""):
            every = by_name.get((removal, method))
            if every:
                deletion = np.mean([curve["deletion"] for curve in every], axis=0)
                insertion = np.mean([curve["insertion"] for curve in every], axis=0)
                ends = tuple(deletion.tolist()), tuple(insertion.tolist())
                means.append(MeanCurves(method, removal, *ends, texts=len(every)))
    return means


def _skipped(records: list[dict[str, Any]], methods: list[str]) -> dict[str, str]:
    """Methods without scores on some texts: on how many, and the first reason."""
    reasons: dict[str, list[str]] = {}
    for record in records:
        for reason in record["skipped"]:
            reasons.setdefault(reason["method"], []).append(reason["message"])
    skipped = {}
    for method in methods:
        if method in reasons:
            count, first = len(reasons[method]), reasons[method][0]
            skipped[method] = f"on {count} of {len(records)} texts: {first}"
    return skipped


def _notes(
    run: Run, no_gauges: str, planted: PlantedTruth | None, no_planted: str
) -> tuple[str, ...]:
    """Said of what is not done: texts, the gauges of removals, and mechanisms of planted truth.

    ``Not all texts are done: 3 of 7.``
    """
    notes = []
    if not run.is_complete:
        notes.append(f"Not all texts are done: {run.state.done:,} of {run.state.rows:,}.")
    if no_gauges:
        notes.append(f"How far removal leads out of the data was not measured: {no_gauges}")
    left = [] if planted is None else untried(planted)
    if left:
        notes.append(f"Where the truth is known, these are not tried yet: {', '.join(left)}.")
    if no_planted:
        notes.append(f"No method was tried where the truth is known: {no_planted}")
    return tuple(notes)


def _of_labels(run: Run) -> list[str]:
    """Said where the label of the data is what is explained."""
    return label_lines(labels_in(run), "needed") if run.manifest.asked["gold"] else []


def _not_measured(asked: Mapping[str, Any], records: list[dict[str, Any]]) -> Iterator[str]:
    """Said of metrics that measured nothing, or not all: they would be missed in silence.

    ``Nothing is marked in the data, so auprc could not be measured: rationale= (--rationale COLUMN)
    names the column of what people marked.``
    """
    if not records:
        return
    of_gold = [m["name"] for m in asked["metrics"] if find_metric(m["name"]).needs & Needs.GOLD]
    if of_gold and all(record["gold"] is None for record in records):
        yield (
            f"Nothing is marked in the data, so {', '.join(of_gold)} could not be measured: "
            "rationale= (--rationale COLUMN) names the column of what people marked."
        )
    texts: dict[str, dict[str, int]] = {}  # by metric and method
    reasons: dict[str, str] = {}
    for record in records:
        for what, reason in json.loads(record["unmeasured"] or "{}").items():
            metric, _, method = what.partition(" of ")
            of_metric = texts.setdefault(metric, {})
            of_metric[method] = of_metric.get(method, 0) + 1
            reasons.setdefault(metric, reason)
    for metric, counts in texts.items():
        methods = ", ".join(f"{method} ({count})" for method, count in counts.items())
        yield (
            f"{metric} was not measured of these methods, on so many of {len(records)} texts: "
            f"{methods}. First reason: {reasons[metric]}"
        )


def _repeated(records: list[dict[str, Any]]) -> Iterator[str]:
    """Intervals take texts for independent, and a copy is not.

    Said where texts stand in the data more than once.

    ``2 of 40 texts are copies of others; intervals and verdicts take each for new.``
    """
    copies = len(records) - len({tuple(record["units"]) for record in records})
    if copies:
        are = "are copies of others" if copies > 1 else "is a copy of another"
        yield f"{copies} of {len(records)} texts {are}; intervals and verdicts take each for new."
