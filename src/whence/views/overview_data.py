"""The texts of a run inside its page: JSON for what is read, a byte for each score, deflated.

A score is a whole number of steps of the largest one that its method gives on its text, so it is
off by at most half a step. That is fine enough for a colour and for two digits; the run itself has
all of them.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from jaxtyping import Float, Int8

from whence.core.answer import CONTROL
from whence.core.attribution import NO_LABEL
from whence.core.evidence import Verdict
from whence.core.overview import Overview, Reading, ReadText
from whence.views import verdicts, wording
from whence.views.markup import element
from whence.views.packing import blob
from whence.views.sides import sides

STEPS = 127  # on either side of zero
VERDICTS = (None, *verdicts.BEST_FIRST)


def quantised(scores: Float[np.ndarray, " unit"]) -> tuple[Int8[np.ndarray, " unit"], float]:
    """Scores as whole steps, and the largest size among them, which is as many steps as there are.

    >>> steps, largest = quantised(np.array([0.5, -2.0, 0.0]))
    >>> steps.tolist(), largest
    ([32, -127, 0], 2.0)
    """
    finite = np.nan_to_num(scores, nan=0.0, posinf=0.0, neginf=0.0)
    largest = float(np.abs(finite).max(initial=0.0))
    if largest == 0:
        return np.zeros(len(finite), dtype=np.int8), 0.0
    return np.round(finite / largest * STEPS).astype(np.int8), largest


def packed(overview: Overview) -> str:
    """Two inert elements: what is read, and the scores, one byte each."""
    labels = _labels(overview)
    read, scores = [], []
    for text in overview.texts:
        readings = []
        for method in overview.methods:
            reading = text.readings.get(method)
            if reading is None:
                readings.append(0)
                continue
            steps, largest = quantised(reading.scores)
            scores.append(steps.tobytes())
            readings.append(_reading(reading, largest))
        read.append(_text(text, overview, labels) | {"by": readings})
    content = {
        "methods": [wording.visible(name) for name in overview.methods],
        "signed": list(overview.signed),
        "control": [name == CONTROL for name in overview.methods],
        "steps": STEPS,
        "asked": sides(overview.read).question("{}"),
        "labels": [wording.label(name) for name in labels],
        "marks": [verdicts.MARKS[verdict] for verdict in VERDICTS],
        "verdicts": [str(verdict or verdicts.NO_VERDICT) for verdict in VERDICTS],
        "classes": [verdicts.SHORT[verdict] for verdict in VERDICTS],
        "texts": read,
    }
    # ASCII, so that a lone surrogate cannot stop it
    written = json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    return _blob("texts", blob(written)) + _blob("scores", blob(b"".join(scores)))


def _blob(name: str, content: str) -> str:
    return element("script", content, type="text/plain", data_blob=name)


def _labels(overview: Overview) -> list[str]:
    """Every label that some text has, predicted ones first."""
    said = (name for name, _ in overview.answer.predictions)
    names = dict.fromkeys(name for name in said if name != NO_LABEL)
    for text in overview.texts:
        for name in (text.predicted, text.explained, text.label):
            if name is not None:
                names.setdefault(name)
    return list(names)


def _text(text: ReadText, overview: Overview, labels: list[str]) -> dict[str, Any]:
    """One text but its scores; a name that is missing says that there is nothing to say."""
    told: dict[str, Any] = {
        "row": text.row,
        "units": [wording.visible(piece, keep="\n\t") for piece in text.pieces],
        "of": labels.index(text.explained),
    }
    if any(text.parts):
        told["parts"] = list(text.parts)
    if text.id and text.id != str(text.number):
        told["id"] = wording.visible(text.id)
    if text.label is not None:
        told["label"] = labels.index(text.label)
        if not text.is_judged:
            told["unjudged"] = True
    if text.predicted is not None and text.probability is not None:
        told |= {"says": labels.index(text.predicted), "sure": _share(text.probability)}
        if text.says_none:
            told["none"] = True
    if text.agreement is not None:
        told["agree"] = round(text.agreement, 3)
    if text.conflict is not None:
        one, other = sides(overview.read).camps(text.conflict.kind)
        place = overview.methods.index
        told["split"] = [
            text.conflict.unit,
            one,
            [place(name) for name in text.conflict.one],
            other,
            [place(name) for name in text.conflict.other],
        ]
    return told


def _reading(reading: Reading, largest: float) -> list[float | int | None]:
    """The largest score, the verdict by its place, the share of random rankings beaten, and p."""
    told: list[float | int | None] = [float(f"{largest:.4g}")]
    if reading.verdict is None and reading.p is None:
        return told
    told.append(_place(reading.verdict))
    told.append(None if reading.beaten is None else _share(reading.beaten))
    told.append(None if reading.p is None else float(f"{reading.p:.3g}"))
    return told


def _share(share: float) -> float:
    """With three decimals, and more where it would be 0 or 1 and is not: the page would say so."""
    for decimals in (3, 4, 5):
        rounded = round(share, decimals)
        if rounded not in (0.0, 1.0):
            return rounded
    return share


def _place(verdict: Verdict | None) -> int:
    return VERDICTS.index(verdict)
