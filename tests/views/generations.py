"""Generated texts made by hand: their views need no model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.views.conftest import evidence_for, made
from whence.core.attribution import Cost
from whence.core.comparison import Comparison
from whence.core.generation import Generation, Output
from whence.core.passage import SPECIAL, Passage, Section
from whence.core.target import Target

METHODS = {"gradient-x-input": True, "occlusion": True, "attention-mean": False}
END = "</s>"


def passage_of(prompt: str, written: Sequence[str], kind: Any = "word") -> Passage:
    """A prompt cut at white space, and tokens behind it; ``END`` is a special token."""
    tokens = re.findall(r"\s*\S+", prompt)
    spans, parts = [], []
    for part, pieces in ((0, tokens), (1, written)):
        start = 0
        for piece in pieces:
            is_special = piece == END
            end = start if is_special else start + len(piece)
            spans.append((start, end))
            parts.append(SPECIAL if is_special else part)
            start = end
    every = [*tokens, *written]
    text = "".join(piece for piece in written if piece != END)
    whole = Passage.from_tokens(
        prompt, list(range(len(every))), every, spans, parts, units=kind, pair=text
    )
    return replace(whole, written=len(tokens), by_model=True)


def output_of(passage: Passage, number: int, **more: Any) -> Output:
    name = passage.output_text(number)
    unit = int(passage.unit_of[passage.output_place(number)])
    given: dict[str, Any] = {
        "probability": 0.5,
        "entropy": 1.5,
        "alternatives": {name: 0.5, " other": 0.25, "other": 0.125, "\n": 0.0},
        **more,
    }
    return Output(
        name=name,
        id=int(passage.ids[passage.output_place(number)]),
        unit=None if unit < 0 else unit,
        **given,
    )


def generation(
    prompt: str,
    written: Sequence[str],
    methods: Mapping[str, bool] = METHODS,
    *,
    kind: Any = "word",
    explained: Sequence[int] | None = None,
    evidence: bool = True,
    read: Any = "log-probability",
    sections: Sequence[Section] = (),
    **more: Any,
) -> Generation:
    """Scores are random; each method has rows of its own."""
    passage = replace(passage_of(prompt, written, kind), sections=tuple(sections))
    numbers = tuple(range(passage.outputs) if explained is None else explained)
    rng = np.random.default_rng(0)
    rows = {}
    for method, signed in methods.items():
        attributions = []
        for number in numbers:
            before = passage.before(number)
            scores = rng.normal(size=len(before.unit_spans)) ** 3
            target = Target(passage.output_text(number), at=number, read=read, index=0)
            scores = scores if signed else np.abs(scores)
            attributions.append(made(before, method, signed, scores, target=target))
        rows[method] = tuple(attributions)
    given: dict[str, Any] = {
        "decoding": {"do_sample": False, "num_beams": 1, "max_new_tokens": len(written)},
        "cost": Cost(12, 3, 0.25),
        "chosen": chosen_of(passage, methods) if evidence else None,
        **more,
    }
    outputs = tuple(output_of(passage, number) for number in range(passage.outputs))
    return Generation(passage=passage, outputs=outputs, explained=numbers, rows=rows, **given)


def chosen_of(passage: Passage, methods: Mapping[str, bool]) -> Comparison:
    """All that was written, with evidence for every method."""
    before = passage.before(0)
    ids = tuple(passage.ids[passage.output_place(0) :].tolist())
    written = "".join(passage.output_text(i) for i in range(passage.outputs))
    target = Target(
        written, read="log-probability", at=0, until=passage.outputs, ids=ids, index=ids[0]
    )
    every = {}
    for method, signed in methods.items():
        a = made(before, method, signed, target=target, value=-float(passage.outputs))
        question = "support" if signed else "matter"
        every[method] = replace(a, evidence=evidence_for(a.scores, question))
    return Comparison(every, Cost(30, 3, 0.1))
