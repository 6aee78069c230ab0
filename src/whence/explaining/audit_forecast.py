"""What an audit will cost, before it is begun.

Tests declare their passes, and so do the methods that read attention and the trial that they stand.
Passes are timed on a text of usual length: plain ones, and ones with edited attention.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from whence.audits.case import Case, Price
from whence.audits.heads import HeadRemoval
from whence.audits.places import places_in, plain_trace, price_on
from whence.audits.uniform import Uniform
from whence.core.audit import Place
from whence.core.durations import spoken
from whence.core.errors import InputError, WhenceError
from whence.core.passage import Passage
from whence.explaining.audits import AuditRows, spread
from whence.explaining.forecast import forecast_of, timed_pass
from whence.explaining.job import job_of
from whence.explaining.pruning import passes_of_curve
from whence.models.model import Model
from whence.runs.data import Choice, Data, chosen

LOOKED_AT = 100  # texts by which the usual length is known
BACKWARD = 2  # passes that a backward pass counts as
TRIAL, CURVE = "readings", "pruning"


@dataclass(frozen=True)
class AuditForecast:
    """The passes of each step over all texts, and the seconds that they take in one process.

    >>> print(AuditForecast(200, {"permutation": 30_000, "readings": 10_000}, 300.0))
    about 40,000 passes on 200 texts, 5 min in one process: permutation 75 %, readings 25 %
    """

    texts: int
    passes: Mapping[str, int]
    seconds: float

    def __str__(self) -> str:
        """Said before an audit is begun.

        ``about 40,000 passes on 200 texts, 5 min in one process: permutation 75 %, readings 25 %``
        """
        every = sum(self.passes.values())
        shares = [f"{name} {passes / every:.0%}" for name, passes in self.passes.items()]
        texts = "1 text" if self.texts == 1 else f"{self.texts:,} texts"
        return (
            f"about {every:,} passes on {texts}, {spoken(self.seconds)} in one "
            f"process: {', '.join(shares).replace('%', ' %')}"
        )


def forecast_audit(work: AuditRows, data: Data, choice: Choice) -> AuditForecast:
    """What the work will cost on the chosen rows: some hundred passes are run for it."""
    explain = work.trial.explain
    texts = sum(1 for _ in chosen(data, choice))
    work = spread(work, texts)
    usual = _usual(work, data, choice)

    # comprehensiveness and sufficiency under two removals are what evidence is made of, too
    job = job_of(explain.model, replace(explain.request, evidence=True))
    job = replace(job, plan=replace(job.plan, rankings=work.trial.rankings))
    of_trial = forecast_of(job, usual).passes

    case = Case(usual, explain.request.targets[0])
    places = places_in(plain_trace(explain.model, case))
    passes: dict[str, int] = {}
    for test in work.tests:
        on_texts = work.most.get(test.name, texts)
        passes[test.name] = on_texts * _weight(price_on([test], places))
    if HeadRemoval.name in passes:
        heads = sum(place.head is not None for place in places)
        passes[CURVE] = passes_of_curve(texts, heads)

    plain = timed_pass(job, usual, texts * of_trial)
    edited = _timed_edit(explain.model, case, places)
    seconds = texts * of_trial * plain + sum(passes.values()) * edited
    return AuditForecast(texts, passes | {TRIAL: texts * of_trial}, seconds)


def _weight(price: Price) -> int:
    return price.forwards + BACKWARD * price.backwards


def _usual(work: AuditRows, data: Data, choice: Choice) -> Passage:
    """A text of the middle length, among the first that can be read."""
    passages = []
    for row in islice(chosen(data, choice), LOOKED_AT):
        try:
            passages.append(work.trial.explain.encoded(row))
        except WhenceError:
            continue  # the audit will list it as a failure
    if not passages:
        raise InputError(f"none of the first {LOOKED_AT} texts of {data.source} can be read.")
    return sorted(passages, key=len)[len(passages) // 2]


def _timed_edit(model: Model, case: Case, places: Sequence[Place]) -> float:
    """The seconds of one pass with edited attention, among many."""
    test = Uniform()
    begun = time.perf_counter()
    test(model, [case])
    return (time.perf_counter() - begun) / price_on([test], places).forwards
