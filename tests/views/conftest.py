"""Attributions made by hand: views need no model."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from whence.core.attribution import Attribution, Cost, Error
from whence.core.comparison import Comparison
from whence.core.passage import Passage
from whence.core.provenance import Provenance
from whence.core.target import Target

PROVENANCE = Provenance("toy", "ToyForSequenceClassification", "00ff", None, "float32", "cpu", "sdpa", {"whence": "0.1.0"})


def passage_of(text: str) -> Passage:
    spans = [m.span() for m in re.finditer(r"\S+", text)]
    return Passage.from_tokens(text, list(range(len(spans))), [text[a:b] for a, b in spans], spans, [0] * len(spans))


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


def made(text: str | Passage, method: str = "toy", signed: bool = True, scores: Any = None, **more: Any) -> Attribution:
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
    errors = {"integrated-gradients": Error(None, 0.0031), "gradient-mean": Error(note="zero by construction")}
    signed = ("gradient-mean", "gradient-x-input", "integrated-gradients")
    every = {n: made(text, n, n in signed, error=errors.get(n)) for n in names[:count]}
    return Comparison(every, Cost(30, 29, 0.05), {"other": "it does not fit"})


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


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    executable = shutil.which("chromium")
    if executable is None:
        pytest.skip("no chromium: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as p:
        started = p.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        yield started
        started.close()
