"""Results as the parts of a run hold them, made into Attributions and Comparisons again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from whence.core.attribution import Attribution, Cost
from whence.core.comparison import Comparison
from whence.core.passage import Passage
from whence.core.plan import Plan
from whence.runs.data import Row

COSTS = ("forwards", "backwards", "seconds", "peak_bytes", "shared", "saved")

# The tables of a run, for DuckDB. ``rows`` are the run's own, ``parts`` hold a record for each row
# that is done.
TABLES = {
    "texts": """
        select rows.row, rows.number, rows.id, rows.text, rows.pair, rows.label,
               parts.prediction[1].label as predicted,
               parts.prediction[1].probability as probability,
               parts.tokens, len(parts.units) as units,
               parts.forwards, parts.backwards, parts.saved
        from parts join rows using (row)
        where parts.failure is null
    """,
    "results": """
        select row, result.method, result.target, result.value, result.verdict, result.measure,
               result.beaten,
               result.p, result.forwards, result.backwards, result.saved, result.shared,
               result.seconds, result.peak_bytes
        from (select row, unnest(results) as result from parts)
    """,
    "scores": """
        select row, method, target, position, unit, score, standard_error
        from (
            select row, result.method as method, result.target as target,
                   unnest(range(len(units))) as position,
                   unnest(units) as unit,
                   unnest(result.scores) as score,
                   unnest(coalesce(result.standard_error,
                                   list_transform(units, lambda unit: null::double)))
                       as standard_error
            from (select row, units, unnest(results) as result from parts)
        )
    """,
    "failures": """
        select rows.row, rows.number, rows.id, reason.method, reason.kind, reason.message
        from (
            select row, failure as reason from parts where failure is not null
            union all
            select row, unnest(skipped) as reason from parts
        ) join rows using (row)
    """,
}

# What is asked of such a run without SQL: answers that are tables too, and the page of all of it.
QUESTIONS = {
    "words": "whence.explaining.questions:words_of",
    "verdicts": "whence.explaining.questions:verdicts_of",
    "wrong": "whence.explaining.overview:wrong_of",
    "confusion": "whence.explaining.overview:confusion_table",
}
OVERVIEW = "whence.explaining.overview:overview_of"


def comparison_of(record: Mapping[str, Any], row: Row) -> Comparison | None:
    """Everything that was found for a row; None where that is nothing."""
    attributions = attributions_of(record, row)
    if not attributions:
        return None
    seconds = sum(attribution.cost.seconds for attribution in attributions)
    cost = Cost(record["forwards"], record["backwards"], seconds, saved=record["saved"])
    skipped = {reason["method"]: reason["message"] for reason in record["skipped"]}
    plan = _plan_of(record)
    if plan is not None:
        skipped |= plan.left_out
    by_method = {attribution.method: attribution for attribution in attributions}
    return Comparison(by_method, cost, skipped, plan)


def attributions_of(record: Mapping[str, Any], row: Row) -> list[Attribution]:
    """The attributions of a row, in the order in which methods were asked for."""
    if record["failure"] is not None or not record["results"]:
        return []
    passage = _passage_of(record["passage"], row)
    shares = {share["label"]: share["probability"] for share in record["prediction"]}
    # of a single method it is the attribution's own, else the comparison's
    is_alone = len(record["results"]) + len(record["skipped"]) == 1
    plan = record["plan"] if is_alone else None
    return [_attribution(result, passage, shares, plan) for result in record["results"]]


def _passage_of(stored: str, row: Row) -> Passage:
    parts = json.loads(stored)
    parts["text"] = row.text
    choices = () if isinstance(row.pair, str) or row.pair is None else row.pair
    parts["pair"] = None if choices else row.pair
    if choices:
        parts["choices"] = list(choices)
    return Passage.from_dict(parts)


def _attribution(
    result: Mapping[str, Any],
    passage: Passage,
    prediction: Mapping[str, float],
    plan: str | None,
) -> Attribution:
    stored = json.loads(result["rest"])
    stored |= {
        "schema": 1,
        "kind": "attribution",
        "units": list(passage.units),
        "scores": result["scores"],
        "cost": {name: result[name] for name in COSTS},
        "prediction": dict(prediction),
    }
    if plan is not None:
        stored["plan"] = json.loads(plan)
    if stored.get("error"):
        stored["error"]["standard_error"] = result["standard_error"]
    return Attribution.from_dict(stored, passage)


def _plan_of(record: Mapping[str, Any]) -> Plan | None:
    return None if record["plan"] is None else Plan.from_dict(json.loads(record["plan"]))
