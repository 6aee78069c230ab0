"""What of a text came from its context: results by lot, of any selection, reading and units."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tests.occasions import _lots as lots
from tests.views.conftest import PROVENANCE, made
from tests.views.generations import END, passage_of
from whence.core.attribution import Cost
from whence.core.context_use import (
    LARGE_CHANGE,
    MEASURES,
    OF_TOKENS,
    Measure,
    large_changes,
    selected,
    threshold_of,
    usual_floor,
)
from whence.core.contextual import ContextUse, Dependence, Selection
from whence.core.evidence import CURVES, Evidence, Verdict
from whence.core.passage import SPECIAL, Passage, Section
from whence.core.target import Reference, Target
from whence.models.writing import only_prompt
from whence.views.context import answer, context_text, remarks
from whence.views.context_page import context_fragment

METHODS = {"occlusion": True, "attention-mean": False, "gradient-x-input": True}
READINGS = ("probability", "logit", "log-probability", "margin", "kl")
NAMES = ("a.txt", "context", "b/ü \x1b[31m.txt", "c" * 70)
TINY = 1e-12  # no logarithm is taken of nothing


def speak(rng: np.random.Generator) -> None:
    """One result says everything that it can."""
    use = context_use(rng)
    answer(use)
    remarks(use)
    if lots.does(rng, 0.3):
        context_text(use)
    if lots.does(rng, 0.05):
        context_fragment(use)
        use.table("sources")
        repr(use)


def context_use(rng: np.random.Generator) -> ContextUse:
    """One result."""
    passage = _passage(rng)
    outputs = _outputs(rng, passage)
    selection = _selection(rng, outputs)
    selection, chosen = _selected(outputs, selection)
    read = lots.one_of(rng, READINGS) if lots.does(rng, 0.4) else "probability"
    names = [name for name in METHODS if lots.does(rng)] or ["occlusion"]
    rows = {}
    if chosen:
        rows = {name: _rows(rng, passage, outputs, chosen, name, read) for name in names}
    given = {"given": lots.one_of(rng, ("text", "tokens"))}
    written = {"do_sample": False, "num_beams": 1, "max_new_tokens": len(outputs)}
    return ContextUse(
        passage=passage,
        without=passage,
        input=lots.one_of(rng, (" It", "why?\nsay", "x" * 130, "</script>")),
        outputs=outputs,
        selected=chosen,
        selection=selection,
        rows=rows,
        decoding={**(given if lots.does(rng) else written), "separator": "", "chat": False},
        cost=Cost(lots.count(rng), lots.count(rng), float(rng.random())),
        provenance=PROVENANCE,
        skipped={"lime": "it does not fit"} if lots.does(rng, 0.2) else {},
        notes=("no sentence of this",) if lots.does(rng, 0.2) else (),
    )


def _passage(rng: np.random.Generator) -> Passage:
    """Documents or one text, their units, an input, and what follows."""
    is_of_texts = lots.does(rng)
    sections, context = [], ""
    for number in range(lots.count(rng, 4) if is_of_texts else 1):
        sentences = []
        for _ in range(lots.count(rng, 5)):
            end = lots.one_of(rng, (".", "!", "", "?", "…"))
            sentences.append(f"{' '.join(lots.words(rng, lots.count(rng, 8)))}{end}")
        document = f"{' '.join(sentences)}\n"
        name = NAMES[number] if is_of_texts else "context"
        sections.append(Section(name, len(context), len(context) + len(document)))
        context += document
    kind: Any = lots.one_of(rng, ("sentence", "section") if is_of_texts else ("word", "token"))
    cut = [section.start for section in sections] if kind == "section" else kind
    whole = only_prompt(passage_of(f"{context}\nIt", _written(rng), cut))
    inside = sum(start < len(context) for _, start, _ in whole.unit_spans)
    spans = [(part, start, min(end, len(context))) for part, start, end in whole.unit_spans]
    return replace(
        whole,
        unit_of=np.where(whole.unit_of < inside, whole.unit_of, SPECIAL),
        unit_spans=tuple(spans[:inside]),
        sections=tuple(sections),
    )


def _written(rng: np.random.Generator) -> list[str]:
    """Words of one or several tokens, the end, or nothing but the end."""
    if lots.does(rng, 0.03):
        return [END] * lots.count(rng, 2)
    tokens = []
    for word in lots.words(rng, lots.count(rng, 12)):
        pieces = [word[i : i + 3] for i in range(0, len(word), 3)] if lots.does(rng, 0.2) else []
        tokens += [f" {pieces[0]}", *pieces[1:4]] if pieces else [f" {word}"]
        if lots.does(rng, 0.15):
            tokens.append(".")
    return [*tokens, END] if lots.does(rng, 0.3) else tokens


def _outputs(rng: np.random.Generator, passage: Passage) -> tuple[Dependence, ...]:
    number = passage.outputs
    after = np.array([max(lots.share(rng), TINY) for _ in range(number)])
    before = after.copy()
    for i in range(number):
        kind = rng.integers(4)
        if kind == 0:
            before[i] = max(lots.share(rng), TINY)
        elif kind == 1:
            before[i] = min(1.0, after[i] * np.exp(rng.normal() / 4))
        elif kind == 2:
            before[i] = min(1.0, after[i] * 10 ** rng.uniform(-3, 3))
    measure = lots.one_of(rng, MEASURES) if lots.does(rng, 0.4) else "kl-divergence"
    if measure == "kl-divergence":
        scores = np.abs(lots.scores(rng, number))
    else:
        scores = OF_TOKENS[measure](np.log(before), np.log(after))
    words = _words_of(passage)
    outputs = []
    for i in range(number):
        name = passage.output_text(i)
        other, other_id = lots.one_of(rng, ((" she", 991), (" er", 992), (name.strip(), 993)))
        same = lots.does(rng, 0.4)
        outputs.append(
            Dependence(
                name=name,
                id=i,
                probability=float(after[i]) * (1 + 1e-7 * (after[i] == 1)),
                without=float(before[i]),
                score=float(scores[i]),
                instead=name if same else other,
                instead_id=i if same else other_id,
                word=words[i],
            )
        )
    _MEASURED[tuple(outputs)] = measure
    return tuple(outputs)


_MEASURED: dict[tuple[Dependence, ...], Measure] = {}


def _words_of(passage: Passage) -> list[int | None]:
    """The number of the word of each written token; a special token has none."""
    words: list[int | None] = []
    last = -1
    for number in range(passage.outputs):
        name = passage.output_text(number)
        if passage.parts[passage.output_place(number)] == SPECIAL:
            words.append(None)
            continue
        last += last < 0 or name.startswith(" ")
        words.append(last)
    return words


def _selection(rng: np.random.Generator, outputs: tuple[Dependence, ...]) -> Selection:
    measure = _MEASURED.pop(outputs)
    floor = lots.one_of(rng, (usual_floor(measure), usual_floor(measure), 0.0, 1.0))
    if lots.does(rng, 0.4):  # what is usual of a short output
        return Selection(measure, "tool", None, None, floor, factor=LARGE_CHANGE)
    deviations = lots.one_of(rng, (1.0, 2.0, 0.5, None))
    most = lots.count(rng, 6) if lots.does(rng, 0.3) else None
    least = None if lots.does(rng, 0.2) and (deviations or most) else floor
    rule = lots.one_of(rng, ("tool", "tool", "paper"))
    return Selection(measure, rule, deviations, most, least)


def _selected(
    outputs: tuple[Dependence, ...], asked: Selection
) -> tuple[Selection, tuple[int, ...]]:
    """As ``whence.context`` does it, whose rule is tested elsewhere."""
    scores = np.array([output.score for output in outputs])
    if asked.deviations is not None and len(scores) < 3:
        least = 0.5 if asked.least is None else asked.least
        asked = replace(asked, deviations=None, least=least)
    if asked.deviations is not None:
        asked = replace(asked, threshold=threshold_of(scores, asked.rule, asked.deviations))
    also = None
    if asked.factor is not None:
        before = np.array([output.without for output in outputs])
        after = np.array([output.probability for output in outputs])
        also = large_changes(before, after, asked.factor)
    chosen = selected(scores, asked.rule, asked.deviations, asked.most, asked.least, also)
    return asked, tuple(np.flatnonzero(chosen).tolist())


def _rows(
    rng: np.random.Generator,
    passage: Passage,
    outputs: tuple[Dependence, ...],
    chosen: tuple[int, ...],
    method: str,
    read: Any,
) -> tuple[Any, ...]:
    signed = METHODS[method]
    rows = []
    for number in chosen:
        before = passage.before(number)
        output = outputs[number]
        against = None if output.is_same or read == "kl" else output.instead
        if read == "margin" and against is None:
            against = "other"
        reference = None
        if read == "kl":
            reference = Reference("the same output without context")
        target = Target(
            output.name, against=against, read=read, at=number, index=number, reference=reference
        )
        scores = lots.scores(rng, len(before.unit_spans), signed)
        judged = _evidence(rng, signed) if lots.does(rng, 0.3) else None
        rows.append(made(before, method, signed, scores, target=target, evidence=judged))
    return tuple(rows)


def _evidence(rng: np.random.Generator, signed: bool) -> Evidence:
    verdict = lots.one_of(rng, (*Verdict, None))
    question = "support" if signed else "matter"
    if verdict is None:
        return Evidence(CURVES, None, question=question, note="too few units for a verdict")
    p = lots.one_of(rng, (0.05, 0.0099, 0.5, 0.025))
    value = lots.share(rng)
    return Evidence(CURVES, verdict, value, (value / 2, value), p, question, p_worse=p)
