"""Evaluations made by hand of values of texts: no model is needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from whence.core.evaluation import Evaluation, MeanCurves, Measured, column_of
from whence.core.gauge import Gauge

METHODS = ("sharp", "dull", "random")
TEXTS = 40


def measured(
    ahead: tuple[float, ...] = (1.0, 0.0, 0.0),
    metric: str = "deletion",
    removal: str = "mask",
    texts: int = TEXTS,
    **more: Any,
) -> Measured:
    """Each method lies ``ahead`` of its control, by the mean; with noise of a tenth."""
    rng = np.random.default_rng([texts, len(metric), len(removal)])
    level = rng.normal(size=(texts, 1))
    noise = rng.normal(scale=0.1, size=(texts, len(ahead)))
    noise -= noise.mean(0)
    given = {
        "version": 1,
        "settings": {},
        "better": "higher",
        "kind": "faithfulness",
        "own": level + noise + np.array(ahead),
        "random": level[:, 0],
        "control": np.repeat(level, len(ahead), axis=1),
        "beaten": np.full((texts, len(ahead)), 0.5),
        **more,
    }
    return Measured(metric=metric, removal=removal, **given)


def evaluation(
    *every: Measured, methods: tuple[str, ...] = METHODS, texts: int = TEXTS, **more: Any
) -> Evaluation:
    """A table with a column for each."""
    columns = tuple(column_of(one, methods) for one in every)
    given = {"model": "toy", "data": "some/reviews.csv", "failed": 0, "seed": 0, **more}
    return Evaluation(texts=texts, methods=methods, columns=columns, **given)


def same_everywhere(metric: str = "dummy") -> Measured:
    """A metric that says 1 of everything."""
    one = np.ones((TEXTS, len(METHODS)))
    return measured(metric=metric, own=one, random=one[:, 0], control=one)


def whole(methods: tuple[str, ...] = METHODS) -> Evaluation:
    """With everything that a page shows."""
    return evaluation(
        measured(),
        measured((0.0, 1.0, 0.0), removal="delete"),
        measured((1.0, 0.0, 0.0), "compactness", "", kind="form", better="lower"),
        same_everywhere(),
        methods=methods,
        curves=tuple(
            MeanCurves(name, "mask", (1.0, 0.5, 0.0), (0.0, 0.5, 1.0)) for name in (*methods, "")
        ),
        gauges=(Gauge("mask", (0.1, 0.5), (0.4, 0.1), (1.0, 2.0), 1.0, TEXTS),),
        skipped={methods[1]: "on 3 of 40 texts: it is too long"},
        notes=("something was not measured",),
        forwards=1234,
    )
