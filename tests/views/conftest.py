"""Attributions made by hand: views need no model."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from whence.core.attribution import Attribution, Cost, Error
from whence.core.comparison import Comparison
from whence.core.evidence import (
    CURVES,
    HELD_OUT,
    Band,
    Evidence,
    Trial,
    TrialCurves,
    Verdict,
)
from whence.core.passage import Passage
from whence.core.provenance import Provenance
from whence.core.target import Target
from whence.views.document import script, static

PROVENANCE = Provenance(
    "toy",
    "ToyForSequenceClassification",
    "00ff",
    None,
    "float32",
    "cpu",
    "sdpa",
    {"whence": "0.1.0"},
)


def own(page: str) -> str:
    """A page without the program that is the same on every page: its button."""
    program = script(static("shell.js"))
    assert page.count(program) == 1
    return page.replace(program, "")


def passage_of(text: str) -> Passage:
    spans = [m.span() for m in re.finditer(r"\S+", text)]
    return Passage.from_tokens(
        text, list(range(len(spans))), [text[a:b] for a, b in spans], spans, [0] * len(spans)
    )


def image() -> Passage:
    cells = tuple((0, r, c) for r in range(2) for c in range(3))
    return Passage(
        text="",
        ids=np.zeros(6, dtype=np.int64),
        tokens=tuple(f"{r},{c}" for _, r, c in cells),
        spans=np.zeros((6, 2), dtype=np.int64),
        parts=np.zeros(6, dtype=np.int64),
        unit_of=np.arange(6),
        unit_spans=cells,
        kind="patch",
        pixels=np.random.default_rng(0).normal(size=(3, 8, 12)).astype(np.float32),
    )


def made(
    text: str | Passage, method: str = "toy", signed: bool = True, scores: Any = None, **more: Any
) -> Attribution:
    passage = passage_of(text) if isinstance(text, str) else text
    count = len(passage.unit_spans)
    if scores is None:
        scores = np.random.default_rng(len(method)).normal(size=count)
        scores = scores if signed else np.abs(scores)
    scores = np.asarray(scores, dtype=np.float64)
    given = {
        "target": Target("good", index=1),
        "value": 1.25,
        "version": 1,
        "settings": {"layer": "last"},
        "seed": 0,
        "cost": Cost(2, 1, 0.0123, None, shared=True),
        "provenance": PROVENANCE,
        "prediction": {"good": 0.75, "bad": 0.25},
        **more,
    }
    return Attribution(passage=passage, scores=scores, method=method, signed=signed, **given)


def compared(text: str | Passage, count: int = 9) -> Comparison:
    names = [
        "attention-max",
        "attention-mean",
        "gradient-l1",
        "gradient-l2",
        "gradient-mean",
        "gradient-x-input",
        "integrated-gradients",
        "random",
        "smooth-grad",
    ]
    errors = {
        "integrated-gradients": Error(None, 0.0031),
        "gradient-mean": Error(note="zero by construction"),
    }
    signed = ("gradient-mean", "gradient-x-input", "integrated-gradients")
    every = {n: made(text, n, n in signed, error=errors.get(n)) for n in names[:count]}
    return Comparison(every, Cost(30, 29, 0.05), {"other": "it does not fit"})


def evidence_for(
    scores: np.ndarray, question: str = "support", seed: int = 0, rankings: int = 100
) -> Evidence:
    """The evidence of a ranking in two additive games, beside random rankings.

    It is of the shape that whence makes.
    """
    d = len(scores)
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=d)
    other_weights = weights + rng.normal(size=d) / 2
    orders = np.stack([rng.permutation(d) for _ in range(rankings)])
    trials = (
        trial_of("mask", weights, scores, orders),
        trial_of("delete", other_weights, scores, orders),
    )
    least = max(trials, key=lambda trial: trial.p)
    return Evidence(
        measure=CURVES,
        verdict=least.verdict,
        value=least.beaten,
        interval=least.interval,
        p=least.p,
        question=question,
        rankings=rankings,
        trials=trials,
    )


def trial_of(removal: str, weights: np.ndarray, scores: np.ndarray, orders: np.ndarray) -> Trial:
    """Deletion and insertion curves of a game whose value is the sum of the units' weights."""
    d, rankings = len(scores), len(orders)
    steps = sorted({round(s) for s in np.linspace(0, d, min(d, 12) + 1)})

    def curves(order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gone = np.array([weights[order[:s]].sum() for s in steps])
        return weights.sum() - gone, gone

    deletion, insertion = curves(np.argsort(-scores, kind="stable"))
    others = [curves(order) for order in orders]
    areas = np.array([b.mean() - a.mean() for a, b in others])
    area = float(insertion.mean() - deletion.mean())
    beaten = float((areas < area).mean())
    p = (1 + float((areas >= area).sum())) / (rankings + 1)
    verdict = Verdict.SAME
    if p < 0.025:
        verdict = Verdict.BETTER
    elif p > 0.975:
        verdict = Verdict.WORSE
    return Trial(
        removal=removal,
        verdict=verdict,
        statistic=area,
        random_low=float(np.quantile(areas, 0.025)),
        random_high=float(np.quantile(areas, 0.975)),
        random_mean=float(areas.mean()),
        beaten=beaten,
        interval=(max(beaten - 0.08, 0.0), min(beaten + 0.08, 1.0)),
        p=p,
        curves=TrialCurves(
            steps=tuple(steps),
            deletion=tuple(deletion.tolist()),
            insertion=tuple(insertion.tolist()),
            random_deletion=band_of([a for a, _ in others]),
            random_insertion=band_of([b for _, b in others]),
        ),
    )


def band_of(curves: list[np.ndarray]) -> Band:
    low, high = np.quantile(curves, [0.025, 0.975], axis=0)
    mean = np.mean(curves, axis=0)
    return tuple(zip(low.tolist(), mean.tolist(), high.tolist(), strict=True))


def judged(c: Comparison) -> Comparison:
    """With evidence for every method, and what the methods on a game tell of themselves."""
    every = {}
    for name, a in c.attributions.items():
        question = "support" if a.signed else "matter"
        every[name] = replace(a, evidence=evidence_for(a.scores, question))
    return replace(c, attributions=every)


# as the attention arbiter tells it
OWN = Evidence(
    measure=HELD_OUT,
    verdict=Verdict.SAME,
    value=0.22,
    trials=(
        Trial(
            removal="embedding",
            verdict=Verdict.SAME,
            statistic=0.22,
            random_low=-0.41,
            random_high=0.4,
            samples=32,
        ),
    ),
)
NO_VERDICT = Evidence(measure=CURVES, verdict=None, note="too few units for a verdict")
ANCHOR = {
    "anchor": [0, 2],
    "precision": 0.982,
    "interval": [0.961, 0.993],
    "coverage": 0.124,
    "threshold": 0.95,
    "samples": 1200,
    "exact": False,
}
SAMPLED = {"samples": 1000, "distinct": 812, "estimator": "surrogate", "r2": 0.934}


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Pretend that stdout is a terminal with all colours."""

    def pretend(width: int) -> None:
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLORTERM", "truecolor")
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setenv("COLUMNS", str(width))

    return pretend
