"""What the parts of an audit hold, made into effects over all texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from whence.core.attribution import check_schema
from whence.core.audit import Effect, Observation, effects_of
from whence.core.audit import Place as PlaceOfAttention
from whence.core.audited import (
    ADVERSARY,
    AT_LEAST,
    CORRELATION,
    HEADS,
    PERMUTATION,
    READINGS,
    TOLERANCE,
    UNIFORM,
    Audit,
    HeadsFound,
)
from whence.core.pruning import Pruning, helping, hurting, spared
from whence.core.retrained import Retrained
from whence.core.stored import Stored, parsed_json
from whence.explaining.audits import READINGS as READINGS_OF_ATTENTION
from whence.explaining.audits import observation_of
from whence.explaining.data_labels import label_lines, labels_in
from whence.explaining.stored_trials import TABLES as TABLES_OF_TRIALS
from whence.runs.places import Place

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
# beside the parts: what is measured once, and not for each text
PRUNING = "pruning.json"
RETRAINED = "retrained.json"
QUESTIONS = {"effects": "whence.explaining.stored_audit:table_of"}
OVERVIEW = "whence.explaining.stored_audit:audit_of"
# Said where texts were asked why one label rather than another.
CONTRAST = (
    "Each text was asked why one label rather than another: what moves is the probability of the "
    "one among these two."
)
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
    is_number = asked.get("is_number", False)
    effects = effects_of(observed, seed, _is_shown, is_number)
    pruning, no_pruning = stored_pruning(run.place)
    return Audit(
        model=asked["model"]["model"],
        data=run.manifest.data["source"],
        texts=state.done - state.failed,
        failed=state.failed,
        seed=seed,
        effects=effects,
        # of a number, a loss is in squared units of it, and has no bar either
        heads=None if is_number else _heads(observed, effects, seed),
        pruning=pruning,
        retrained=stored_retrained(run.place),
        skipped=_skipped(records),
        notes=(*_notes(asked, no_pruning), *label_lines(labels_in(run), "needed")),
        forwards=sum(r["explaining"] + r["measuring"] + r["testing"] for r in records)
        + (0 if pruning is None else pruning.forwards),
        backwards=sum(r["backwards"] + r["testing_backwards"] for r in records),
        is_number=is_number,
    )


def _notes(asked: Mapping[str, Any], no_pruning: str) -> tuple[str, ...]:
    """What a reader must know of this audit.

    Said where the curve of heads could not be made; and of labels that are set against each other.

    ``There is no pruning curve: the model has one head.``
    """
    notes = []
    has_contrast = asked["gold"] or any(
        target["against"] is not None for target in asked["request"]["targets"]
    )
    if has_contrast and not asked.get("is_number", False):
        notes.append(CONTRAST)
    if no_pruning:
        notes.append(f"There is no pruning curve: {no_pruning}")
    return tuple(notes)


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


def stored_pruning(place: Place) -> tuple[Pruning | None, str]:
    """The pruning curve of an audit, or why there is none; neither where it was not tried."""
    if not place.has(PRUNING):
        return None, ""
    stored = Stored(parsed_json(place.get(PRUNING).decode()), f"{place.name}/{PRUNING}")
    check_schema(stored, "pruning curve")
    problem = stored.get("problem")
    if problem is not None:
        return None, problem.text()
    return stored["pruning"].record(Pruning), ""


def stored_retrained(place: Place) -> tuple[Retrained, ...]:
    """What was found by training, as far as it is done."""
    if not place.has(RETRAINED):
        return ()
    stored = Stored(parsed_json(place.get(RETRAINED).decode()), f"{place.name}/{RETRAINED}")
    check_schema(stored, "retrained")
    return tuple(map(Retrained.from_stored, stored["tests"].items()))


def head_values(
    observed: Sequence[Sequence[Observation]],
) -> tuple[list[PlaceOfAttention], Float[np.ndarray, "text head"]]:
    """The heads, and the rise of the loss without each; NaN on a text that was not tested."""
    of_texts = []
    for seen in observed:
        of_texts.append(
            {
                one.place: one.value
                for one in seen
                if (one.test, one.quantity) == (HEADS, "loss") and one.place.head is not None
            }
        )
    places = list(dict.fromkeys(place for by_head in of_texts for place in by_head))
    values = np.full((len(of_texts), len(places)), np.nan)
    for text, by_head in enumerate(of_texts):
        for column, place in enumerate(places):
            values[text, column] = by_head.get(place, np.nan)
    return places, values


def _heads(
    observed: Sequence[Sequence[Observation]], effects: Sequence[Effect], seed: int
) -> HeadsFound | None:
    """Which heads help, hurt and can go, by the intervals that are shown of each."""
    places, values = head_values(observed)
    if not places:
        return None
    by_place = {e.place: e for e in effects if (e.test, e.quantity) == (HEADS, "loss")}
    shown = [by_place[place] for place in places]
    hurt = [places[i] for i in hurting(values, TOLERANCE, seed).confirmed]
    return HeadsFound(
        of=len(places),
        help=tuple(places[i] for i in np.flatnonzero(helping(shown, TOLERANCE))),
        hurt=tuple(place for place in hurt if by_place[place].is_above(-TOLERANCE) is False),
        spared=tuple(places[i] for i in np.flatnonzero(spared(shown, TOLERANCE))),
        tolerance=TOLERANCE,
    )


def _is_shown(one: Observation) -> bool:
    """Whether a figure shows it text by text: what is of heads would be too much."""
    if one.test == CORRELATION:
        return one.quantity.startswith(("tau-", "shuffled-"))
    if one.place.head is not None or one.quantity == AT_LEAST:
        return False
    return one.test in (PERMUTATION, UNIFORM, ADVERSARY, READINGS)


def _skipped(records: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Tests and readings without a result on some texts: on how many, and the first reason."""
    reasons: dict[str, list[str]] = {}
    for record in records:
        for reason in (*record["skipped"], *(record["unaudited"] or ())):
            reasons.setdefault(reason["method"], []).append(reason["message"])
    return {
        name: f"on {len(why)} of {len(records)} texts: {why[0]}" for name, why in reasons.items()
    }
