"""Tables of methods × metrics, over all that they can hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.views.test_planted import truth
from whence.core.evaluation import Cell, Column, Evaluation, MeanCurves
from whence.core.evidence import Verdict
from whence.core.gauge import Gauge
from whence.core.many import Failure

METHODS = (
    "lime",
    "occlusion",
    "attention-mean",
    "rollout",
    "gradient-l2",
    "shapley",
    "\x1b[31mred",
    "le\u202eft",
    "<b>bold</b>",
    "größe",
    "一",
    "a-name-that-is-much-longer-than-any-name-of-a-method-should-ever-be-in-a-table-of-a-paper",
    *(f"m{number}" for number in range(8)),
)
# a metric, what it asks, whether it removes words
METRICS = (
    ("comprehensiveness", "faithfulness", True),
    ("aopc", "faithfulness", True),
    ("deletion", "faithfulness", True),
    ("held-out", "faithfulness", False),
    ("auprc", "gold", False),
    ("token-f1", "gold", False),
    ("robustness", "again", False),
    ("compactness", "form", False),
)
REMOVALS = ("mask", "delete", "zero")
TEXTS = (0, 1, 2, 4, 5, 6, 39, 40, 1000)
VALUES = (0.0, 1.0, 0.5, 1e-5, -0.0004, -0.3, 0.42134, 0.9999, 9.996, 23.46, 12345.6)
SHARES = (0.0, 1.0, 0.5, 0.004, 0.00001, 0.9996, 0.05, 0.73)


def pick(rng: np.random.Generator, choices: Any) -> Any:
    """One of them by lot."""
    return choices[int(rng.integers(len(choices)))]


def some(rng: np.random.Generator, choices: Any, least: int = 0, most: int | None = None) -> list:
    """Some of them by lot, in their order."""
    most = len(choices) if most is None else most
    count = int(rng.integers(least, most + 1))
    chosen = sorted(rng.permutation(len(choices))[:count].tolist())
    return [choices[place] for place in chosen]


def interval(rng: np.random.Generator, mean: float, texts: int) -> tuple[float, float] | None:
    """Of few texts none; even, or with one long side."""
    if texts < 5 or rng.random() < 0.1:
        return None
    below, above = pick(rng, ((0.1, 0.1), (0.0, 0.0), (0.001, 0.4), (0.3, 0.02), (0.2, 0.21)))
    return mean - below, mean + above


def cell(rng: np.random.Generator, method: str, texts: int, value: float | None) -> Cell:
    """One method by one metric."""
    mean = float(pick(rng, VALUES)) if value is None else value
    has_control = rng.random() < 0.9
    judged = has_control and texts >= 5
    return Cell(
        method=method,
        mean=mean,
        interval=interval(rng, mean, texts),
        texts=texts,
        control=(mean if value is not None else float(pick(rng, VALUES))) if has_control else None,
        beaten=float(pick(rng, SHARES)) if has_control else None,
        verdict=pick(rng, tuple(Verdict)) if judged else None,
        group=pick(rng, ("a", "a", "b", "ab", "bc", "")) if texts >= 5 else "",
        built_in=bool(rng.random() < 0.1),
    )


def column(
    rng: np.random.Generator, methods: list[str], metric: Any, removal: str, texts: int
) -> Column:
    """A metric; one in five gives everything the same value."""
    name, kind, _ = metric
    of_column = texts if rng.random() < 0.7 else int(rng.integers(0, texts + 1))
    same = float(pick(rng, VALUES)) if rng.random() < 0.2 else None
    cells = []
    for method in methods:
        own = of_column if rng.random() < 0.8 else int(rng.integers(0, of_column + 1))
        if own:
            cells.append(cell(rng, method, own, same))
    random = same if same is not None else float(pick(rng, VALUES))
    of_random = of_column if rng.random() < 0.9 else 0
    return Column(
        metric=name,
        version=1,
        settings={"seeds": 17} if name == "robustness" and rng.random() < 0.5 else {},
        better=pick(rng, ("higher", "lower")),
        kind=kind,
        removal=removal,
        random=Cell("", random if of_random else 0.0, interval(rng, random, of_random), of_random),
        cells=tuple(cells),
    )


def draw(rng: np.random.Generator) -> Evaluation:
    """A table by lot."""
    methods = some(rng, METHODS, 1, pick(rng, (1, 2, 3, 9, len(METHODS))))
    if rng.random() < 0.5:
        methods.append("random")
    if rng.random() < 0.05:
        methods = ["random"]
    texts = int(pick(rng, TEXTS))
    removals = some(rng, REMOVALS)
    columns = []
    for metric in some(rng, METRICS, 0, pick(rng, (1, 3, len(METRICS)))) if texts else []:
        for removal in removals if metric[2] else [""]:
            columns.append(column(rng, methods, metric, removal, texts))
    failed = int(pick(rng, (0, 0, 1, 3, 7, 250)))
    named = min(failed, 100) if rng.random() < 0.8 else 0
    why = ("it is empty", "\x1b[2J", "<script>")
    curves = [
        MeanCurves(name, removal, (1.0, 0.5, 0.0), (0.0, 0.5, 1.0), pick(rng, (None, texts, 3)))
        for removal in removals
        for name in (*methods, "")
    ]
    return Evaluation(
        model=pick(rng, ("toy", "org/model", "\x1b[31mmodel")),
        data=pick(rng, ("some/reviews.csv", "C:\\data\\mails.csv", "x\u202ey.csv")),
        texts=texts,
        failed=failed,
        seed=int(rng.integers(5)),
        methods=tuple(methods),
        columns=tuple(columns),
        curves=tuple(curves) if rng.random() < 0.2 else (),
        gauges=tuple(
            Gauge(by, (0.1, 0.5), (0.4, 0.004), (1.0, 2.0), 1.0, pick(rng, (1, texts)))
            for by in removals
        ),
        planted=truth() if rng.random() < 0.1 else None,
        skipped={methods[0]: "on 3 of 40 texts: it is too long"} if rng.random() < 0.2 else {},
        notes=("something was not measured",) if rng.random() < 0.2 else (),
        forwards=int(pick(rng, (0, 1, 1234))),
        failures=tuple(Failure(f"row {row}", pick(rng, why)) for row in range(named)),
    )


def speak(rng: np.random.Generator) -> None:
    """Everything that can be said of a table."""
    table = draw(rng)
    str(table)
    table.to_html()
    table._repr_html_()
    table.to_latex()
    table.to_csv()
    table.to_dict()
    str(table.gauges[0]) if table.gauges else None
