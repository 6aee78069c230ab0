"""audit: is attention an explanation, in this model on these texts?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from whence.audits.places import check_can_edit
from whence.core.audited import Audit
from whence.core.errors import InputError
from whence.core.request import AnyTarget, Overflow, targets_of
from whence.core.target import Reading
from whence.explaining.audits import (
    GRADIENT,
    LEAVE_ONE_OUT,
    METRICS,
    READER,
    READINGS,
    TESTS,
    WORK,
    AuditRows,
    asked_of_audit,
    spread,
    tests_of,
)
from whence.explaining.data_labels import Use, labels_met, warn_of_labels
from whence.explaining.data_set import (
    Order,
    carried_out,
    check_can_be_loaded,
    one_column,
    request_of,
)
from whence.explaining.evaluate import trial_rows
from whence.explaining.pruning import has_heads, pruned
from whence.explaining.rows import ExplainRows, fitting
from whence.explaining.stored_audit import PRUNING, RETRAINED, audit_of
from whence.games.game import check_is_model
from whence.models.model import Model
from whence.runs.data import Choice, Data, chosen, open_data
from whence.runs.manner import Engine, Manner
from whence.runs.places import Place, place_for
from whence.runs.run import Progress, Run, Stop, check_engine

PART = 8  # texts that are done, written and lost together
RANKINGS = 10  # random ones on each text
USE_OF_LABELS: Use = "needed"  # heads are valued by them
# a name, names, or names with settings
Tests = str | Sequence[str] | Mapping[str, Mapping[str, Any]]


def audit(
    model: Model,
    data: str | Path | Sequence[Any],
    tests: Tests | None = None,
    *,
    out: str | Path | None = None,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    id: str | None = None,
    against: str | None = None,
    labels: Mapping[str, str] | None = None,
    split: str | None = None,
    sample: int | None = None,
    limit: int | None = None,
    target: AnyTarget = None,
    read: Reading | None = None,
    seed: int = 0,
    overflow: Overflow = "error",
    memory: str | int | float | None = None,
    rankings: int = RANKINGS,
    part: int = PART,
    engine: Engine | None = None,
    workers: int | None = None,
    address: str | None = None,
    again: bool = False,
    mend: bool = False,
    fail_fast: bool = False,
    progress: Progress | None = None,
    foil: str | None = None,
) -> Audit:
    """Where attention may be read as an explanation, in this model on these texts, and why.

    ``tests`` are some of ``permutation``, ``uniform``, ``adversary`` and ``heads``; all without.
    The readings of attention (means, rollout, flow …) are compared with gradients and with leaving
    words out, and put on trial as ``whence.evaluate`` does it. ``label`` names the column of the
    true label, by which heads are valued (``labels`` says what the model calls them, where it calls
    them otherwise: {"ok": "not-toxic"}); with ``against``, a column of what each label is
    contrasted with, the label is what readings explain, too. The other keywords are those of
    ``whence.evaluate``.
    """
    check_is_model(model)
    manner = Manner(engine, workers, address, again, mend, fail_fast)
    check_engine(manner)
    if not manner.is_inline:
        check_can_be_loaded(model)
    foil = one_column(against, foil)
    columns = {"text": text, "pair": pair, "label": label, "id": id, "foil": foil}
    opened = open_data(data, **columns, split=split)
    options: dict[str, Any] = {
        "targets": targets_of(target, read),
        "seed": seed,
        "overflow": overflow,
        "memory": memory,
    }
    work = audit_rows(model, tests, rankings, foil is not None, labels or {}, **options)
    choice = Choice(sample, seed, limit)
    met = labels_met(model, opened, choice, work.trial.explain.labels, USE_OF_LABELS)
    warn_of_labels(met, USE_OF_LABELS)
    more: dict[str, Any] = {"part": part, "progress": progress}
    with place_for(out) as place:
        return audited(work, opened, choice, place, manner, **more)


def audit_rows(
    model: Model,
    tests: Tests | None,
    rankings: int,
    gold: bool = False,
    labels: Mapping[str, str] | None = None,
    **options: Any,
) -> AuditRows:
    """The work of an audit, checked before anything is run. ``options`` are those of a Request."""
    check_can_edit(model)
    wanted = _wanted(tests)
    methods = [*READINGS, GRADIENT, LEAVE_ONE_OUT]
    request = fitting(model, request_of(model, methods, evidence=False, **options))
    explain = ExplainRows(model, request, gold, labels=labels or {})
    trial = trial_rows(explain, METRICS, None, None, rankings)
    return AuditRows(trial, tests_of(wanted))


def _wanted(tests: Any) -> Mapping[str, Mapping[str, Any]]:
    """Tests by name with their settings; one name may stand by itself."""
    if tests is None:
        return {name: {} for name in TESTS}
    if isinstance(tests, str):
        return {tests: {}}
    if not isinstance(tests, Iterable):
        raise InputError(f"tests= takes names, or names with settings, not {tests!r}.")
    wanted = tests if isinstance(tests, Mapping) else {name: {} for name in tests}
    if not wanted:
        raise InputError("there are no tests: name some, or leave tests= out for all.")
    for name, settings in wanted.items():
        if not isinstance(settings, Mapping):
            raise InputError(
                f"the settings of the test {name!r} are a dict by name, not {settings!r}."
            )
    return wanted


def audited(
    work: AuditRows,
    data: Data,
    choice: Choice,
    place: Place,
    manner: Manner,
    *,
    part: int = PART,
    stop: Stop | None = None,
    progress: Progress | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Audit:
    """The audit as asked, begun or continued in a place. ``say`` is told of each step."""
    work = spread(work, sum(1 for _ in chosen(data, choice)))
    gold = work.trial.explain.gold
    order = Order(work, WORK, READER, asked_of_audit(work), gold, needs_labels=True)
    stop = stop or Stop()
    if manner.again:
        for name in (PRUNING, RETRAINED):
            place.remove(name)
    run = carried_out(order, data, choice, place, manner, part=part, stop=stop, progress=progress)
    if run.is_complete and not is_whole(run) and not stop.asked:
        say("heads removed one after the other")
        pruned(work, run, stop)
    return audit_of(run)


def is_whole(run: Run) -> bool:
    """Whether nothing is left to do: neither texts, nor the pruning curve over all of them."""
    has_curve = run.place.has(PRUNING) or not has_heads(run.manifest.asked)
    return run.is_complete and has_curve
