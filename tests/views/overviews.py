"""Overviews made by hand: a page of a run needs no model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from whence.core.agreement import Conflict
from whence.core.answer_of_many import answer_of_counts
from whence.core.evidence import Verdict
from whence.core.many import Failure, tally_of
from whence.core.overview import Accuracy, CarryingWord, Overview, Reading, ReadText

METHODS = ("occlusion", "gradient-l2", "random")
SIGNED = (True, False, False)


def pieces_of(text: str) -> tuple[str, ...]:
    """Words with the space before them, as units are."""
    words = text.split(" ")
    return (words[0], *(f" {word}" for word in words[1:]))


def reading(scores: Any, verdict: Verdict | None = None) -> Reading:
    if verdict is None:
        return Reading(np.asarray(scores, dtype=np.float64), None, None, None)
    return Reading(np.asarray(scores, dtype=np.float64), verdict, 0.98, 0.02)


def read_text(row: int, text: str, scores: Sequence[float], **more: Any) -> ReadText:
    """One text by all methods: those without signs have the sizes of the first one's scores."""
    sizes = np.abs(np.asarray(scores, dtype=np.float64))
    verdict = more.pop("verdict", None)
    given: dict[str, Any] = {
        "number": row,
        "id": str(row),
        "parts": (0,) * len(scores),
        "label": "good",
        "predicted": "good",
        "probability": 0.9,
        "explained": "good",
        "agreement": 0.5,
        "conflict": None,
        **more,
    }
    readings = {
        "occlusion": reading(scores, verdict),
        "gradient-l2": reading(sizes, Verdict.SAME if verdict else None),
        "random": reading(sizes[::-1], Verdict.SAME if verdict else None),
    }
    return ReadText(row=row, pieces=pieces_of(text), readings=readings, **given)


TEXTS = (
    read_text(0, "so good", [0.25, 1.0], verdict=Verdict.BETTER, agreement=0.9),
    read_text(
        1,
        "not good at all",
        [-2.0, 1.0, 0.0, 0.5],
        verdict=Verdict.SAME,
        label="bad",
        agreement=-0.2,
        probability=0.6,
        conflict=Conflict(2, "at", "size", ("random",), ("occlusion", "gradient-l2"), 1 / 3),
    ),
    read_text(
        2, "nothing bad", [0.5, 1.0], predicted="bad", explained="bad", label="bad", agreement=None
    ),
)


def overview(texts: Sequence[ReadText] = TEXTS, **more: Any) -> Overview:
    counted = {Verdict.BETTER: 9, Verdict.SAME: 1, Verdict.WORSE: 0}
    none = {Verdict.BETTER: 0, Verdict.SAME: 10, Verdict.WORSE: 0}
    tallies = (
        tally_of("occlusion", 10, counted, [0.9, 0.95]),
        tally_of("gradient-l2", 10, none, [0.5, 0.6]),
        tally_of("random", 10, none, [0.5, 0.4]),
    )
    labels = Counter(text.predicted for text in texts if text.predicted is not None)
    given: dict[str, Any] = {
        "place": "runs/reviews",
        "source": "data/reviews.csv",
        "model": "toy",
        "read": "logit",
        "rows": len(texts) + 1,
        "done": len(texts) + 1,
        "failed": 1,
        "methods": METHODS,
        "signed": SIGNED,
        "answer": answer_of_counts(len(texts), labels, tallies, len(texts), 2),
        "tallies": tallies,
        "better_intervals": ((0.6, 0.98), (0.0, 0.28), (0.0, 0.28)),
        "accuracy": Accuracy(3, 2, (0.2, 0.94), "bad", 2),
        "words": (
            CarryingWord("occlusion", "good", "good", 9, 0.6, 0.4, 0.8, 5.4, is_sure=True),
            CarryingWord("occlusion", "good", "not", 7, -0.5, -0.7, -0.3, -3.5, is_sure=True),
            CarryingWord("occlusion", "good", "perhaps", 7, 0.5, -0.1, 1.1, 3.5, is_sure=False),
            CarryingWord("occlusion", "good", "!", 9, 0.4, 0.3, 0.5, 3.6, is_sure=True),
            CarryingWord("gradient-l2", "good", "the", 9, 0.2, 0.1, 0.3, 1.8, is_sure=True),
        ),
        "speaker": "occlusion",
        "texts": tuple(texts),
        "repeated": 0,
        "left_out": 0,
        "failures": (Failure("row 3", "InputError: the text is empty"),),
        **more,
    }
    return Overview(**given)
