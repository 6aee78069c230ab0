"""The work of ``whence audit``: some rows become what every test of attention observes on them.

The readings of attention are put on trial as ``whence evaluate`` does it, in the same games; the
tests that change attention then run on the same texts and targets. One record for each row: that of
the trial, and the observations.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from whence.audits.adversary import Adversary
from whence.audits.case import AuditTest, Case
from whence.audits.correlation import Correlation
from whence.audits.heads import HeadRemoval
from whence.audits.permutation import Permutation
from whence.audits.places import places_in, plain_trace, price_on
from whence.audits.uniform import Uniform
from whence.core.audit import Observation, Place, evenly_spaced
from whence.core.errors import InputError, TargetError, unknown_name
from whence.core.passage import Passage
from whence.core.registry import checked_settings, settings_dict
from whence.core.target import Target
from whence.explaining.job import Outcome
from whence.explaining.rows import Explained, plain, reason_of
from whence.explaining.trials import TrialRows, asked_of_trials
from whence.explaining.trials import opened as trials_opened
from whence.explaining.trials import schema as schema_of_trials
from whence.models.model import Model
from whence.runs.arrow import arrow
from whence.runs.data import Row

if TYPE_CHECKING:
    import pyarrow as pa

WORK = "whence.explaining.audits:opened"
READER = "whence.explaining.stored_audit"

# aggregations of attention, as far as they fit the model
READINGS = (
    "attention-mean",
    "attention-max",
    "value-weighted",
    "rollout",
    "flow",
    "generic-attention",
)
GRADIENT, LEAVE_ONE_OUT = "gradient-x-input", "occlusion"
METRICS = ("comprehensiveness", "sufficiency")
# texts that dear tests look at; the mean over so many is sure enough
MOST = {"permutation": 100, "adversary": 60}
TESTS: Mapping[str, type[Any]] = {
    test.name: test for test in (Permutation, Uniform, Adversary, HeadRemoval)
}


@dataclass(frozen=True)
class AuditRows:
    """Tests on rows. ``trial`` explains them by every reading, and puts these on trial.

    Of ``texts`` there are, a test looks at as many as ``most`` says, spread over the data, which
    may be sorted; at all of them where it says nothing.
    """

    trial: TrialRows
    tests: tuple[AuditTest, ...]
    texts: int = 0
    most: Mapping[str, int] = field(default_factory=dict)

    def __call__(self, rows: Sequence[Row], first: int) -> pa.Table:
        """A table with a record for each row; ``first`` is the place of the first of them."""
        explained, records = self.trial.tried(rows, first)
        cases: dict[int, Case] = {}
        for place, one in enumerate(explained):
            if records[place]["failure"] is None:
                try:
                    cases[place] = self._case(one)
                except TargetError as problem:
                    failed = {"row": first + place, "failure": reason_of(None, problem)}
                    records[place] = failed
        for place in cases:
            outcome = explained[place].outcome
            assert isinstance(outcome, Outcome)
            records[place]["observations"] = self._correlated(outcome, cases[place].passage)
            records[place] |= {"unaudited": [], "testing": 0, "testing_backwards": 0}
        places: list[Place] = []
        for test in self.tests:
            looked_at = self._looked_at(test, range(first, first + len(rows)))
            chosen = [place for place in cases if first + place in looked_at]
            for place, seen in self._seen(test, cases, chosen):
                if isinstance(seen, Exception):
                    records[place]["unaudited"].append(reason_of(test.name, seen))
                    continue
                records[place]["observations"] += [_record(one) for one in seen]
                places = places or places_in(plain_trace(self._model, cases[place]))
                price = price_on([test], places)
                records[place]["testing"] += price.forwards
                records[place]["testing_backwards"] += price.backwards
        return arrow().Table.from_pylist(records, schema=schema())

    def _looked_at(self, test: AuditTest, here: Collection[int]) -> Collection[int]:
        if test.name not in self.most:
            return here
        return set(evenly_spaced(self.texts, self.most[test.name]).tolist())

    @property
    def _model(self) -> Model:
        return self.trial.explain.model

    @property
    def _seed(self) -> int:
        return self.trial.explain.request.seed

    def _case(self, explained: Explained) -> Case:
        outcome = explained.outcome
        assert isinstance(outcome, Outcome)
        attribution = next(iter(outcome.attributions.values()))
        passage = attribution.passage or explained.passage
        assert passage is not None
        return self.case_of(passage, attribution.target, explained.row)

    def case_of(self, passage: Passage, target: Target, row: Row) -> Case:
        """A text under audit, with what is true of it where the data tell; the target is fixed."""
        model = self._model
        truth: float | None = None
        if self.trial.explain.gold:
            truth = target.index
        elif row.label is not None and model.is_regression:
            truth = _number(row.label)
        elif row.label is not None and model.kind.has_classes:
            nothing_said = np.zeros(len(model.labels_of(passage)))
            named = Target(self.trial.explain.label_for(row.label))
            truth = model.resolve(named, nothing_said, passage).index
        return Case(passage, target, truth, self._seed)

    def _correlated(self, outcome: Outcome, passage: Passage) -> list[dict[str, Any]]:
        scores = {name: one.scores for name, one in outcome.attributions.items()}
        readings = [name for name in READINGS if name in scores]
        # of this text, or all texts would have the same random weights as their control
        seed = self._seed + int.from_bytes(passage.digest[:4])
        found = Correlation(GRADIENT, LEAVE_ONE_OUT)(scores, readings, seed)
        return [_record(one) for one in found]

    def _seen(
        self, test: AuditTest, cases: Mapping[int, Case], places: Sequence[int]
    ) -> list[tuple[int, list[Observation] | Exception]]:
        """What a test observes. Where all texts together fail, each half is tried."""
        if not places:
            return []
        try:
            observed = test(self._model, [cases[place] for place in places])
            return list(zip(places, observed, strict=True))
        except Exception as problem:
            if len(places) == 1:
                return [(places[0], problem)]
        half = len(places) // 2
        first = self._seen(test, cases, places[:half])
        return first + self._seen(test, cases, places[half:])


def _number(label: str) -> float:
    """What a regression should say of a text."""
    try:
        number = float(label)
    except ValueError:
        number = nan
    if not isfinite(number):
        raise TargetError(f"the model says a number, and the data say {label!r} of this text.")
    return number


def _record(one: Observation) -> dict[str, Any]:
    return {
        "test": one.test,
        "quantity": one.quantity,
        "kind": one.place.kind,
        "layer": one.place.layer,
        "head": one.place.head,
        "reading": one.reading,
        "value": one.value,
        "control": one.control,
    }


def observation_of(record: Mapping[str, Any]) -> Observation:
    """What ``_record`` was given."""
    return Observation(
        test=record["test"],
        quantity=record["quantity"],
        value=record["value"],
        place=Place(record["layer"], record["head"], record["kind"]),
        reading=record["reading"],
        control=record["control"],
    )


# ---------------------------------------------------------------------- what was asked


def name_of_test(name: str) -> str:
    """The name of a test, checked."""
    if name not in TESTS:
        raise unknown_name("test of attention", name, list(TESTS))
    return name


def tests_of(wanted: Mapping[str, Mapping[str, Any]]) -> tuple[AuditTest, ...]:
    """Tests by name with settings; a mistyped one is an error here."""
    tests = []
    for name, settings in wanted.items():
        test = TESTS[name_of_test(name)]
        tests.append(checked_settings(f"test {name!r}", test, settings))
    return tuple(tests)


def spread(work: AuditRows, texts: int) -> AuditRows:
    """The work over so many texts, of which dear tests look at some."""
    dear = [test.name for test in work.tests if MOST.get(test.name, texts) < texts]
    return replace(work, texts=texts, most={name: MOST[name] for name in dear})


def asked_of_audit(work: AuditRows) -> dict[str, Any]:
    """What the manifest says: that of the trial, and the tests with all settings."""
    tests = [{"name": test.name, "settings": plain(settings_dict(test))} for test in work.tests]
    more = {"tests": tests, "texts": work.texts, "most": dict(work.most)}
    is_number = work.trial.explain.model.is_regression
    return asked_of_trials(work.trial) | more | {"is_number": is_number}


def opened(asked: Mapping[str, Any]) -> AuditRows:
    """The work as a worker opens it."""
    if "most" not in asked:
        raise InputError(
            "this audit was begun by an older version, which chose the texts of its dear tests in "
            "another way: it can be read, and not gone on with. Begin anew with --restart."
        )
    wanted = {test["name"]: test["settings"] for test in asked["tests"]}
    return AuditRows(trials_opened(asked), tests_of(wanted), asked["texts"], asked["most"])


def schema() -> pa.Schema:
    """The columns of a part: those of a trial, and the observations."""
    pa = arrow()
    observation = pa.struct(
        [
            ("test", pa.string()),
            ("quantity", pa.string()),
            ("kind", pa.string()),
            ("layer", pa.int64()),
            ("head", pa.int64()),
            ("reading", pa.string()),
            ("value", pa.float64()),
            ("control", pa.float64()),
        ]
    )
    of_trials = schema_of_trials()
    reason = of_trials.field("failure").type
    more = [
        ("observations", pa.list_(observation)),
        ("unaudited", pa.list_(reason)),
        ("testing", pa.int64()),
        ("testing_backwards", pa.int64()),
    ]
    return pa.schema([*of_trials, *more])
