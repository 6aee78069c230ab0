"""What the parts of an audit hold, made into effects over all texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from whence.core.audit import Effect, Observation, effects_of
from whence.core.audited import ADVERSARY, PERMUTATION, READINGS, Audit
from whence.explaining.audits import READINGS as READINGS_OF_ATTENTION
from whence.explaining.audits import observation_of
from whence.explaining.stored_trials import TABLES as TABLES_OF_TRIALS

if TYPE_CHECKING:
    from whence.runs.run import Run

TABLES = {
    **TABLES_OF_TRIALS,
    "observations": """
        select row, item.test, item.quantity, item.kind, item.layer, item.head, item.reading,
               item.value, item.control
        from (select row, unnest(observations) as item from parts)
    """,
}
READER_NAME = __name__
QUESTIONS = {"effects": "whence.explaining.stored_audit:table_of"}
OVERVIEW = "whence.explaining.stored_audit:audit_of"
CHANCE = 0.5  # of random rankings, that a random ranking beats


def table_of(run: Run) -> Any:
    """The effects as Arrow, a row for each."""
    from whence.runs.arrow import arrow

    return arrow().Table.from_pylist(audit_of(run).records())


def audit_of(run: Run) -> Audit:
    """The effects over the texts that are done, with intervals."""
    asked = run.manifest.asked
    records = [record for record in run.records() if record["failure"] is None]
    observed = []
    for record in records:
        of_tests = [observation_of(one) for one in record["observations"]]
        observed.append(of_tests + _beaten(record))
    state = run.state
    seed = int(asked["request"]["seed"])
    effects = effects_of(observed, seed, _is_shown)
    return Audit(
        model=asked["model"]["model"],
        data=run.manifest.data["source"],
        texts=state.done - state.failed,
        failed=state.failed,
        seed=seed,
        layers=_layers(effects),
        effects=effects,
        skipped=_skipped(records),
        forwards=sum(record["explaining"] + record["measuring"] for record in records),
        backwards=sum(record["backwards"] for record in records),
    )


def _beaten(record: Mapping[str, Any]) -> list[Observation]:
    """For each reading, the share of random rankings that it beats, over metrics and removals."""
    by_reading: dict[str, list[float]] = {}
    for item in record["values"]:
        if item["method"] in READINGS_OF_ATTENTION and item["beaten"] is not None:
            by_reading.setdefault(item["method"], []).append(item["beaten"])
    return [
        Observation(READINGS, "beaten", sum(shares) / len(shares), reading=name, control=CHANCE)
        for name, shares in by_reading.items()
    ]


def _is_shown(one: Observation) -> bool:
    """Whether a figure shows it text by text: what is of heads would be too much."""
    return one.test in (PERMUTATION, ADVERSARY) and one.place.head is None


def _layers(effects: Sequence[Effect]) -> int:
    layers = [effect.place.layer for effect in effects if effect.place.layer is not None]
    return max(layers, default=-1) + 1


def _skipped(records: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Tests and readings without a result on some texts: on how many, and the first reason."""
    reasons: dict[str, list[str]] = {}
    for record in records:
        for reason in (*record["skipped"], *(record["unaudited"] or ())):
            reasons.setdefault(reason["method"], []).append(reason["message"])
    return {
        name: f"on {len(why)} of {len(records)} texts: {why[0]}" for name, why in reasons.items()
    }
