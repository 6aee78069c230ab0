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
from whence.core.passage import Passage
from whence.core.provenance import Provenance
from whence.core.target import Target

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
) -> dict[str, Any]:
    """Deletion and insertion curves of a ranking in two additive games, beside random rankings: of the shape that whence makes."""
    d = len(scores)
    steps = sorted({round(s) for s in np.linspace(0, d, min(d, 12) + 1)})
    rng = np.random.default_rng(seed)
    true = rng.normal(size=d)
    weights = {"mask": true, "delete": true + rng.normal(size=d) / 2}
    orders = np.stack([rng.permutation(d) for _ in range(rankings)])
    found = {}
    for name, w in weights.items():
        ours = np.argsort(-scores, kind="stable")

        def curves(order: np.ndarray, w: np.ndarray = w) -> tuple[np.ndarray, np.ndarray]:
            gone = np.array([w[order[:s]].sum() for s in steps])
            return w.sum() - gone, gone

        deletion, insertion = curves(ours)
        others = [curves(o) for o in orders]
        areas = np.array([b.mean() - a.mean() for a, b in others])
        area = float(insertion.mean() - deletion.mean())
        value = float((areas < area).mean())
        p = (1 + float((areas >= area).sum())) / (rankings + 1)
        verdict = (
            "better than random"
            if p < 0.025
            else "worse than random"
            if p > 0.975
            else "not separable from random"
        )

        def band(curves: list[np.ndarray]) -> list[list[float]]:
            low, high = np.quantile(curves, [0.025, 0.975], axis=0)
            return np.stack([low, np.mean(curves, axis=0), high], axis=1).tolist()

        found[name] = {
            "verdict": verdict,
            "value": value,
            "interval": [max(value - 0.08, 0.0), min(value + 0.08, 1.0)],
            "p": p,
            "area": area,
            "random_low": float(np.quantile(areas, 0.025)),
            "random_high": float(np.quantile(areas, 0.975)),
            "random_mean": float(areas.mean()),
            "steps": steps,
            "deletion": deletion.tolist(),
            "insertion": insertion.tolist(),
            "random_deletion": band([a for a, _ in others]),
            "random_insertion": band([b for _, b in others]),
        }
    least = max(found.values(), key=lambda f: f["p"])
    return {
        "measure": "deletion and insertion curves",
        "question": question,
        "rankings": rankings,
        "note": "",
        "removals": found,
        **{k: least[k] for k in ("verdict", "value", "interval", "p")},
    }


def judged(c: Comparison) -> Comparison:
    """With evidence for every method, and what the methods on a game tell of themselves."""
    every = {
        n: replace(a, evidence=evidence_for(a.scores, "support" if a.signed else "matter"))
        for n, a in c.attributions.items()
    }
    return replace(c, attributions=every)


OWN = {
    "measure": "correlation with held-out removals",
    "verdict": "not separable from random",
    "value": 0.22,
    "random_low": -0.41,
    "random_high": 0.4,
    "removals": 32,
    "baseline_value": None,
}  # as the attention arbiter tells it
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
