"""Saved results of every kind, each field of them damaged in every way, and every view of the rest.

``python -m tests.damage`` counts what becomes of thousands of them.
"""

from __future__ import annotations

import copy
import json
import math
import random
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import whence
from tests.views.conftest import (
    ANCHOR,
    NO_VERDICT,
    OWN,
    SAMPLED,
    compared,
    evidence_for,
    image,
    judged,
    made,
)
from whence.core.attribution import Attribution, Cost, Error, Window
from whence.core.attributions import Attributions
from whence.core.errors import WhenceError
from whence.core.many import Many
from whence.core.plan import Plan
from whence.core.target import Target
from whence.core.units import Units

GONE = object()


def results() -> dict[str, Any]:
    """One saved result of each kind, made by hand: no model is needed."""
    words = "so very good a film"
    of_anchor = made(words, "anchors", detail=ANCHOR | {"holds": True})
    spread = Error(np.array([0.1, 0.2, 0.3, 0.1, 0.2]), 0.01, "a note")
    lime = made(words, "lime", error=spread, detail=SAMPLED)
    lime = replace(lime, evidence=evidence_for(lime.scores))
    in_windows = replace(
        lime,
        windows=(Window(0, 2, 0.5), Window(2, 5, 1.5)),
        evidence=replace(lime.evidence, windows=(evidence_for(lime.scores[:2]), NO_VERDICT)),
    )
    planned = replace(
        lime,
        plan=Plan(39, 5, {"lime": {"samples": 100}}, {"flow": "too slow"}, "the budget is 1 s"),
    )
    arbiter = replace(lime, method="attention-arbiter", evidence=replace(lime.evidence, own=OWN))
    pair = whence.core.passage.Passage.from_tokens(
        "so good",
        [101, 7, 8, 102, 9, 102],
        ["[CLS]", "so", "good", "[SEP]", "film", "[SEP]"],
        [(0, 0), (0, 2), (3, 7), (0, 0), (0, 4), (0, 0)],
        [-1, 0, 0, -1, 1, -1],
        pair="film",
        types=[0, 0, 0, 0, 1, 1],
    )
    features = Units("feature", ("praise", "negation", "plot"))
    own_units = Attribution(
        None, np.array([0.5, -0.2, 0.1]), lime.target, 1.0, "sae", 1, {}, None, True, Cost(),
        lime.provenance, units=features,
    )  # fmt: skip
    tag = replace(lime, target=Target("good", index=1, at=2, word="good"))
    by_target = Attributions(
        "target",
        {"logit of good": lime, "logit of bad": replace(lime, target=Target("bad", index=0))},
        Cost(3, 2),
    )
    comparison = judged(compared(words, 4))
    reply = replace(lime.passage, reply=pair, readout=2)
    return {
        "anchor": of_anchor,
        "in windows": in_windows,
        "planned": planned,
        "arbiter": arbiter,
        "pair": made(pair, "gradient-l2", signed=False),
        "features": own_units,
        "image": made(image(), "occlusion"),
        "tag": tag,
        "reply": made(reply, "gradient-x-input"),
        "by target": by_target,
        "comparison": comparison,
        "comparison, planned": replace(comparison, plan=planned.plan),
        "many": Many((judged(compared("so good", 2)), judged(compared(words, 2)))),
        "many attributions": Many((lime, of_anchor)),
    }


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every field; of a list the first and the last entry. The answer is drawn anew."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, entry in value.items():
            if key != "answer":
                yield from places(entry, (*path, key))
    elif isinstance(value, list) and value:
        for i in sorted({0, len(value) - 1}):
            yield from places(value[i], (*path, i))


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


VALUES: dict[str, Callable[[Any], Any]] = {
    "deleted": lambda _: GONE,
    "null": lambda _: None,
    "text": lambda _: "abc",
    "no text": lambda _: "",
    "escape": lambda _: "\x1b[31m\u202e\u2028",
    "negative": lambda _: -1,
    "large": lambda _: 10**30,
    "huge": lambda _: 10**400,
    "beyond floats": lambda _: 1e308,
    "infinite": lambda _: math.inf,
    "not a number": lambda _: math.nan,
    "fraction": lambda _: 0.5,
    "true": lambda _: True,
    "no list": lambda _: [],
    "no record": lambda _: {},
    "list": lambda _: [[1], {"a": None}],
    "record": lambda _: {"a": {"b": [1]}},
    "deep": lambda _: nested(40),
    "shorter": lambda old: old[:-1] if isinstance(old, (list, str)) else GONE,
    "longer": lambda old: old + old if isinstance(old, (list, str)) else [old, old],
    "turned": lambda old: old[::-1] if isinstance(old, (list, str)) else -2,
    "in a list": lambda old: [old],
}


