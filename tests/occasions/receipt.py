"""What steering did: doses, directions beside the feature, and what was or was not measured."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.occasions import _lots as lots
from tests.views.conftest import PROVENANCE
from whence.core.attribution import Cost
from whence.core.receipt import Direction, Dose, Receipt
from whence.features.receipts import _on_no_difference, _on_unrelated
from whence.views.receipt import receipt_text, sentences
from whence.views.receipt_page import _notes, receipt_page

NOTES = (
    "No perplexity: every text has one token, and none that follows it.",
    "The cosine of the feature's direction and the difference of means: 0.12.",
)


def speak(rng: np.random.Generator) -> None:
    """One receipt says everything that it can."""
    r = receipt(rng)
    sentences(r)
    _notes(r)
    if lots.does(rng, 0.2):
        receipt_text(r)
    if lots.does(rng, 0.1):
        receipt_page(r)
        repr(r)
    tokens = lots.count(rng)
    _on_unrelated(lots.count(rng, 5), 5)
    _on_no_difference(lots.one_of(rng, (0, 4, tokens)), max(tokens, 4))


def receipt(rng: np.random.Generator) -> Receipt:
    """One receipt; none of the numbers depends on another."""
    meaning: Any = lots.one_of(rng, ("promoted", "label"))
    multiples = sorted({0.0, *(lots.one_of(rng, (1.0, 2.0, 5.0, 10.0, 0.5)) for _ in range(3))})
    asked = lots.one_of(rng, multiples) if lots.does(rng, 0.6) else float(rng.uniform(0, 20))
    if lots.does(rng, 0.1):
        asked = 1.0001
    has = {name: lots.does(rng, 0.8) for name in ("perplexity", "activity", "others", "written")}
    if meaning == "label":
        has |= {"perplexity": False, "activity": False, "written": False}
    doses = []
    directions: list[tuple[Direction, int]] = [("feature", 0)]
    directions += [("random", number) for number in range(rng.integers(4))]
    directions += [("difference", 0)] if lots.does(rng) else []
    for multiple in sorted({*multiples, asked}):
        for direction, number in directions:
            writes = direction == "feature" or multiple == asked
            doses.append(_dose(rng, direction, number, multiple, has, writes, meaning))
    return Receipt(
        feature=lots.count(rng, 4000),
        peak=float(10 ** rng.uniform(-3, 4)),
        asked=asked,
        prompt=lots.one_of(rng, ("The", "a\nb", "x" * 130, "</script>")),
        meaning=meaning,
        about=lots.one_of(rng, ("the, a", "positive", " good", "x\x1b[31m")),
        plain=_dose(rng, "feature", 0, 0.0, has, True, meaning),
        doses=tuple(doses),
        texts=lots.count(rng, 32),
        tokens=lots.count(rng, 3000),
        cost=Cost(lots.count(rng), 0, float(rng.random())),
        provenance=PROVENANCE,
        layer=2,
        notes=tuple(note for note in NOTES if lots.does(rng, 0.2)),
        is_apart=lots.does(rng, 0.2),
    )


def _dose(
    rng: np.random.Generator,
    direction: Direction,
    number: int,
    multiple: float,
    has: dict[str, bool],
    writes: bool,
    meaning: str,
) -> Dose:
    probabilities = {}
    if meaning == "label" and writes:
        chance = lots.share(rng)
        probabilities = {"positive": chance, " good": 1 - chance}
    writing = has["written"] and writes
    return Dose(
        direction=direction,
        number=number,
        multiple=multiple,
        response=lots.share(rng),
        divergence=float(lots.one_of(rng, (0.0, 10 ** rng.uniform(-6, 3), 99.7))),
        others=float(10 ** rng.uniform(-4, 6)) if has["others"] else None,
        perplexity=float(10 ** rng.uniform(0, 6)) if has["perplexity"] else None,
        activity=lots.share(rng) * 3 if has["activity"] and writing else None,
        written=" ".join(lots.words(rng, 5)) if writing else None,
        probabilities=probabilities,
    )
