"""The pruning curve of an audit: heads removed one after the other, beside random orders.

It is made once, when all texts are done. One half of the texts says in which order heads go, and
the curve is that of the other half: an order that was lucky on its own texts is not rewarded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from jaxtyping import Int

from whence.audits.case import Case
from whence.audits.heads import HeadRemoval
from whence.audits.pruning import price_of_curve, pruning_curve
from whence.core.audit import Place, evenly_spaced
from whence.core.audited import SCHEMA
from whence.core.errors import InputError
from whence.core.pruning import (
    Pruning,
    PruningCurves,
    even_steps,
    halves,
    least_moving_first,
    least_worth_first,
    pruning_of,
    random_orders,
)
from whence.core.writing import json_text
from whence.explaining.audits import AuditRows, observation_of
from whence.explaining.stored_audit import PRUNING, head_values
from whence.runs.data import Row
from whence.runs.kept_rows import KeptRows
from whence.runs.run import Run, Stop

MOST_TEXTS = 60  # on which the curve is run: the mean over so many is sure enough
INFORMED, RANDOM_ORDERS = 2, 5
AT_ONCE = 8  # texts, after which somebody may have asked to stop
BY_WORTH, BY_MOVEMENT = "least worth first", "least moving first"
Orders = Mapping[str, Sequence[Place]]


def has_heads(asked: Mapping[str, Any]) -> bool:
    """Whether an audit was asked what each head is worth, which gives the orders."""
    return any(test["name"] == HeadRemoval.name for test in asked["tests"])


def passes_of_curve(texts: int, heads: int) -> int:
    """What the curve of so many texts costs at most.

    >>> passes_of_curve(200, 48)  # 60 texts: 7 orders at 7 steps; all heads, none, and the target
    3120
    """
    held_out = texts - texts // 2 if texts > 1 else 0
    between = max(len(even_steps(heads)) - 2, 0)
    return min(held_out, MOST_TEXTS) * ((INFORMED + RANDOM_ORDERS) * between + 3)


def pruned(work: AuditRows, run: Run, stop: Stop) -> None:
    """Write the curve beside the parts, or why there is none. Nothing if it was stopped before."""
    content: dict[str, Any]
    try:
        pruning = _pruning(work, run, stop)
        if pruning is None:
            return
        content = {"pruning": asdict(pruning)}
    except Exception as problem:  # the audit of the texts, which is done, does not hang on it
        content = {"problem": " ".join(str(problem).split()) or type(problem).__name__}
    about = {"schema": SCHEMA, "kind": "pruning"}
    run.place.put(PRUNING, json_text(about | content).encode())


def _pruning(work: AuditRows, run: Run, stop: Stop) -> Pruning | None:
    """The curve; None where somebody asked to stop."""
    seed = work.trial.explain.request.seed
    rows: list[int] = []
    observed = []
    for record in run.records():
        if record["failure"] is None:
            rows.append(record["row"])
            observed.append([observation_of(one) for one in record["observations"]])
    heads, values = head_values(observed)
    tested = np.flatnonzero(np.isfinite(values).all(1)) if heads else np.zeros(0, dtype=int)
    ordering, held_out = halves(len(tested), seed)
    if not len(ordering):
        are = "is 1" if len(tested) else "are none"
        raise InputError(
            "one half of the texts orders the heads and the other tries the order, so it takes two "
            f"texts on which heads were tested; there {are}."
        )

    values = values[tested[ordering]]
    informed = {
        BY_WORTH: _named(least_worth_first(values), heads),
        BY_MOVEMENT: _named(least_moving_first(values), heads),
    }
    orders: dict[str, list[Place]] = dict(informed)
    for number, order in enumerate(random_orders(len(heads), RANDOM_ORDERS, seed)):
        orders[f"random {number + 1}"] = _named(order, heads)
    steps = even_steps(len(heads))

    # from the whole of them: data are often sorted by their label
    chosen = held_out[evenly_spaced(len(held_out), MOST_TEXTS)]
    tried = [rows[text] for text in tested[chosen]]
    curves = _curves(work, _rows_of(run, tried), orders, steps, stop)
    if curves is None:
        return None
    # one pass more: the target is fixed by what the model says of the whole text
    passes = len(tried) * (price_of_curve(orders, steps).forwards + 1)
    return pruning_of(
        curves,
        informed,
        ordered_on=len(ordering),
        held_out=len(held_out),
        forwards=passes,
        seed=seed,
    )


def _curves(
    work: AuditRows, rows: Sequence[Row], orders: Orders, steps: Sequence[int], stop: Stop
) -> PruningCurves | None:
    """Of a few texts after the other; None where somebody asked to stop."""
    model = work.trial.explain.model
    curves = None
    for first in range(0, len(rows), AT_ONCE):
        if stop.asked:
            return None
        cases = [_case(work, row) for row in rows[first : first + AT_ONCE]]
        of_cases = pruning_curve(model, cases, orders, steps)
        curves = of_cases if curves is None else curves.joined(of_cases)
    return curves


def _case(work: AuditRows, row: Row) -> Case:
    """As the tests had it: the target is fixed on the whole text."""
    explain = work.trial.explain
    model, asked = explain.model, explain.target_of(row)
    passage = model.placed(explain.encoded(row), asked)
    target = model.resolve(model.located(asked, passage), model.logits([passage])[0], passage)
    return work.case_of(passage, target, row)


def _rows_of(run: Run, places: Sequence[int]) -> list[Row]:
    kept = KeptRows(run.place)
    rows = []
    for place in places:
        rows += kept[range(place, place + 1)]
    return rows


def _named(order: Int[np.ndarray, " head"], heads: Sequence[Place]) -> list[Place]:
    return [heads[number] for number in order]
