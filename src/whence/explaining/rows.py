"""The work of ``whence run``: some rows of a data set become a table of their explanations.

One record for each row: what was read, what the model said, one result for each method, or why
there is none. Everything that an Attribution holds is in it, so that it comes back bit by bit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from whence.core.attribution import Attribution
from whence.core.errors import InputError, LoadError
from whence.core.passage import Passage
from whence.core.provenance import Provenance
from whence.core.registry import find_method, settings_dict
from whence.core.request import Request, Wish
from whence.core.target import Target
from whence.explaining.added import Added
from whence.explaining.data_labels import MAPPING, label_for, mapping_in
from whence.explaining.job import Outcome, job_of
from whence.explaining.run import run
from whence.models.load import load
from whence.models.model import Model
from whence.runs.arrow import arrow
from whence.runs.data import Row

if TYPE_CHECKING:
    import pyarrow as pa

# as the manifest of a run names this work, and the module that reads what it made
WORK = "whence.explaining.rows:opened"
READER = "whence.explaining.stored_rows"
# of a passage, what the rows of the run hold already
IN_ROWS = ("text", "pair", "choices")
# of an attribution, what has a column of its own
IN_COLUMNS = ("schema", "kind", "units", "scores", "cost", "prediction", "plan")


@dataclass(frozen=True, eq=False)
class Explained:
    """A row, its passage unless it has none, and what came of it."""

    row: Row
    passage: Passage | None
    outcome: Outcome | Exception


@dataclass(frozen=True)
class ExplainRows:
    """Methods on rows. With ``gold`` the label that the data give is explained.

    ``added`` are results of others, each of which belongs to the row with its text. ``labels`` says
    which label of the model a label of the data is, where their names differ.
    """

    model: Model
    request: Request
    gold: bool = False
    added: Added = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, rows: Sequence[Row], first: int) -> pa.Table:
        """A table with a record for each row; ``first`` is the place of the first of them."""
        records = []
        for place, explained in enumerate(self.explained(rows)):
            record = record_of(explained.outcome, explained.passage)
            records.append({"row": first + place, **record})
        return arrow().Table.from_pylist(records, schema=schema())

    def explained(self, rows: Sequence[Row], keep_games: bool = False) -> list[Explained]:
        """What came of each row, in order; with its games, where somebody plays on."""
        outcomes: list[Outcome | Exception] = [InputError("never reached")] * len(rows)
        passages: dict[int, Passage] = {}
        for place, row in enumerate(rows):
            try:
                passages[place] = self.encoded(row)
            except Exception as problem:
                outcomes[place] = problem

        for request, places in self._alike(rows, passages):
            of_places = self._outcomes([passages[place] for place in places], request, keep_games)
            for place, outcome in zip(places, of_places, strict=True):
                outcomes[place] = outcome
        return [
            Explained(row, passages.get(place), outcome)
            for place, (row, outcome) in enumerate(zip(rows, outcomes, strict=True))
        ]

    def encoded(self, row: Row) -> Passage:
        """The row as a passage; an error says why it is none."""
        if row.problem is not None:
            raise InputError(row.problem)
        if self.gold and row.label is None:
            raise InputError("the data give no label for this text, and --gold explains it.")
        request = self.request
        pair = request.pair if row.pair is None else row.pair
        return self.model.encode(
            row.text, pair, units=request.units, reply=request.reply, overflow=request.overflow
        )

    def _alike(
        self, rows: Sequence[Row], passages: Mapping[int, Passage]
    ) -> list[tuple[Request, list[int]]]:
        """The rows that share a request: all of them, or those with the same label."""
        if not self.gold:
            return [(self.request, list(passages))] if passages else []
        by_label: dict[tuple[str | None, str | None], list[int]] = {}
        for place in passages:
            by_label.setdefault((rows[place].label, rows[place].foil), []).append(place)
        alike = []
        for places in by_label.values():
            target = self.target_of(rows[places[0]])
            alike.append((replace(self.request, targets=(target,)), places))
        return alike

    def target_of(self, row: Row) -> Target:
        """What is explained of a row: as it was asked for, or the label that the data give."""
        target = self.request.targets[0]
        if not self.gold:
            return target
        target = replace(target, label=self.label_for(row.label))
        return target if row.foil is None else replace(target, against=self.label_for(row.foil))

    def label_for(self, given: str | None) -> str | int | None:
        """A label of the data as a target has it."""
        return label_for(self.model, given, self.labels)

    def _outcomes(
        self, passages: Sequence[Passage], request: Request, keep_games: bool
    ) -> list[Outcome | Exception]:
        """What came of each. Where all together fail, each half is tried, down to single texts."""
        if not passages:
            return []
        try:
            texts = {passage.text for passage in passages}
            added = tuple(a for a in self.added if a.passage and a.passage.text in texts)
            outcomes = run(self.model, passages, request, added=added, keep_games=keep_games)
            return [outcome for (outcome,) in outcomes]
        except Exception as problem:
            if len(passages) == 1:
                return [problem]
        half = len(passages) // 2
        first = self._outcomes(passages[:half], request, keep_games)
        return first + self._outcomes(passages[half:], request, keep_games)


# ---------------------------------------------------------------------- what was asked


def asked_of(work: ExplainRows) -> dict[str, Any]:
    """What the manifest of a run says: the model, the methods with all settings, the request.

    A method that does not fit the model is refused here, before anything is run.
    """
    job = job_of(work.model, work.request)
    for problem in job.unfit.values():
        raise problem
    methods = []
    for call in sorted((*job.looking, *job.playing), key=lambda call: call.name):
        settings = settings_dict(call.settings)
        methods.append({"name": call.name, "version": call.version, "settings": settings})
    provenance = Provenance.of(work.model, attention="").to_dict()
    del provenance["attention"]
    added = [attribution.to_dict() for attribution in work.added]
    digest = hashlib.sha256(json.dumps(added, sort_keys=True).encode()).hexdigest()
    mapped = {MAPPING: dict(work.labels)} if work.labels else {}
    return (
        ({"added": digest} if added else {})
        | mapped
        | {
            "model": provenance,
            "labels": _labels_of(work.model),
            "methods": methods,
            "request": plain(work.request.to_dict()),
            "gold": work.gold,
        }
    )


def _labels_of(model: Model) -> list[str]:
    """The labels by their numbers, of a model that chooses one of them; else none."""
    if not model.kind.has_classes or model.several_labels or model.is_regression:
        return []
    return [model.labels[number] for number in range(len(model.labels))]


def fitting(model: Model, request: Request) -> Request:
    """The request without the methods that do not fit the model."""
    unfit = job_of(model, request).unfit
    wishes = [wish for wish in request.wishes if find_method(wish.method).name not in unfit]
    return replace(request, wishes=tuple(wishes))


def plain(value: Any) -> Any:
    """As JSON gives it back: no tuples."""
    return json.loads(json.dumps(value))


def opened(asked: Mapping[str, Any]) -> ExplainRows:
    """The work as a worker opens it: the model is loaded by its name, and must be the same one."""
    known = asked["model"]
    model = load(known["model"], dtype=known["dtype"], device=known["device"])
    if model.fingerprint != known["fingerprint"]:
        raise LoadError(
            f"the model {known['model']!r} is not the one that the run began with: its weights "
            f"have the fingerprint {model.fingerprint}, and the run's {known['fingerprint']}."
        )
    request = Request.from_dict(asked["request"])
    return ExplainRows(model, request, asked["gold"], labels=mapping_in(asked))


# ---------------------------------------------------------------------- columns


def schema() -> pa.Schema:
    """The columns of a part. ``seconds`` and ``peak_bytes`` are all that a clock decides."""
    pa = arrow()
    numbers = pa.list_(pa.float64())
    words = pa.list_(pa.string())
    result = pa.struct(
        [
            ("method", pa.string()),
            ("target", pa.string()),
            ("value", pa.float64()),
            ("verdict", pa.string()),
            ("measure", pa.string()),
            ("beaten", pa.float64()),
            ("p", pa.float64()),
            ("scores", numbers),
            ("standard_error", numbers),
            ("forwards", pa.int64()),
            ("backwards", pa.int64()),
            ("saved", pa.int64()),
            ("shared", pa.bool_()),
            ("seconds", pa.float64()),
            ("peak_bytes", pa.int64()),
            ("rest", pa.string()),
        ]
    )
    reason = pa.struct([("method", pa.string()), ("kind", pa.string()), ("message", pa.string())])
    share = pa.struct([("label", pa.string()), ("probability", pa.float64())])
    return pa.schema(
        [
            ("row", pa.int64()),
            ("failure", reason),
            ("skipped", pa.list_(reason)),
            ("tokens", pa.int64()),
            ("units", words),
            ("prediction", pa.list_(share)),
            ("passage", pa.string()),
            ("plan", pa.string()),
            ("forwards", pa.int64()),
            ("backwards", pa.int64()),
            ("saved", pa.int64()),
            ("results", pa.list_(result)),
        ]
    )


def record_of(outcome: Outcome | Exception, passage: Passage | None) -> dict[str, Any]:
    """Everything of one row but its place."""
    if isinstance(outcome, Exception):
        return {"failure": reason_of(None, outcome)}
    if not outcome.attributions:  # every method failed
        name, problem = next(iter(outcome.failed.items()))
        return {"failure": reason_of(name, problem)}

    assert passage is not None
    first = next(iter(outcome.attributions.values()))
    # explaining may have placed it: the token at which it is read
    passage = first.passage or passage
    stored = passage.to_dict()
    for name in IN_ROWS:
        stored.pop(name, None)
    shares = [{"label": name, "probability": p} for name, p in first.prediction.items()]
    return {
        "failure": None,
        "skipped": [reason_of(name, problem) for name, problem in outcome.failed.items()],
        "tokens": len(passage),
        "units": list(passage.names),
        "prediction": shares,
        "passage": _text(stored),
        "plan": None if outcome.plan.is_full else _text(outcome.plan.to_dict()),
        "forwards": outcome.cost.forwards,
        "backwards": outcome.cost.backwards,
        "saved": outcome.cost.saved,
        "results": [_result(attribution) for attribution in outcome.attributions.values()],
    }


def reason_of(method: str | None, problem: Exception) -> dict[str, Any]:
    """Why there is no result, as the columns hold it."""
    message = " ".join(str(problem).split())
    return {"method": method, "kind": type(problem).__name__, "message": message}


def _result(attribution: Attribution) -> dict[str, Any]:
    stored = attribution.to_dict_without_passage()
    for name in IN_COLUMNS:
        stored.pop(name, None)
    error = stored.get("error")
    spread = error.pop("standard_error") if error else None
    evidence = attribution.evidence
    return {
        "method": attribution.method,
        "target": attribution.target.describe(),
        "value": attribution.value,
        "verdict": None if evidence is None or not evidence.verdict else str(evidence.verdict),
        "measure": None if evidence is None else evidence.measure,
        "beaten": None if evidence is None else evidence.value,
        "p": None if evidence is None else evidence.p,
        "scores": attribution.scores.tolist(),
        "standard_error": spread,
        **asdict(attribution.cost),
        "rest": _text(stored),
    }


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def wishes_of(methods: Sequence[str] | Mapping[str, Mapping[str, Any]]) -> tuple[Wish, ...]:
    """Methods by name, or with their settings, under the names that results carry."""
    names = [methods] if isinstance(methods, str) else methods
    given = names if isinstance(names, Mapping) else {name: {} for name in names}
    return tuple(Wish(find_method(name).name, dict(settings)) for name, settings in given.items())
