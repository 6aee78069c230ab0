"""Texts that a model wrote, or was given: any decoding, reading, contrast and number of tokens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tests.occasions import _lots as lots
from tests.occasions.context import _evidence
from tests.views.conftest import made
from tests.views.generations import END, output_of, passage_of
from whence.core.attribution import Attribution, Cost, Error
from whence.core.comparison import Comparison
from whence.core.generation import Generation
from whence.core.passage import Passage
from whence.core.target import Reference, Target
from whence.views.generation import (
    about_wholes,
    contrast_of,
    decoding_line,
    generation_text,
    question,
    remarks,
    scores_line,
    without_evidence,
)
from whence.views.generation_page import generation_fragment, generation_page

METHODS = {"occlusion": True, "attention-mean": False, "gradient-x-input": True}
READINGS = (
    *("log-probability", "logit", "probability", "margin"),
    *("cross-entropy", "perplexity", "entropy", "kl"),
)
RIVALS = (" little", " few", "x\x1b[31m")


def speak(rng: np.random.Generator) -> None:
    """One result says everything that it can."""
    g = generation(rng)
    method = g.methods[0]
    for say in (question, without_evidence, decoding_line, contrast_of, remarks):
        say(g)
    scores_line(g, method)
    about_wholes(g, method)
    if lots.does(rng, 0.3):
        generation_text(g)
    if lots.does(rng, 0.05):
        generation_page(g)
        generation_fragment(g)
        repr(g)


def generation(rng: np.random.Generator) -> Generation:
    """One result, with or without evidence, of one word, of all, or of a contrast of texts."""
    prompt = " ".join(lots.words(rng, lots.count(rng, 40 if lots.does(rng, 0.1) else 8)))
    written = _written(rng)
    passage = passage_of(prompt, written, lots.one_of(rng, ("word", "word", "token", "sentence")))
    passage = replace(passage, dropped=int(lots.one_of(rng, (0, 0, 1, 1200))))
    numbers = tuple(range(passage.outputs))
    if lots.does(rng, 0.2):
        numbers = tuple(sorted({int(rng.integers(passage.outputs)) for _ in range(3)}))
    read = lots.one_of(rng, READINGS) if lots.does(rng) else "log-probability"
    contrasted = {n for n in numbers if lots.does(rng)} if lots.does(rng, 0.2) else set()
    names = [name for name in METHODS if lots.does(rng)] or ["occlusion"]
    targets = {n: _target(rng, passage, n, read, n in contrasted) for n in numbers}
    rows = {}
    for name in names:
        rows[name] = tuple(_row(rng, passage.before(n), name, targets[n]) for n in numbers)
    outputs = []
    for number in range(passage.outputs):
        chance = lots.share(rng)
        outputs.append(output_of(passage, number, probability=chance, entropy=3 * chance))
    return Generation(
        passage=passage,
        outputs=tuple(outputs),
        explained=numbers,
        rows=rows,
        decoding=_decoding(rng, passage.outputs),
        cost=Cost(lots.count(rng), lots.count(rng), float(rng.random())),
        chosen=_chosen(rng, passage, names) if lots.does(rng, 0.6) else None,
        skipped=_skipped(rng),
        notes=("what a model's own files change: top_k 50",) if lots.does(rng, 0.2) else (),
    )


def _written(rng: np.random.Generator) -> list[str]:
    if lots.does(rng, 0.03):
        return [END]
    most = 60 if lots.does(rng, 0.03) else 7
    tokens = []
    for word in lots.words(rng, lots.count(rng, most)):
        pieces = [word[:2], word[2:]] if lots.does(rng, 0.3) and word.isalpha() else [word]
        tokens += [f" {pieces[0]}", *filter(None, pieces[1:])]
    if lots.does(rng, 0.1):
        tokens.append("\n")
    return [*tokens, END] if lots.does(rng, 0.2) else tokens


def _target(
    rng: np.random.Generator, passage: Passage, number: int, read: Any, has_rival: bool
) -> Target:
    against = None
    if read == "margin" or (has_rival and read in ("log-probability", "logit", "probability")):
        against = lots.one_of(rng, RIVALS)
    reference = Reference("the same text without context") if read == "kl" else None
    if reference is not None and lots.does(rng):
        reference = None
    name = passage.output_text(number)
    return Target(name, against=against, at=number, read=read, index=number, reference=reference)


def _row(rng: np.random.Generator, before: Passage, method: str, target: Target) -> Attribution:
    error = None
    if lots.does(rng, 0.1):
        error = Error(completeness_gap=lots.share(rng), note=lots.one_of(rng, ("", "a note")))
    scores = lots.scores(rng, len(before.unit_spans), METHODS[method])
    return made(before, method, METHODS[method], scores, target=target, error=error)


def _chosen(rng: np.random.Generator, passage: Passage, names: list[str]) -> Comparison:
    """About all tokens, some of them, or why these rather than another text."""
    start = int(rng.integers(passage.outputs)) if lots.does(rng, 0.3) else 0
    until = passage.outputs if start == 0 else start + 1
    ids = tuple(passage.ids[passage.output_place(start) :][: until - start].tolist())
    written = "".join(passage.output_text(i) for i in range(start, until))
    more: dict[str, Any] = {}
    if lots.does(rng, 0.2):
        more = {"against": lots.one_of(rng, (" a little", "x" * 130)), "against_ids": (1, 2)}
    read = "log-probability" if more else lots.one_of(rng, ("log-probability", "probability"))
    target = Target(written, read=read, at=start, until=until, ids=ids, index=ids[0], **more)
    before = passage.before(start)
    every = {}
    for name in names:
        scores = lots.scores(rng, len(before.unit_spans), METHODS[name])
        judged = _evidence(rng, METHODS[name])
        every[name] = made(before, name, METHODS[name], scores, target=target, evidence=judged)
    skipped = {"shapley": "no room"} if lots.does(rng, 0.1) else {}
    return Comparison(every, Cost(30, 3, 0.1), skipped)


def _decoding(rng: np.random.Generator, tokens: int) -> dict[str, Any]:
    if lots.does(rng, 0.3):
        return {"given": lots.one_of(rng, ("text", "tokens"))}
    decoding: dict[str, Any] = {"do_sample": lots.does(rng)}
    decoding["num_beams"] = lots.one_of(rng, (1, 1, 4, None))
    if lots.does(rng, 0.9):
        decoding["max_new_tokens"] = tokens
    if decoding["do_sample"] and lots.does(rng):
        decoding |= {"temperature": 1.0, "top_k": 0, "top_p": lots.one_of(rng, (1.0, 0.9))}
    if lots.does(rng, 0.1):
        decoding["bad_words_ids"] = [[1, 2, 3]] * 40
    return decoding


def _skipped(rng: np.random.Generator) -> dict[str, str]:
    names = {"lime": "it does not fit", "evidence": "this model cannot be run again"}
    return {name: why for name, why in names.items() if lots.does(rng, 0.15)}