def damaged(stored: dict[str, Any]) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Every field in every way, and two neighbours in each other's place; made when called."""
    for path in places(stored):
        place = ".".join(map(str, path))
        for name in VALUES:
            yield f"{place} {name}", partial(_changed, stored, path, name)
        if isinstance(path[-1], str):
            yield f"{place} swapped", partial(_swapped, stored, path)


def _copied(stored: dict[str, Any], path: tuple[Any, ...]) -> tuple[dict[str, Any], Any]:
    """A copy of everything, and in it what holds the place."""
    whole = copy.deepcopy(stored)
    holder = whole
    for key in path[:-1]:
        holder = holder[key]
    return whole, holder


def _changed(stored: dict[str, Any], path: tuple[Any, ...], name: str) -> dict[str, Any]:
    whole, holder = _copied(stored, path)
    value = VALUES[name](holder[path[-1]])
    if value is GONE:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return whole


def _swapped(stored: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    whole, holder = _copied(stored, path)
    mine = path[-1]
    other = random.Random(str(path)).choice(list(holder))
    holder[mine], holder[other] = holder[other], holder[mine]
    return whole


def views(result: Any, figures: bool) -> None:
    """Everything that shows a result."""
    repr(result)
    str(result)
    json.dumps(result.to_dict(), allow_nan=False)
    if hasattr(result, "to_text"):
        result.to_text(full=True)
        result.to_html()
        result._repr_html_()
        str(result.answer)
    for table in ("units", "methods", "counts")[: 3 if isinstance(result, Many) else 2]:
        result.to_csv(table=table)
        result.to_pandas(table)
    result.to_latex()
    if hasattr(result, "agreement"):
        repr(result.agreement())
    if not figures:
        return
    from matplotlib import pyplot

    if hasattr(result, "plot_agreement"):
        result.plot_agreement()
    every = [result] if hasattr(result, "plot") else []
    every += list(getattr(result, "attributions", {}).values())[:1]
    for a in every:
        a.plot()
        if a.evidence is not None and any(trial.curves for trial in a.evidence.trials):
            a.plot_evidence()
    for number in pyplot.get_fignums():
        pyplot.figure(number).canvas.draw()
    pyplot.close("all")


def outcome(content: dict[str, Any], path: Path, figures: bool) -> tuple[str, BaseException | None]:
    """What becomes of one: "refused", "shown", or the error that it crashed with, and where."""
    path.write_text(json.dumps(content))
    try:
        result = whence.read(path)
    except WhenceError as problem:
        return "refused" if "\n" not in str(problem) else "crash in many lines", problem
    except Exception as problem:
        return "crash in read", problem
    try:
        views(result, figures)
    except WhenceError as problem:
        return "refused by a view", problem
    except Exception as problem:
        return "crash in a view", problem
    return "shown", None


def sweep(every: int, figures_every: int, seed: int = 0) -> tuple[Counter[str], list[str]]:
    """One of ``every`` cases; how often which outcome, and what crashed."""
    counts: Counter[str] = Counter()
    crashes = []
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "result.json"
        for kind, result in results().items():
            for what, made_of in damaged(json.loads(json.dumps(result.to_dict()))):
                if rng.randrange(every):
                    continue
                found, problem = outcome(made_of(), path, not rng.randrange(figures_every))
                counts[found] += 1
                if found.startswith("crash"):
                    error = f"{type(problem).__name__}: {problem}"
                    crashes.append(f"{kind}: {what}: {found}: {error[:120]}")
    return counts, crashes


if __name__ == "__main__":
    counts, crashes = sweep(int(sys.argv[1]), int(sys.argv[2]))
    print(*crashes, sep="\n")
    print(dict(counts), sum(counts.values()))
