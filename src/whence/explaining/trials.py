"""The work of ``whence evaluate``: some rows become what every metric says of every method.

The methods explain a text, and the metrics play on in the same games, so that what one of them
asked the model the others know. One record for each row: the scores of each method, the value of
each metric beside its control, and the curves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool

from whence.core.attribution import Attribution
from whence.core.errors import InputError
from whence.core.passage import Passage
from whence.core.registry import Needs, find_metric, settings_dict, settings_of
from whence.core.target import Reading, Target
from whence.explaining.again import measured_again
from whence.explaining.job import Outcome
from whence.explaining.outside import Games
from whence.explaining.rows import Explained, ExplainRows, asked_of, plain, reason_of
from whence.explaining.rows import opened as rows_opened
from whence.games.protocol import AnyGame
from whence.metrics.again import AgainMetric
from whence.metrics.control import Subject
from whence.metrics.curves import STEPS, Curves, curves
from whence.metrics.rankings import random_rankings, rankings_of
from whence.metrics.several import Candidate, spread_by_chance, values_of_several
from whence.models.model import Model
from whence.runs.arrow import arrow
from whence.runs.data import Row
from whence.trace.memory import give_back_holes

if TYPE_CHECKING:
    import pyarrow as pa

WORK = "whence.explaining.trials:opened"
READER = "whence.explaining.stored_trials"
RANKINGS = 20  # random ones on each text; it is the mean over texts that counts
SHARES = np.linspace(0, 1, STEPS + 1)  # of the units, at which curves of all texts are read
NO_REMOVAL = ""
CONTROL = ""  # as a method: the random rankings
THE_TEXT = 0  # as a part of a passage; a pair is another


@dataclass(frozen=True)
class MetricCall:
    """One metric with its settings, ready to be called."""

    name: str
    version: int
    kind: str
    settings: Any

    @property
    def needs(self) -> Needs:
        """What it is given."""
        return self.settings.needs


def metric_calls(wanted: Mapping[str, Mapping[str, Any]], seed: int) -> tuple[MetricCall, ...]:
    """Metrics by name with settings, ready to be called; a mistyped one is an error here."""
    calls: dict[str, MetricCall] = {}
    for name, given in wanted.items():
        info = find_metric(name)
        instance = settings_of(info, given, seed)
        calls[info.name] = MetricCall(info.name, info.version, info.group, instance)
    return tuple(calls.values())


@dataclass(frozen=True)
class TrialRows:
    """Methods on rows, and metrics on what they say.

    ``removals`` are those that metrics play under, and ``read`` says how the target is read for
    them. ``rankings`` random ones are drawn on each text.
    """

    explain: ExplainRows
    metrics: tuple[MetricCall, ...]
    removals: tuple[str, ...]
    read: Reading
    rankings: int = RANKINGS

    @property
    def of_again(self) -> dict[str, AgainMetric]:
        """The metrics for which explanations are made again, by name."""
        return {call.name: call.settings for call in self.metrics if call.needs & Needs.AGAIN}

    def __call__(self, rows: Sequence[Row], first: int) -> pa.Table:
        """A table with a record for each row; ``first`` is the place of the first of them."""
        _, records = self.tried(rows, first)
        return arrow().Table.from_pylist(records, schema=schema())

    def tried(
        self, rows: Sequence[Row], first: int
    ) -> tuple[list[Explained], list[dict[str, Any]]]:
        """The explanations of the rows, and the records of their trials."""
        give_back_holes()  # which the texts before have left
        explained = self.explain.explained(rows, keep_games=True)
        records = [
            {"row": first + place, **self._record(one)} for place, one in enumerate(explained)
        ]
        self._add_made_again(explained, records)
        return explained, records

    def _record(self, explained: Explained) -> dict[str, Any]:
        outcome = explained.outcome
        if isinstance(outcome, Exception):
            return {"failure": reason_of(None, outcome)}
        if not outcome.attributions:
            name, problem = next(iter(outcome.failed.items()))
            return {"failure": reason_of(name, problem)}
        try:
            return self._tried(explained, outcome)
        except Exception as problem:
            return {"failure": reason_of(None, problem)}

    def _tried(self, explained: Explained, outcome: Outcome) -> dict[str, Any]:
        attributions = outcome.attributions
        first = next(iter(attributions.values()))
        passage = first.passage or explained.passage
        assert passage is not None
        if outcome.games is None:
            raise InputError(
                f"the text has {len(passage)} tokens, more than the model takes at once, and "
                "metrics are for whole texts: --overflow truncate cuts it."
            )
        gold = gold_units(passage, explained.row)
        paid_before = outcome.games.cost.forwards
        values: list[dict[str, Any]] = []
        of_curves: list[dict[str, Any]] = []
        for removal in self.removals:
            game = self._game(outcome.games, removal, first.target)
            subject = Subject(game, gold, self.explain.request.seed)
            values += self._values(subject, attributions, removal)
            of_curves += _curves(subject, attributions, removal, self.rankings)
        removal = self.removals[0]
        subject = Subject(
            self._game(outcome.games, removal, first.target), gold, self.explain.request.seed
        )
        values += self._values(subject, attributions, NO_REMOVAL)
        return {
            "failure": None,
            "skipped": [reason_of(name, problem) for name, problem in outcome.failed.items()],
            "tokens": len(passage),
            "units": list(passage.names),
            "gold": None if gold is None else gold.tolist(),
            "target": first.target.describe(),
            "prediction": [
                {"label": name, "probability": p} for name, p in first.prediction.items()
            ],
            "explaining": outcome.cost.forwards,
            "backwards": outcome.cost.backwards,
            "measuring": outcome.games.cost.forwards - paid_before,
            "results": [_result(attribution) for attribution in attributions.values()],
            "values": values,
            "curves": of_curves,
        }

    def _game(self, games: Games, removal: str, target: Target) -> AnyGame:
        return games.game(removal, replace(target, read=self.read))

    def _values(
        self, subject: Subject, attributions: Mapping[str, Attribution], removal: str
    ) -> list[dict[str, Any]]:
        """Every metric of a removal, or every one that removes nothing, for every method."""
        candidates = [Candidate(a.scores, a.signed) for a in attributions.values()]
        records = []
        for call in self.metrics:
            plays = bool(call.needs & Needs.GAME)
            if call.needs & Needs.AGAIN or plays != bool(removal):
                continue
            if call.needs & Needs.GOLD and not _tells(subject.gold):
                continue
            values = values_of_several(call.settings, call.name, subject, candidates, self.rankings)
            about = {"metric": call.name, "removal": removal}
            for number, method in enumerate(attributions):
                records.append(
                    about
                    | {
                        "method": method,
                        "value": float(values.own[number]),
                        "control": float(values.control[number]),
                        "beaten": float(values.beaten[number]),
                        "spread": float(values.spread[number]),
                    }
                )
            records.append(about | {"method": CONTROL, "value": values.random})
        return records

    def _add_made_again(
        self, explained: Sequence[Explained], records: list[dict[str, Any]]
    ) -> None:
        """Metrics of explanations that are made again, of all rows at once."""
        calls = self.of_again
        places = [place for place, record in enumerate(records) if record["failure"] is None]
        if not calls or not places:
            return
        attributions = []
        for place in places:
            outcome = explained[place].outcome
            assert isinstance(outcome, Outcome)
            attributions.append(outcome.attributions)
        again = measured_again(
            self.explain.model, attributions, calls, self.explain.request, self.rankings
        )
        for place, by_method in zip(places, again.of_texts, strict=True):
            records[place]["values"] += _values_made_again(by_method, calls)
            reasons = {}
            for method, by_metric in by_method.items():
                for metric, measured in by_metric.items():
                    if measured.value is None:
                        reasons[f"{metric} of {method}"] = measured.reason
            records[place]["unmeasured"] = json.dumps(reasons) if reasons else None
        # of all rows together: what is shared is paid once
        records[places[0]]["again"] = again.cost.forwards + again.cost.backwards


def _values_made_again(
    by_method: Mapping[str, Mapping[str, Any]], metrics: Mapping[str, AgainMetric]
) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    controls: dict[str, list[float]] = {}
    for method, by_metric in by_method.items():
        for metric, measured in by_metric.items():
            if measured.value is None:
                continue
            record: dict[str, Any] = {"metric": metric, "removal": NO_REMOVAL, "method": method}
            record["value"] = measured.value
            if len(measured.control):  # else the metric could say nothing of what was drawn
                control = float(measured.control.mean())
                controls.setdefault(metric, []).append(control)
                sign = 1 if metrics[metric].better == "higher" else -1
                ahead = sign * (measured.value - measured.control)
                record["control"] = control
                record["beaten"] = float(((ahead > 0) + (ahead == 0) / 2).mean())
                record["spread"] = spread_by_chance(measured.control)
            records.append(record)
    for metric, means in controls.items():
        about = {"metric": metric, "removal": NO_REMOVAL, "method": CONTROL}
        records.append(about | {"value": float(np.mean(means))})
    return records


def _tells(gold: Bool[np.ndarray, " unit"] | None) -> bool:
    """Whether some units are marked and others are not: else every ranking is as good."""
    return gold is not None and bool(gold.any()) and not bool(gold.all())


def gold_units(passage: Passage, row: Row) -> Bool[np.ndarray, " unit"] | None:
    """The units that have a marked character; None where the data say nothing.

    A rationale marks the text, and not its pair.
    """
    if row.rationale is None:
        return None
    marked = np.zeros(len(passage.units), dtype=bool)
    for number, (part, start, end) in enumerate(passage.unit_spans):
        for first, last in row.rationale:
            marked[number] |= part == THE_TEXT and start < last and first < end
    return marked


def _result(attribution: Attribution) -> dict[str, Any]:
    return {
        "method": attribution.method,
        "signed": attribution.signed,
        "removal": str(attribution.settings.get("removal", "")),
        "settings": json.dumps(plain(dict(attribution.settings))),
        "scores": attribution.scores.tolist(),
    }


# ---------------------------------------------------------------------- curves


def _curves(
    subject: Subject, attributions: Mapping[str, Attribution], removal: str, rankings: int
) -> list[dict[str, Any]]:
    """The curves of each method and of random rankings, read at the same shares of any text."""
    game, seed = subject.game, subject.seed
    orders = [rankings_of(a.scores, game, seed) for a in attributions.values()]
    random = random_rankings(game, rankings, seed).orders
    drawn = curves(game, np.concatenate([*orders, random]))
    records = []
    for number, method in enumerate(attributions):
        records.append(_curve(drawn, slice(number, number + 1), method, removal))
    records.append(_curve(drawn, slice(len(orders), None), CONTROL, removal))
    return records


def _curve(drawn: Curves, rows: slice, method: str, removal: str) -> dict[str, Any]:
    at = drawn.steps / drawn.steps[-1]
    return {
        "method": method,
        "removal": removal,
        "deletion": np.interp(SHARES, at, drawn.deletion[rows].mean(0)).tolist(),
        "insertion": np.interp(SHARES, at, drawn.insertion[rows].mean(0)).tolist(),
    }


# ---------------------------------------------------------------------- what was asked


def asked_of_trials(work: TrialRows) -> dict[str, Any]:
    """What the manifest says: that of the explanations, and the metrics with all settings."""
    metrics = []
    for call in work.metrics:
        settings = plain(settings_dict(call.settings))
        metrics.append({"name": call.name, "version": call.version, "settings": settings})
    return asked_of(work.explain) | {
        "metrics": metrics,
        "removals": list(work.removals),
        "read": work.read,
        "rankings": work.rankings,
    }


def opened(asked: Mapping[str, Any]) -> TrialRows:
    """The work as a worker opens it."""
    explain = rows_opened(asked)
    wanted = {metric["name"]: metric["settings"] for metric in asked["metrics"]}
    return TrialRows(
        explain,
        metric_calls(wanted, explain.request.seed),
        tuple(asked["removals"]),
        asked["read"],
        asked["rankings"],
    )


def schema() -> pa.Schema:
    """The columns of a part."""
    pa = arrow()
    numbers = pa.list_(pa.float64())
    reason = pa.struct([("method", pa.string()), ("kind", pa.string()), ("message", pa.string())])
    share = pa.struct([("label", pa.string()), ("probability", pa.float64())])
    result = pa.struct(
        [
            ("method", pa.string()),
            ("signed", pa.bool_()),
            ("removal", pa.string()),
            ("settings", pa.string()),
            ("scores", numbers),
        ]
    )
    value = pa.struct(
        [
            ("metric", pa.string()),
            ("removal", pa.string()),
            ("method", pa.string()),
            ("value", pa.float64()),
            ("control", pa.float64()),
            ("beaten", pa.float64()),
            ("spread", pa.float64()),
        ]
    )
    curve = pa.struct(
        [
            ("method", pa.string()),
            ("removal", pa.string()),
            ("deletion", numbers),
            ("insertion", numbers),
        ]
    )
    return pa.schema(
        [
            ("row", pa.int64()),
            ("failure", reason),
            ("skipped", pa.list_(reason)),
            ("tokens", pa.int64()),
            ("units", pa.list_(pa.string())),
            ("gold", pa.list_(pa.bool_())),
            ("target", pa.string()),
            ("prediction", pa.list_(share)),
            ("explaining", pa.int64()),
            ("backwards", pa.int64()),
            ("measuring", pa.int64()),
            ("again", pa.int64()),
            ("unmeasured", pa.string()),
            ("results", pa.list_(result)),
            ("values", pa.list_(value)),
            ("curves", pa.list_(curve)),
        ]
    )


def usual_reading(model: Model, asked: Reading | None) -> Reading:
    """How metrics read the target: as a probability, where there are classes.

    A fall of a probability means the same on every text, so that it can be averaged.
    """
    if asked is not None:
        return asked
    has_probabilities = model.kind.has_classes and not model.is_regression
    return "probability" if has_probabilities else "logit"
